/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_net.c - a network in memory.  One thread.
 *
 * A client's socket and the server's end of it are one object: two byte queues
 * and what either side has done to it. */
#include "test/support/fake_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/list.h"
#include "test/support/mem_net.h"

#define NAMES_MAX 64
#define LISTENERS_MAX 64
#define ATTEMPTS_MAX 4096

struct name {
    char name[128];
    struct address addresses[16];
    size_t count;
    bool hold;
};

struct listener {
    struct address address;
    enum fake_listener how;
    char canonical[128];
};

struct bytes {
    uint8_t *data;
    size_t size;
};

struct fake_conn {
    struct transport socket;
    struct address to;
    enum fake_listener how;
    bool connected;
    bool fin, reset, broken;
    struct bytes to_server, to_client;
    size_t asked; /* of to_server: the request handed out last */
    size_t write_step, write_room, read_step;
};

struct fake_net {
    struct mem_net mem;
    int64_t now_ns;
    struct name names[NAMES_MAX];
    size_t name_count;
    struct listener listeners[LISTENERS_MAX];
    size_t listener_count;
    char attempts[ATTEMPTS_MAX][ADDRESS_TEXT_SIZE];
    int64_t attempt_ns[ATTEMPTS_MAX];
    size_t attempt_count, lookups;
    struct transport_ops transport;
    struct resolver_ops resolver;
};

struct resolve {
    struct fake_net *net;
    char host[128];
    uint16_t port;
    bool canonical;
    struct address addresses[16];
    const char *names[16];
    char text[160];
};

static void *must(void *p)
{
    if (p == NULL)
        abort();
    return p;
}

/* -- addresses -- */

static void set_port(struct address *a, uint16_t port)
{
    if (a->sa.ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)&a->sa)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)(void *)&a->sa)->sin6_port = htons(port);
}

static struct listener *find_listener(struct fake_net *net,
                                      const struct address *a, bool make)
{
    struct listener *l;

    for (size_t i = 0; i < net->listener_count; i++)
        if (kp__address_equal(&net->listeners[i].address, a))
            return &net->listeners[i];
    if (!make)
        return NULL;
    if (net->listener_count == LISTENERS_MAX)
        abort();
    l = &net->listeners[net->listener_count++];
    memset(l, 0, sizeof *l);
    l->address = *a;
    return l;
}

void fake_net_listen(struct fake_net *net, const char *host, uint16_t port,
                     enum fake_listener how)
{
    struct address a;

    if (!mem_net_address(host, port, &a))
        abort();
    find_listener(net, &a, true)->how = how;
}

void fake_net_canonical(struct fake_net *net, const char *address,
                        const char *name)
{
    struct address a;

    if (!mem_net_address(address, 0, &a))
        abort();
    (void)snprintf(find_listener(net, &a, true)->canonical, 128, "%s", name);
}

/* -- transports -- */

static enum fake_listener how_of(struct fake_net *net, const struct address *a)
{
    const struct listener *l = find_listener(net, a, false);

    return l == NULL ? FAKE_REFUSES : l->how;
}

static void note_attempt(struct fake_net *net, const struct address *to)
{
    if (net->attempt_count == ATTEMPTS_MAX)
        abort();
    kp__address_text(to, net->attempts[net->attempt_count]);
    net->attempt_ns[net->attempt_count] = net->now_ns;
    net->attempt_count++;
}

/* What the system says at once; 0: nothing. */
static int errno_of(enum fake_listener how)
{
    switch (how) {
    case FAKE_UNREACHABLE:
        return ENETUNREACH;
    case FAKE_NO_ADDRESS:
        return EADDRNOTAVAIL;
    case FAKE_FORBIDDEN:
        return EACCES;
    case FAKE_NO_SOCKET:
        return EMFILE;
    default:
        return 0;
    }
}

static kp_err t_connect(void *arg, const struct address *to,
                        int32_t send_buffer, int32_t receive_buffer,
                        int64_t user_timeout_ns, struct transport **out,
                        int *sys_errno)
{
    struct fake_net *net = arg;
    enum fake_listener how = how_of(net, to);
    struct fake_conn *c;

    (void)send_buffer;
    (void)receive_buffer;
    (void)user_timeout_ns;
    note_attempt(net, to);
    if (errno_of(how) != 0) {
        *sys_errno = errno_of(how);
        return KP_ECONNECT;
    }
    c = must(calloc(1, sizeof *c));
    c->to = *to;
    c->how = how;
    c->write_step = c->write_room = c->read_step = SIZE_MAX;
    mem_net_add(&net->mem, &c->socket);
    *out = &c->socket;
    return KP_OK;
}

