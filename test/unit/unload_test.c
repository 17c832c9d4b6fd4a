/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared library loaded by name, used, and given back with dlclose(3): O14 of
 * ../FAULTS.md.  KP_LIBRARY in the environment is its path; this program's own
 * copy of the library is the broker's. */
#include <dlfcn.h>
#include <unistd.h>

#include "test/unit/public_fixture.h"

#include "test/support/main.h"

/* An uninstrumented library is not these tools' to judge. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CAN_LOAD

#define CALLS(X) \
    X(kp_config_create) \
    X(kp_config_destroy) \
    X(kp_config_set) \
    X(kp_producer_create) \
    X(kp_producer_destroy) \
    X(kp_close) \
    X(kp_send) \
    X(kp_future_wait) \
    X(kp_future_release)

struct loaded {
    void *handle;
#define POINTER(name) __typeof__(name) *name;
    CALLS(POINTER)
#undef POINTER
};

static struct loaded load(void)
{
    const char *path = getenv("KP_LIBRARY");
    struct loaded l;
    void *at;

    ck_assert_msg(path != NULL, "KP_LIBRARY is not set");
    l.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(l.handle != NULL, "%s", dlerror());
#define FIND(name) \
    at = dlsym(l.handle, #name); \
    ck_assert_ptr_nonnull(at); \
    memcpy(&l.name, &at, sizeof(at));
    CALLS(FIND)
#undef FIND
    return l;
}

static kp_producer *begin(const struct loaded *l, const char *servers,
                          const char *lookup)
{
    kp_config *c;
    kp_producer *p;

    ASSERT_OK(l->kp_config_create(&c));
    ASSERT_OK(l->kp_config_set(c, "bootstrap.servers", servers, &error));
    ASSERT_OK(l->kp_config_set(c, "client.dns.lookup", lookup, &error));
    ASSERT_OK(l->kp_producer_create(&p, c, &error));
    l->kp_config_destroy(c);
    return p;
}

/* -- what is left -- */

static void a_life(const struct loaded *l)
{
    kp_producer *p = begin(l, kp_broker_bootstrap(broker), "use_all_dns_ips");
    kp_record r = record_of("t", "v");
    kp_future f;
    kp_report report;

    ASSERT_OK(l->kp_send(p, &r, &f));
    ASSERT_OK(l->kp_future_wait(&f, SOON_MS, &report));
    l->kp_future_release(&f, 1);
    ASSERT_OK(l->kp_close(p, SOON_MS, &error));
    ASSERT_OK(l->kp_producer_destroy(p));
}

/* A closed producer has no thread left in the library, also of such as were used
 * from threads that go on: their ends find what they need. */
struct user {
    _Atomic int used, may_end;
};

static void *use_and_stay(void *arg)
{
    struct user *u = arg;
    struct loaded l = load();

    a_life(&l);
    ck_assert_int_eq(dlclose(l.handle), 0);
    atomic_store(&u->used, 1);
    while (atomic_load(&u->may_end) == 0)
        pause_ms(1);
    return NULL;
}

START_TEST(a_closed_producer_leaves_no_thread)
{
    int before = threads_at_rest(), with_one = before + 1;

    for (int i = 0; i < 20; i++) {
        struct user u = {0, 0};
        struct loaded l = load();
        pthread_t thread;

        ck_assert_int_eq(pthread_create(&thread, NULL, use_and_stay, &u), 0);
        a_life(&l);
        while (atomic_load(&u.used) == 0)
            pause_ms(1);
        ck_assert_int_eq(dlclose(l.handle), 0);
        /* a thread that was joined is listed for a moment yet */
        ck_assert(becomes_true(threads_are, &with_one));
        atomic_store(&u.may_end, 1);
        (void)pthread_join(thread, NULL);
        ck_assert(becomes_true(threads_are, &before));
    }
    ck_assert_uint_eq(stored_count("t", 0), 40);
}
END_TEST

/* A name that is being looked up keeps a thread until the system has answered,
 * which may take as long as it likes: no close waits for it, so the code it
 * comes back to has to be there. */
START_TEST(a_look_up_outlives_its_library)
{
    int before = threads_at_rest();
    void *again;

    for (int i = 0; i < 300; i++) {
        struct loaded l = load();
        kp_producer *p = begin(&l, "localhost:1",
                               "resolve_canonical_bootstrap_servers_only");

        if (i % 3 == 0)
            pause_ms(1);
        ASSERT_OK(l.kp_producer_destroy(p));
        ck_assert_int_eq(dlclose(l.handle), 0);
    }
    ck_assert(becomes_true(threads_are, &before));
    again = dlopen(getenv("KP_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
    ck_assert_msg(again != NULL, "it was unmapped");
    ck_assert_int_eq(dlclose(again), 0);
}
END_TEST
#endif

START_TEST(there_is_a_library)
{
    const char *path = getenv("KP_LIBRARY");

    ck_assert_msg(path != NULL && access(path, R_OK) == 0, "%s: no library",
                  path != NULL ? path : "KP_LIBRARY");
}
END_TEST

static Suite *unload_suite(void)
{
    Suite *s = suite_create("unload");
    TCase *t = tcase_create("unload");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup_broker, teardown_broker);
    tcase_add_test(t, there_is_a_library);
#ifdef CAN_LOAD
    tcase_add_test(t, a_closed_producer_leaves_no_thread);
    tcase_add_test(t, a_look_up_outlives_its_library);
#endif
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(unload_suite)
