/* SPDX-License-Identifier: BSD-2-Clause */
/* client_rig.c - a network client on a fake network.  One thread. */
#include "test/support/client_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/wait.h"

int probe_order;

static void node_ready(void *arg, struct node *n)
{
    struct rig *r = arg;

    (void)n;
    r->ready++;
}

static void node_can_send(void *arg, struct node *n)
{
    struct rig *r = arg;

    (void)n;
    r->can_send++;
}

static void node_down(void *arg, struct node *n, kp_err err)
{
    struct rig *r = arg;

    r->down++;
    r->down_err = err;
    r->last_down = n;
    if (r->on_down != NULL)
        r->on_down(r, n);
}

static void on_log(void *arg, const kp_log *line)
{
    struct rig *r = arg;

    (void)snprintf(r->log_text[r->log_count % 32], sizeof r->log_text[0],
                   "%s: %s", line->component, line->text);
    r->log_count++;
}

bool rig_logged(const struct rig *r, const char *text)
{
    for (size_t i = 0; i < 32; i++)
        if (strstr(r->log_text[i], text) != NULL)
            return true;
    return false;
}

static void set_bootstrap(struct rig *r, const char *bootstrap)
{
    char copy[512], *save = NULL, *one;

    (void)snprintf(copy, sizeof copy, "%s", bootstrap);
    for (one = strtok_r(copy, " ", &save); one != NULL;
         one = strtok_r(NULL, " ", &save)) {
        size_t i = r->settings.bootstrap_count++;
        char *colon = strrchr(one, ':');
        *colon = 0;
        (void)snprintf(r->hosts[i], sizeof r->hosts[i], "%s", one);
        r->bootstrap[i].host = r->hosts[i];
        r->bootstrap[i].port = (uint16_t)atoi(colon + 1);
    }
    r->settings.bootstrap = r->bootstrap;
}

static void set_defaults(struct settings *s)
{
    s->client_id = (char *)(uintptr_t) "rig";
    s->cluster_check = true;
    s->max_in_flight = 5;
    s->request_timeout_ns = 30 * KP_NS_PER_SEC;
    s->request_timeout_ms = 30000;
    s->max_block_ns = 60 * KP_NS_PER_SEC;
    s->metadata_max_age_ns = 300 * KP_NS_PER_SEC;
    s->metadata_max_idle_ns = 300 * KP_NS_PER_SEC;
    s->recovery = RECOVERY_REBOOTSTRAP;
    s->rebootstrap_trigger_ns = 300 * KP_NS_PER_SEC;
    s->reconnect_backoff_ns = 50 * KP_NS_PER_MS;
    s->reconnect_backoff_max_ns = 1000 * KP_NS_PER_MS;
    s->retry_backoff_ns = 100 * KP_NS_PER_MS;
    s->retry_backoff_max_ns = 1000 * KP_NS_PER_MS;
    s->setup_timeout_ns = 10 * KP_NS_PER_SEC;
    s->setup_timeout_max_ns = 30 * KP_NS_PER_SEC;
    s->max_idle_ns = 540 * KP_NS_PER_SEC;
    s->send_buffer = -1;
    s->receive_buffer = -1;
}

void rig_init(struct rig *r, const char *bootstrap)
{
    struct client_events events = {node_ready, node_can_send, node_down, r};

    memset(r, 0, sizeof *r);
    r->net = fake_net_create();
    r->env = fake_net_env(r->net, 42);
    set_defaults(&r->settings);
    set_bootstrap(r, bootstrap);
    kp__status_init(&r->status);
    r->metrics = kp__metrics_create(2, 30 * KP_NS_PER_SEC, "rig",
                                    fake_net_now_ns(r->net));
    r->log = kp__logger_create(KP_LOG_DEBUG, on_log, r, "rig", &r->env.clock);
    if (r->metrics == NULL || r->log == NULL ||
        kp__wakeup_init(&r->wakeup) != 0)
        abort();
    r->poller = r->env.poller->create(r->env.poller->arg, &r->wakeup);
    r->client = kp__client_create(&r->settings, &r->env, r->log, r->metrics,
                                  &r->status, &events);
    if (r->client == NULL)
        abort();
    kp__client_attach(r->client, r->poller, &r->wakeup);
}

void rig_fini(struct rig *r)
{
    kp__client_destroy(r->client);
    r->env.poller->destroy(r->poller);
    kp__wakeup_fini(&r->wakeup);
    kp__logger_destroy(r->log);
    kp__metrics_destroy(r->metrics);
    kp__status_fini(&r->status);
    if (fake_net_open_count(r->net) != 0)
        abort(); /* a socket was left open */
    fake_net_destroy(r->net);
}

