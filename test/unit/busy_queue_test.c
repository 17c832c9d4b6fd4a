/* SPDX-License-Identifier: BSD-2-Clause */
/* A partition whose lock is taken when the I/O thread looks: it is come back to
 * at the end of the same turn, and nothing is lost or late.
 *
 * The test holds the lock as a sender would, and lets go of it from within the
 * turn, when the turn opens a connection for another partition: after the first
 * look and before the second. */
#include <pthread.h>

#include "test/support/main.h"
#include "test/support/world.h"
#include "test/support/world_state.h"

#define MS KP_NS_PER_MS

static struct world *the_world;
static struct partition_queue *held;
static enum standing stood;
static kp_err (*real_connect)(void *arg, const struct address *to,
                              int32_t send_buffer, int32_t receive_buffer,
                              int64_t user_timeout_ns, struct transport **out,
                              int *sys_errno);

static kp_err let_go_and_connect(void *arg, const struct address *to,
                                 int32_t send_buffer, int32_t receive_buffer,
                                 int64_t user_timeout_ns,
                                 struct transport **out, int *sys_errno)
{
    if (held != NULL) {
        stood = held->sender->standing;
        kp__mutex_drop(&held->lock);
        held = NULL;
    }
    return real_connect(arg, to, send_buffer, receive_buffer, user_timeout_ns,
                        out, sys_errno);
}

static struct partition_queue *queue_led_by(struct world *w, int32_t node)
{
    const struct topic_view *v =
        kp__topic_view(kp__topics_find(w->p->topics, "t", 1));

    for (int32_t i = 0; i < v->count; i++)
        if (kb_leader(world_cluster(w), "t", i) == node)
            return v->queues[i];
    ck_abort_msg("node %d leads nothing", (int)node);
}

/* One node has had a record, and the others are not connected to. */
static struct world *begin(const char *linger_ms)
{
    the_world = world_begin(&(struct world_options){
        .nodes = 3,
        .partitions = 6,
        .bootstrap = "10.0.0.1:9092",
        .settings = WORLD_SETTINGS("linger.ms", linger_ms)});
    real_connect = the_world->transport.connect;
    the_world->transport.connect = let_go_and_connect;
    stood = STANDS_IDLE;
    (void)world_send(the_world, queue_led_by(the_world, 1)->partition);
    world_settle(the_world);
    return the_world;
}

static void hold(struct partition_queue *q)
{
    held = q;
    kp__mutex_take(&q->lock);
}

START_TEST(it_is_sent_in_its_turn)
{
    struct world *w = begin("0");
    struct partition_queue *busy = queue_led_by(w, 1);
    struct partition_queue *other = queue_led_by(w, 2);
    struct world_record *a, *b, *c;

    a = world_send(w, busy->partition);
    b = world_send(w, busy->partition);
    c = world_send(w, other->partition);
    hold(busy);
    world_run_ms(w, 50);
    ck_assert_ptr_null(held);
    ck_assert_int_eq(stood, STANDS_BUSY);
    world_expect(a, KP_OK, KP_OK, KP_STORED_YES, 1);
    world_expect(b, KP_OK, KP_OK, KP_STORED_YES, 2);
    /* there and back: no timer had to come round */
    ck_assert_int_le(b->reported_ns - b->called_ns, 3 * MS);
    world_settle(w);
    world_expect(c, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* Found ready after the turn has sent what it could, at a node that nobody has
 * connected to yet: that is done at once, not when something else happens. */
START_TEST(its_node_is_connected_to)
{
    struct world *w = begin("0");
    struct partition_queue *busy = queue_led_by(w, 3);
    struct partition_queue *other = queue_led_by(w, 2);
    struct world_record *a, *b;

    a = world_send(w, busy->partition);
    b = world_send(w, other->partition);
    hold(busy);
    world_settle(w);
    ck_assert_ptr_null(held);
    ck_assert_int_eq(stood, STANDS_BUSY);
    world_expect(a, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_expect(b, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_le(a->reported_ns, b->reported_ns);
    world_check(w);
    world_end(w);
}
END_TEST

/* It lingers as any other, from when its batch was opened. */
START_TEST(it_lingers_as_others_do)
{
    struct world *w = begin("20");
    struct partition_queue *busy = queue_led_by(w, 1);
    struct partition_queue *other = queue_led_by(w, 2);
    struct world_record *a;

    a = world_send(w, busy->partition);
    hold(busy);
    /* full at once, so that its node is connected to in the same turn */
    (void)world_send_many(w, other->partition, 2, 16000);
    world_run_ms(w, 10);
    ck_assert_ptr_null(held);
    ck_assert_int_eq(stood, STANDS_BUSY);
    ck_assert(!a->reported);
    world_settle(w);
    world_expect(a, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_ge(a->reported_ns - a->called_ns, 20 * MS);
    ck_assert_int_le(a->reported_ns - a->called_ns, 25 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *busy_queue_suite(void)
{
    Suite *s = suite_create("busy_queue");
    TCase *t = tcase_create("busy_queue");

    tcase_add_test(t, it_is_sent_in_its_turn);
    tcase_add_test(t, its_node_is_connected_to);
    tcase_add_test(t, it_lingers_as_others_do);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(busy_queue_suite)