static struct fake_conn *conn_of(struct transport *t)
{
    mem_net_check_open(t);
    return KP_CONTAINER(t, struct fake_conn, socket);
}

static enum io_result t_finish(struct transport *t, int *sys_errno)
{
    struct fake_conn *c = conn_of(t);

    if (c->how == FAKE_SILENT)
        return IO_AGAIN;
    if (c->how == FAKE_REFUSES || c->how == FAKE_NO_ROUTE) {
        *sys_errno = c->how == FAKE_REFUSES ? ECONNREFUSED : EHOSTUNREACH;
        return IO_ERROR;
    }
    c->connected = true;
    return IO_DONE;
}

static void append(struct bytes *b, const void *data, size_t size)
{
    if (size == 0)
        return;
    b->data = must(realloc(b->data, b->size + size));
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void drop(struct bytes *b, size_t size)
{
    if (size > b->size)
        abort();
    if (size > 0)
        memmove(b->data, b->data + size, b->size - size);
    b->size -= size;
}

static enum io_result t_writev(struct transport *t, const struct iovec *iov,
                               int count, size_t *written, int *sys_errno)
{
    struct fake_conn *c = conn_of(t);
    size_t left = c->write_step < c->write_room ? c->write_step : c->write_room;

    if (count <= 0 || count > 1024)
        abort();
    if (c->reset || c->broken) {
        *sys_errno = EPIPE;
        return IO_ERROR;
    }
    if (left == 0) {
        *sys_errno = EAGAIN;
        return IO_AGAIN;
    }
    *written = 0;
    for (int i = 0; i < count && left > 0; i++) {
        size_t n = iov[i].iov_len < left ? iov[i].iov_len : left;
        append(&c->to_server, iov[i].iov_base, n);
        left -= n;
        *written += n;
    }
    if (c->write_room != SIZE_MAX)
        c->write_room -= *written;
    return IO_DONE;
}

static enum io_result t_read(struct transport *t, void *buf, size_t size,
                             size_t *got, int *sys_errno)
{
    struct fake_conn *c = conn_of(t);
    size_t n = c->to_client.size;

    if (n == 0 && c->reset) {
        *sys_errno = ECONNRESET;
        return IO_ERROR;
    }
    if (n == 0 && c->fin)
        return IO_CLOSED;
    if (n == 0) {
        *sys_errno = EAGAIN;
        return IO_AGAIN;
    }
    n = n < size ? n : size;
    n = n < c->read_step ? n : c->read_step;
    memcpy(buf, c->to_client.data, n);
    drop(&c->to_client, n);
    *got = n;
    return IO_DONE;
}

/* -- the poller -- */

void fake_net_fail_changes(struct fake_net *net, int times)
{
    net->mem.failing_changes = times;
}

static uint32_t ready(const struct transport *t)
{
    const struct fake_conn *c = KP_CONTAINER(t, const struct fake_conn, socket);
    uint32_t events = 0;

    if (!c->connected)
        return c->how == FAKE_SILENT ? 0 : POLL_WRITE;
    if (c->reset)
        return POLL_READ | POLL_WRITE;
    if (c->to_client.size > 0 || c->fin)
        events |= POLL_READ;
    if (c->write_step > 0 && c->write_room > 0)
        events |= POLL_WRITE;
    return events & t->want;
}

/* -- names -- */

static struct name *find_name(struct fake_net *net, const char *name, bool make)
{
    struct name *n;

    for (size_t i = 0; i < net->name_count; i++)
        if (strcmp(net->names[i].name, name) == 0)
            return &net->names[i];
    if (!make)
        return NULL;
    if (net->name_count == NAMES_MAX)
        abort();
    n = &net->names[net->name_count++];
    memset(n, 0, sizeof *n);
    (void)snprintf(n->name, sizeof n->name, "%s", name);
    return n;
}

void fake_net_name(struct fake_net *net, const char *name,
                   const char *addresses)
{
    struct name *n = find_name(net, name, true);
    char copy[512], *save = NULL, *one;

    n->count = 0;
    (void)snprintf(copy, sizeof copy, "%s", addresses == NULL ? "" : addresses);
    for (one = strtok_r(copy, " ", &save); one != NULL;
         one = strtok_r(NULL, " ", &save)) {
        if (n->count == 16 || !mem_net_address(one, 0, &n->addresses[n->count]))
            abort();
        n->count++;
    }
}

void fake_net_hold_name(struct fake_net *net, const char *name, bool hold)
{
    find_name(net, name, true)->hold = hold;
}

static struct resolve *r_begin(void *arg, const char *host, uint16_t port,
                               bool canonical, struct wakeup *wakeup)
{
    struct resolve *r = must(calloc(1, sizeof *r));

    (void)wakeup;
    r->net = arg;
    r->port = port;
    r->canonical = canonical;
    r->net->lookups++;
    (void)snprintf(r->host, sizeof r->host, "%s", host);
    return r;
}

static size_t meanings(struct resolve *r)
{
    const struct name *n = find_name(r->net, r->host, false);

    if (n == NULL && mem_net_address(r->host, 0, &r->addresses[0]))
        return 1;
    if (n == NULL)
        return 0;
    memcpy(r->addresses, n->addresses, sizeof r->addresses);
    return n->count;
}

static void name_them(struct resolve *r, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct listener *l =
            find_listener(r->net, &r->addresses[i], false);
        r->names[i] =
            l == NULL || l->canonical[0] == 0 ? r->host : l->canonical;
    }
}