void rig_turn(struct rig *r)
{
    struct poll_event events[64];
    int64_t now_ns = fake_net_now_ns(r->net);
    int n = r->env.poller->wait(r->poller, now_ns, now_ns, events, 64);

    (void)kp__client_read(r->client, events, (size_t)n, now_ns);
    kp__client_timers(r->client, now_ns);
    r->wrote = kp__client_write(r->client, now_ns);
    r->deadline_ns = kp__client_next_timer(r->client);
}

void rig_run(struct rig *r, int64_t ns)
{
    int64_t end_ns = fake_net_now_ns(r->net) + ns;

    for (;;) {
        int64_t now_ns = fake_net_now_ns(r->net), next_ns;
        /* what came of the last turn may be seen in this one */
        for (int i = 0; i < 4; i++)
            rig_turn(r);
        next_ns = r->deadline_ns > now_ns ? r->deadline_ns : now_ns + 1;
        if (next_ns >= end_ns)
            break;
        fake_net_advance_ns(r->net, next_ns - now_ns);
    }
    fake_net_advance_ns(r->net, end_ns - fake_net_now_ns(r->net));
    rig_turn(r);
}

struct node *rig_bootstrap_node(struct rig *r, size_t i)
{
    return kp__client_find(r->client, -1 - (int32_t)i);
}

bool rig_shake(struct rig *r, struct fake_conn *c)
{
    struct fake_request q;

    if (c == NULL || !fake_conn_request(c, &q) ||
        q.header.api_key != API_API_VERSIONS)
        return false;
    fake_conn_answer_versions(c, &q, -1, 0, 0);
    rig_turn(r);
    return true;
}

struct node *rig_connect(struct rig *r, const char *host, uint16_t port)
{
    struct node *n = rig_bootstrap_node(r, 0);

    fake_net_listen(r->net, host, port, FAKE_ACCEPTS);
    kp__client_connect(r->client, n, fake_net_now_ns(r->net));
    rig_turn(r); /* connected; the question is out */
    if (!rig_shake(r, fake_net_conn(r->net, host, port)) ||
        !kp__client_is_ready(n))
        abort();
    return n;
}

/* -- probes -- */

static void probe_done(void *arg, struct request *r, enum request_end end,
                       struct reader *body, kp_err err)
{
    struct probe *p = arg;

    p->ends++;
    p->end = end;
    p->err = err;
    p->order = ++probe_order;
    p->request = NULL;
    if (end == REQUEST_ANSWERED && p->decode)
        (void)kp__schema_decode(r->api->response, body, &p->arena, r->version,
                                kp__api_flexible(r->api, r->version),
                                &p->answer);
    kp__request_destroy(r);
}

static size_t probe_pieces(void *owner, struct iovec *out, size_t max)
{
    struct probe *p = owner;
    size_t size = strlen(p->splice), n = 0;

    if (max == 0)
        return size;
    for (; n < size && n < max; n++) {
        out[n].iov_base = (void *)(uintptr_t)(p->splice + n);
        out[n].iov_len = 1;
    }
    return n;
}

void probe_init(struct probe *p, struct rig *r, struct node *n)
{
    const struct api *api = kp__api(API_METADATA);
    int16_t version = kp__node_version(n, API_METADATA, INT16_MAX);
    const char *splice = p->splice;
    bool decode = p->decode;
    struct metadata_request q;

    if (version < 0)
        version = api->max_version;
    memset(p, 0, sizeof *p);
    p->splice = splice;
    p->decode = decode;
    kp__arena_init(&p->arena);
    p->request = kp__request_create(api, version);
    kp__request_begin(p->request, r->settings.client_id);
    kp__schema_defaults(api->request, &q);
    q.topics.null = false;
    kp__schema_encode(api->request, &p->request->frame, version,
                      kp__api_flexible(api, version), &q);
    if (splice != NULL) /* not Kafka any more, but bytes in order */
        kp__write_external(&p->request->frame, strlen(splice), p);
    p->request->pieces = probe_pieces;
    p->request->timeout_ns = r->settings.request_timeout_ns;
    p->request->done = probe_done;
    p->request->arg = p;
}

void probe_send(struct probe *p, struct rig *r, struct node *n)
{
    probe_init(p, r, n);
    kp__client_send(r->client, n, p->request, fake_net_now_ns(r->net));
}

void probe_fini(struct probe *p)
{
    kp__arena_fini(&p->arena);
}
