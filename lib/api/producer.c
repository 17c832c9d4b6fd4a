/* SPDX-License-Identifier: BSD-2-Clause */
/* producer.c - the life of a producer.  Application threads.
 *
 * open -> closing (takes no more; the I/O thread delivers) -> stopping (one
 * caller joins the thread) -> stopped.  Invariant: life only moves forward;
 * whoever moves it to stopping joins.  Java: KafkaProducer's constructor and
 * close. */
#include "lib/api/producer.h"

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/thread.h"

/* -- ops -- */

void kp__producer_post_op(struct kp_producer *p, struct op *op)
{
    kp__op_post(&p->ops, op);
    kp__io_wake(&p->bell, 0);
    /* seq_cst: either the I/O thread, ending, sees the op or we see its end. */
    if (atomic_load(&p->ended) != 0)
        kp__ops_finish(&p->ops);
}

bool kp__producer_post(struct kp_producer *p, enum op_kind kind,
                       const char *topic, size_t size)
{
    struct op *op = kp__op_create(kind, topic, size);

    if (op == NULL)
        return false;
    kp__producer_post_op(p, op);
    kp__op_unref(op);
    return true;
}

kp_err kp__check_waiting_call(const struct kp_producer *p, const char *what,
                              int64_t timeout_ms, kp_error *error)
{
    if (p == NULL)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "%s: the producer is NULL: give what "
                             "kp_producer_create made",
                             what);
    if (timeout_ms < KP_FOREVER)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "%s: timeout_ms is %lld; use KP_FOREVER, 0 or "
                             "more",
                             what, (long long)timeout_ms);
    if (p->fork_generation != kp__fork_generation())
        return kp__error_set(error, KP_EFORK, KP_OK,
                             "%s: the producer belongs to the parent process; "
                             "make one after fork",
                             what);
    if (timeout_ms != 0 && kp__in_callback())
        return kp__error_set(error, KP_EDEADLK, KP_OK,
                             "%s: waiting in a callback would stop the thread "
                             "that is waited for; use timeout 0 or another "
                             "thread",
                             what);
    return KP_OK;
}

/* -- create -- */

/* An op that was made and never posted. */
static void drop_spare(struct op *op)
{
    if (op == NULL)
        return;
    kp__op_unref(op);
    kp__op_unref(op);
}

static void producer_free(struct kp_producer *p)
{
    if (p == NULL)
        return;
    drop_spare(atomic_exchange(&p->spare_close, NULL));
    /* Ops that nobody served any more. */
    kp__ops_finish(&p->ops);
    if (p->topics != NULL)
        kp__topics_destroy(p->topics);
    kp__compressors_fini(&p->compressors);
    if (p->accumulator.pool != NULL)
        kp__accumulator_fini(&p->accumulator);
    if (p->pool != NULL)
        kp__pool_unref(p->pool);
    if (p->metrics != NULL)
        kp__metrics_destroy(p->metrics);
    kp__status_fini(&p->status);
    kp__wakeup_fini(&p->bell.wakeup);
    kp__mutex_fini(&p->unwatched_lock);
    if (p->log != NULL)
        kp__logger_destroy(p->log);
    kp__settings_fini(&p->settings);
    kp__free(p);
}

static kp_err make_parts(struct kp_producer *p, kp_error *error)
{
    const struct settings *s = &p->settings;
    kp_err err;
    int sys = kp__wakeup_init(&p->bell.wakeup);

    if (sys != 0) {
        p->bell.wakeup.read_fd = p->bell.wakeup.write_fd = -1;
        return kp__error_set(error, KP_ENOMEM, KP_OK,
                             "the system gave no file descriptor for wake-ups "
                             "(errno %d): see ulimit -n",
                             sys);
    }
    p->log = kp__logger_create(s->log_level, s->log_fn, s->log_arg,
                               s->client_id, &p->clock);
    p->pool = kp__pool_create(s->buffer_memory);
    p->metrics = kp__metrics_create(s->metrics_samples, s->metrics_window_ns,
                                    s->client_id, kp__now_ns(&p->clock));
    p->topics = kp__topics_create(&p->accumulator);
    atomic_store(&p->spare_close, kp__op_create(OP_CLOSE, NULL, 0));
    if (p->metrics == NULL)
        return kp__error_set(error, KP_ENOMEM, KP_OK,
                             "no memory for metrics with "
                             "metrics.num.samples=%d: ask for fewer",
                             (int)s->metrics_samples);
    if (p->log == NULL || p->pool == NULL || p->topics == NULL ||
        atomic_load(&p->spare_close) == NULL)
        return kp__error_set(error, KP_ENOMEM, KP_OK,
                             "no memory for a producer with buffer.memory=%zu",
                             s->buffer_memory);
    err = kp__compressors_init(&p->compressors, s->codec, s->codec_level,
                               kp__raw_max(s));
    if (err == KP_ENOTSUP)
        return kp__error_set(error, err, KP_OK,
                             "compression.type: this build of libkp lacks the "
                             "codec; it has: %s",
                             kp__codec_names());
    if (err != KP_OK)
        return kp__error_set(error, err, KP_OK,
                             "no memory for %zu compressors of %zu bytes: "
                             "lower batch.size and max.request.size",
                             p->compressors.count, kp__raw_max(s));
    kp__accumulator_init(&p->accumulator, s, &p->clock, p->pool,
                         &p->compressors, &p->bell);
    return KP_OK;
}