static bool r_poll(struct resolve *r, const struct address **addresses,
                   const char *const **names, size_t *count, kp_err *err,
                   const char **text)
{
    const struct name *n = find_name(r->net, r->host, false);

    if (n != NULL && n->hold)
        return false;
    *count = meanings(r);
    name_them(r, *count);
    for (size_t i = 0; i < *count; i++)
        set_port(&r->addresses[i], r->port);
    *addresses = r->addresses;
    *names = r->canonical ? r->names : NULL;
    *err = *count == 0 ? KP_ERESOLVE : KP_OK;
    (void)snprintf(r->text, sizeof r->text, "no address for \"%s\"", r->host);
    *text = r->text;
    return true;
}

static void r_end(struct resolve *r)
{
    free(r);
}

/* -- the world -- */

static int64_t mono(void *arg)
{
    return ((struct fake_net *)arg)->now_ns;
}

static int64_t wall(void *arg)
{
    return ((struct fake_net *)arg)->now_ns / KP_NS_PER_MS;
}

struct fake_net *fake_net_create(void)
{
    struct fake_net *net = must(calloc(1, sizeof *net));

    net->now_ns = KP_NS_PER_SEC;
    mem_net_init(&net->mem, ready);
    net->transport =
        (struct transport_ops){t_connect,  t_finish,      t_writev, t_read,
                               mem_net_fd, mem_net_close, net};
    net->resolver = (struct resolver_ops){r_begin, r_poll, r_end, net};
    return net;
}

void fake_net_destroy(struct fake_net *net)
{
    struct transport *t = net->mem.first;

    while (t != NULL) {
        struct fake_conn *c = KP_CONTAINER(t, struct fake_conn, socket);

        t = t->next;
        free(c->to_server.data);
        free(c->to_client.data);
        free(c);
    }
    free(net);
}

struct io_env fake_net_env(struct fake_net *net, uint64_t seed)
{
    return (struct io_env){
        .clock = {mono, mono, wall, net},
        .seed = seed,
        .transport = &net->transport,
        .poller = &net->mem.poller,
        .resolver = &net->resolver,
    };
}

int64_t fake_net_now_ns(const struct fake_net *net)
{
    return net->now_ns;
}

void fake_net_advance_ns(struct fake_net *net, int64_t ns)
{
    net->now_ns += ns;
}

size_t fake_net_attempts(const struct fake_net *net)
{
    return net->attempt_count;
}

const char *fake_net_attempt(const struct fake_net *net, size_t i)
{
    return i < net->attempt_count ? net->attempts[i] : "";
}

int64_t fake_net_attempt_ns(const struct fake_net *net, size_t i)
{
    return i < net->attempt_count ? net->attempt_ns[i] : -1;
}

size_t fake_net_open_count(const struct fake_net *net)
{
    size_t n = 0;

    for (const struct transport *t = net->mem.first; t != NULL; t = t->next)
        n += t->closed ? 0 : 1;
    return n;
}

size_t fake_net_lookups(const struct fake_net *net)
{
    return net->lookups;
}

/* -- the server's end -- */

