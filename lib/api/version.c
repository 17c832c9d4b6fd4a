/* SPDX-License-Identifier: BSD-2-Clause */
/* version.c - what was built.  Any thread. */
#include "include/kp/kp.h"
#include "lib/codec/codec.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)

const char *kp_version(void)
{
    return STRING(KP_VERSION_MAJOR) "." STRING(KP_VERSION_MINOR) "." STRING(
        KP_VERSION_PATCH);
}

const char *kp_features(void)
{
    return kp__codec_names();
}
