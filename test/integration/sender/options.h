/* SPDX-License-Identifier: BSD-2-Clause */
/* options.h - the command line of kp_sender. */
#ifndef KP_TEST_INTEGRATION_OPTIONS_H
#define KP_TEST_INTEGRATION_OPTIONS_H

#include <kp/kp.h>

#include "test/integration/sender/load.h"

struct options {
    struct load load;
    kp_config *config;
    const char *journal_path;
    const char *properties[32]; /* each "name=value", as given with -X */
    uint32_t property_count;
    uint32_t threads;
    enum form form;
    double rate;    /* records a second in all; 0: as fast as it goes */
    double seconds; /* 0: until all are sent */
    int64_t close_ms;
    bool log;
};

/* Says what is wrong on standard error and exits with 2. */
void options_read(struct options *o, int argc, char **argv);
/* A property given with -X, or `fallback`. */
const char *options_property(const struct options *o, const char *name,
                             const char *fallback);

#endif
