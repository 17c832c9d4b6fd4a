/* SPDX-License-Identifier: BSD-2-Clause */
/* resolve_test.c - names to addresses, with the system's own resolver. */
#include "lib/helper/resolve.h"

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <string.h>

#include "test/support/main.h"

struct found {
    const struct address *addresses;
    const char *const *names;
    size_t count;
    kp_err err;
    const char *text;
};

static bool done(struct resolve *r, struct found *f)
{
    return kp__resolve_poll(r, &f->addresses, &f->names, &f->count, &f->err,
                            &f->text);
}

/* Wait for the wake-up, as a poller does. */
static void wait_for(struct resolve *r, struct wakeup *w, struct found *f)
{
    struct pollfd p = {.fd = w->read_fd, .events = POLLIN};

    while (!done(r, f)) {
        ck_assert_int_ge(poll(&p, 1, 30000), 1);
        kp__wakeup_clear(w);
    }
}

START_TEST(numbers_need_no_thread)
{
    static const struct {
        const char *host, *text;
    } rows[] = {
        {"127.0.0.1", "127.0.0.1:9092"},
        {"10.1.2.3", "10.1.2.3:9092"},
        {"::1", "[::1]:9092"},
        {"2001:db8::17", "[2001:db8::17]:9092"},
    };
    struct wakeup w;
    struct resolve *r;
    struct found f;
    char text[ADDRESS_TEXT_SIZE];

    ck_assert_int_eq(kp__wakeup_init(&w), 0);
    r = kp__resolve_begin(NULL, rows[_i].host, 9092, false, &w);
    ck_assert_ptr_nonnull(r);
    ck_assert(done(r, &f)); /* at once */
    ck_assert_int_eq(f.err, KP_OK);
    ck_assert_uint_eq(f.count, 1);
    ck_assert_ptr_null(f.names);
    kp__address_text(&f.addresses[0], text);
    ck_assert_str_eq(text, rows[_i].text);
    kp__resolve_end(r);
    kp__wakeup_fini(&w);
}
END_TEST

START_TEST(localhost_is_this_machine)
{
    struct wakeup w;
    struct resolve *r;
    struct found f;
    bool loopback = false;
    char text[ADDRESS_TEXT_SIZE];

    ck_assert_int_eq(kp__wakeup_init(&w), 0);
    r = kp__resolve_begin(NULL, "localhost", 80, _i == 1, &w);
    ck_assert_ptr_nonnull(r);
    wait_for(r, &w, &f);
    ck_assert_int_eq(f.err, KP_OK);
    ck_assert_uint_ge(f.count, 1);
    for (size_t i = 0; i < f.count; i++) {
        kp__address_text(&f.addresses[i], text);
        loopback = loopback || strcmp(text, "127.0.0.1:80") == 0 ||
                   strcmp(text, "[::1]:80") == 0;
        if (_i == 1) {
            ck_assert_ptr_nonnull(f.names[i]);
            ck_assert_uint_gt(strlen(f.names[i]), 0);
        }
        for (size_t k = 0; k < i; k++)
            ck_assert(!kp__address_equal(&f.addresses[i], &f.addresses[k]));
    }
    ck_assert(loopback);
    kp__resolve_end(r);
    kp__wakeup_fini(&w);
}
END_TEST

START_TEST(a_name_that_does_not_exist_says_so)
{
    struct wakeup w;
    struct resolve *r;
    struct found f;

    ck_assert_int_eq(kp__wakeup_init(&w), 0);
    r = kp__resolve_begin(NULL, "no\nsuch..name", 80, false, &w);
    ck_assert_ptr_nonnull(r);
    wait_for(r, &w, &f);
    ck_assert_int_eq(f.err, KP_ERESOLVE);
    ck_assert_uint_eq(f.count, 0);
    ck_assert_ptr_nonnull(strstr(f.text, "no address for \"no"));
    ck_assert_ptr_null(strchr(f.text, '\n')); /* shown, not printed */
    kp__resolve_end(r);
    kp__wakeup_fini(&w);
}
END_TEST

/* Whoever gives up may close the wake-up at once: nothing rings it later. */
START_TEST(given_up_look_ups_touch_nothing)
{
    for (int i = 0; i < 300; i++) {
        struct wakeup w;
        struct resolve *r;
        struct found f;

        ck_assert_int_eq(kp__wakeup_init(&w), 0);
        r = kp__resolve_begin(NULL, "localhost", 80, false, &w);
        ck_assert_ptr_nonnull(r);
        if (i % 3 == 0)
            (void)done(r, &f);
        if (i % 3 == 1)
            wait_for(r, &w, &f);
        kp__resolve_end(r);
        /* closed and, most likely, given out again as another file */
        kp__wakeup_fini(&w);
        ck_assert_int_eq(kp__wakeup_init(&w), 0);
        {
            struct pollfd p = {.fd = w.read_fd, .events = POLLIN};
            ck_assert_int_eq(poll(&p, 1, 0), 0);
        }
        kp__wakeup_fini(&w);
    }
}
END_TEST

START_TEST(what_is_no_address_is_shown_as_such)
{
    struct address a;
    char text[ADDRESS_TEXT_SIZE];

    memset(&a, 0, sizeof a);
    a.sa.ss_family = AF_UNIX;
    kp__address_text(&a, text);
    ck_assert_str_eq(text, "?");
}
END_TEST

static Suite *resolve_suite(void)
{
    Suite *s = suite_create("resolve");
    TCase *t = tcase_create("resolve");

    tcase_add_loop_test(t, numbers_need_no_thread, 0, 4);
    tcase_add_loop_test(t, localhost_is_this_machine, 0, 2);
    tcase_add_test(t, a_name_that_does_not_exist_says_so);
    tcase_add_test(t, given_up_look_ups_touch_nothing);
    tcase_add_test(t, what_is_no_address_is_shown_as_such);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(resolve_suite)
