/* SPDX-License-Identifier: BSD-2-Clause */
/* file.c - a whole file into memory.  Any thread.
 *
 * Read to its end and not to its size, so that a pipe will do. */
#include "lib/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/base/system_error.h"

#define STEP 4096

static kp_err cannot_read(const char *path, const char *why, kp_error *error)
{
    char shown[131];

    kp__str_escape_path(shown, sizeof(shown), path, 96);
    return kp__error_set(error, KP_EINVAL, KP_OK, "cannot read \"%s\": %s",
                         shown, why);
}

static kp_err system_refused(const char *path, int number, kp_error *error)
{
    char why[64];

    kp__system_error_text(number, why, sizeof(why));
    return cannot_read(path, why, error);
}

static kp_err too_large(const char *path, size_t max, kp_error *error)
{
    char why[64];

    (void)kp__format(why, sizeof(why), "it is larger than %zu bytes", max);
    return cannot_read(path, why, error);
}

static ssize_t read_some(int fd, void *to, size_t size)
{
    ssize_t n;

    do
        n = read(fd, to, size);
    while (n < 0 && errno == EINTR);
    return n;
}

static kp_err read_all(int fd, const char *path, size_t max, struct buf *out,
                       kp_error *error)
{
    size_t total = 0;
    uint8_t *to;
    ssize_t n;

    for (;;) {
        to = kp__buf_reserve(out, STEP);
        if (to == NULL)
            return kp__error_set(error, KP_ENOMEM, KP_OK,
                                 "no memory to read a file");
        n = read_some(fd, to, STEP);
        if (n < 0)
            return system_refused(path, errno, error);
        if (n == 0)
            return KP_OK;
        out->size += (size_t)n;
        total += (size_t)n;
        if (total > max)
            return too_large(path, max, error);
    }
}

kp_err kp__file_read(const char *path, size_t max, struct buf *out,
                     kp_error *error)
{
    int cancel_state, fd;
    kp_err err;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    do
        fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        err = system_refused(path, errno, error);
    } else {
        err = read_all(fd, path, max, out, error);
        (void)close(fd);
    }
    (void)pthread_setcancelstate(cancel_state, NULL);
    return err;
}