kp_err kp__producer_make(struct kp_producer **out, const kp_config *config,
                         const struct clock *clock, kp_error *error)
{
    struct kp_producer *p = kp__alloc_aligned(128, sizeof(*p));
    kp_err err;

    if (p == NULL)
        return kp__error_set(error, KP_ENOMEM, KP_OK,
                             "no memory for a producer");
    p->clock = *clock;
    p->bell.wakeup.read_fd = p->bell.wakeup.write_fd = -1;
    kp__fork_watch();
    p->fork_generation = kp__fork_generation();
    kp__mutex_init(&p->unwatched_lock);
    kp__status_init(&p->status);
    kp__ops_init(&p->ops);
    err = kp__settings_make(&p->settings, config, error);
    if (err == KP_OK)
        err = make_parts(p, error);
    if (err != KP_OK) {
        producer_free(p);
        return err;
    }
    *out = p;
    return KP_OK;
}

static kp_err make_and_start(struct kp_producer **out, const kp_config *config,
                             kp_error *error)
{
    struct kp_producer *p;
    kp_err err = kp__producer_make(&p, config, &kp__system_clock, error);

    if (err != KP_OK)
        return err;
    err = kp__io_thread_start(p, error);
    if (err != KP_OK) {
        producer_free(p);
        return err;
    }
    *out = p;
    return KP_OK;
}

kp_err kp_producer_create(kp_producer **out, const kp_config *config,
                          kp_error *error)
{
    int cancel_state;
    kp_err err;

    if (out == NULL || config == NULL)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "kp_producer_create: out and config must not be "
                             "NULL");
    cancel_state = kp__cancel_off();
    err = make_and_start(out, config, error);
    kp__cancel_on(cancel_state);
    return err;
}

/* -- close -- */

static void stop_taking(struct kp_producer *p)
{
    uint32_t taking = TAKING_RECORDS;

    /* A fatal producer stays fatal: sends go on to say why. */
    atomic_compare_exchange_strong(&p->accumulator.taking, &taking,
                                   TAKING_CLOSED);
    kp__pool_close(p->pool);
    kp__topics_wake_all(p->topics);
}

/* Join the thread, whoever of the closers comes first; the others wait for it.
 * */
static void join_once(struct kp_producer *p)
{
    uint32_t life = LIFE_CLOSING;

    if (atomic_compare_exchange_strong(&p->life, &life, LIFE_STOPPING)) {
        kp__io_thread_stop(p);
        atomic_store(&p->life, LIFE_STOPPED);
        kp__wake(&p->life, INT32_MAX);
        return;
    }
    while (atomic_load(&p->life) != LIFE_STOPPED)
        (void)kp__wait(&p->life, LIFE_STOPPING, KP_NEVER);
}

static kp_err close_result(struct kp_producer *p, kp_error *error)
{
    kp_err err = kp__producer_take_unwatched(p, error);
    uint64_t left = atomic_load(&p->left_over);

    if (err == KP_OK)
        err = kp__producer_fatal(p, error);
    if (left != 0)
        return kp__error_set(error, KP_ECLOSED, err,
                             "the close's timeout came before everything was "
                             "delivered: %llu record(s) were left and have "
                             "failed, see their reports; a longer timeout_ms "
                             "gives them more time",
                             (unsigned long long)left);
    return err;
}