struct fake_conn *fake_net_conn(struct fake_net *net, const char *host,
                                uint16_t port)
{
    struct fake_conn *newest = NULL;
    struct address a;

    if (!mem_net_address(host, port, &a))
        abort();
    for (struct transport *t = net->mem.first; t != NULL; t = t->next) {
        struct fake_conn *c = KP_CONTAINER(t, struct fake_conn, socket);

        if (!t->closed && kp__address_equal(&c->to, &a))
            newest = c;
    }
    return newest;
}

bool fake_conn_is_open(const struct fake_conn *c)
{
    return !c->socket.closed;
}

const uint8_t *fake_conn_received(const struct fake_conn *c, size_t *size)
{
    *size = c->to_server.size;
    return c->to_server.data;
}

void fake_conn_take(struct fake_conn *c, size_t size)
{
    drop(&c->to_server, size);
}

void fake_conn_send(struct fake_conn *c, const void *data, size_t size)
{
    append(&c->to_client, data, size);
}

void fake_conn_close(struct fake_conn *c)
{
    c->fin = true;
}

void fake_conn_reset(struct fake_conn *c)
{
    c->reset = true;
}

void fake_conn_limit_writes(struct fake_conn *c, size_t step, size_t room)
{
    c->write_step = step;
    c->write_room = room;
}

void fake_conn_limit_reads(struct fake_conn *c, size_t step)
{
    c->read_step = step;
}

void fake_conn_break_writes(struct fake_conn *c)
{
    c->broken = true;
}

/* -- Kafka on top -- */

bool fake_conn_request(struct fake_conn *c, struct fake_request *out)
{
    struct reader r;
    int32_t size;

    drop(&c->to_server, c->asked);
    c->asked = 0;
    kp__reader_init(&r, c->to_server.data, c->to_server.size);
    size = kp__read_i32(&r);
    if (r.failed || size < 0 || (size_t)size > kp__reader_left(&r))
        return false;
    r.end = r.at + size;
    if (!kp__request_header_decode(&r, &out->header))
        abort();
    out->body = r.at;
    out->body_size = kp__reader_left(&r);
    c->asked = 4 + (size_t)size;
    return true;
}

bool fake_request_decode(const struct fake_request *q, struct arena *a,
                         void *out)
{
    const struct api *api = kp__api(q->header.api_key);
    struct reader r;

    kp__reader_init(&r, q->body, q->body_size);
    return kp__schema_decode(api->request, &r, a, q->header.version,
                             kp__api_flexible(api, q->header.version), out) &&
           kp__reader_left(&r) == 0;
}

static void answer_as(const struct fake_request *q, int16_t version,
                      const void *response, struct writer *w)
{
    const struct api *api = kp__api(q->header.api_key);
    size_t size;

    kp__write_i32(w, 0);
    kp__response_header_encode(w, api->key, version, q->header.correlation_id);
    kp__schema_encode(api->response, w, version, kp__api_flexible(api, version),
                      response);
    if (kp__writer_failed(w))
        abort();
    size = w->buf.size - 4;
    for (int i = 0; i < 4; i++)
        w->buf.data[i] = (uint8_t)(size >> (24 - 8 * i));
}

void fake_answer_bytes(const struct fake_request *q, const void *response,
                       struct writer *out)
{
    answer_as(q, q->header.version, response, out);
}

static void send_as(struct fake_conn *c, const struct fake_request *q,
                    int16_t version, const void *response)
{
    struct writer w;

    kp__writer_init(&w);
    answer_as(q, version, response, &w);
    fake_conn_send(c, w.buf.data, w.buf.size);
    kp__writer_fini(&w);
}

void fake_conn_answer(struct fake_conn *c, const struct fake_request *q,
                      const void *response)
{
    send_as(c, q, q->header.version, response);
}

void fake_conn_answer_versions(struct fake_conn *c,
                               const struct fake_request *q, int16_t api_key,
                               int16_t min, int16_t max)
{
    struct api_versions_response a;
    struct api_version v[16];

    kp__schema_defaults(kp__api(API_API_VERSIONS)->response, &a);
    for (size_t i = 0; i < kp__api_count; i++) {
        const struct api *api = kp__apis[i];
        bool changed = api->key == api_key;
        v[i] = (struct api_version){api->key, changed ? min : api->min_version,
                                    changed ? max : api->max_version};
    }
    a.api_keys.items = v;
    a.api_keys.count = kp__api_count;
    a.api_keys.null = false;
    send_as(c, q, q->header.version, &a);
}