struct op *kp__close_begin(struct kp_producer *p, int64_t timeout_ms)
{
    uint32_t life = LIFE_OPEN;
    struct op *op = kp__op_create(OP_CLOSE, NULL, 0);

    if (op == NULL)
        op = atomic_exchange(&p->spare_close, NULL);
    if (op == NULL)
        return NULL;
    op->deadline_ns = kp__deadline_ns(kp__now_ns(&p->clock), timeout_ms);
    stop_taking(p);
    atomic_compare_exchange_strong(&p->life, &life, LIFE_CLOSING);
    kp__producer_post_op(p, op);
    return op;
}

static kp_err no_memory_to_close(kp_error *error)
{
    return kp__error_set(error, KP_ENOMEM, KP_OK,
                         "kp_close: no memory; try again, or call "
                         "kp_producer_destroy, which needs none");
}

static kp_err close_from_callback(struct kp_producer *p, kp_error *error)
{
    struct op *op = kp__close_begin(p, 0);

    if (op == NULL)
        return no_memory_to_close(error);
    kp__op_unref(op);
    return kp__error_set(error, KP_PENDING, KP_OK,
                         "kp_close: begun with timeout 0, as a callback may "
                         "not wait; close again from another thread to wait "
                         "for its end");
}

kp_err kp_close(kp_producer *p, int64_t timeout_ms, kp_error *error)
{
    int cancel_state;
    struct ticket t;
    struct op *op;
    kp_err err;

    if (p != NULL && timeout_ms >= KP_FOREVER && kp__io_thread_is_me(p))
        timeout_ms = 0; /* a callback of its own: as far as can be */
    err = kp__check_waiting_call(p, "kp_close", timeout_ms, error);
    if (err != KP_OK)
        return err;
    if (atomic_load(&p->life) == LIFE_STOPPED)
        return close_result(p, error);
    /* Not even for another producer's end: it may wait for ours. */
    if (kp__in_callback())
        return close_from_callback(p, error);
    op = kp__close_begin(p, timeout_ms);
    if (op == NULL)
        return no_memory_to_close(error);
    /* The I/O thread keeps the deadline; its reports come before its answer. */
    while (!kp__op_is_done(op)) {
        kp__op_ticket(op, KP_NEVER, &t);
        (void)kp__ticket_wait(&t);
    }
    kp__op_unref(op);
    cancel_state = kp__cancel_off();
    join_once(p);
    kp__cancel_on(cancel_state);
    return close_result(p, error);
}

static kp_err destroy(struct kp_producer *p)
{
    if (p->fork_generation != kp__fork_generation()) {
        /* Memory that the parent's threads were changing at the fork cannot be
         * walked safely: the child keeps its copy of the pages until it ends.
         * */
        kp__io_thread_abandon(p);
        kp__wakeup_fini(&p->bell.wakeup);
        return KP_OK;
    }
    /* No memory, and the spare op is in use: a close is under way already. */
    if (atomic_load(&p->life) != LIFE_STOPPED &&
        kp_close(p, 0, NULL) == KP_ENOMEM)
        join_once(p);
    producer_free(p);
    return KP_OK;
}

kp_err kp_producer_destroy(kp_producer *p)
{
    int cancel_state;
    kp_err err;

    if (p == NULL)
        return KP_OK;
    if (kp__in_callback())
        return KP_EDEADLK;
    cancel_state = kp__cancel_off();
    err = destroy(p);
    kp__cancel_on(cancel_state);
    return err;
}

/* -- a producer that has come to its end -- */

kp_err kp__producer_fatal(struct kp_producer *p, kp_error *error)
{
    kp_error found;
    kp_err err;

    /* acquire: pairs with the release that follows the status' text */
    if (atomic_load_explicit(&p->accumulator.taking, memory_order_acquire) !=
        TAKING_FATAL)
        return KP_OK;
    err = kp__status_get(&p->status, NULL, 0, &found);
    if (error != NULL)
        *error = found;
    return err;
}

/* -- failures that nobody watched -- */

kp_err kp__producer_take_unwatched(struct kp_producer *p, kp_error *error)
{
    uint64_t count;
    kp_err first;

    count = kp__producer_unwatched(p, &first);
    if (count == 0)
        return KP_OK;
    return kp__error_set(error, first, KP_OK,
                         "%llu record(s) without future, callback or queue "
                         "failed; the first with %s: %s",
                         (unsigned long long)count, kp_err_name(first),
                         kp_err_text(first));
}
