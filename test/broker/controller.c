/* SPDX-License-Identifier: BSD-2-Clause */
/* controller.c - the one place that changes metadata: topics, leaders, ISRs.
 *
 * Each change is a new image, published to every node that can be reached,
 * at once or after metadata_delay_ns.  Applying an image can itself ask for
 * a change (a follower that rejoins), so publishing is a loop and never
 * nested. */
#include <string.h>

#include "test/broker/internal.h"

static void publish_once(struct kb_cluster *c)
{
    int i;

    for (i = 0; i < c->node_count; i++) {
        struct kb_node *n = &c->nodes[i];

        if (!kb_node_reachable(n) || n->image == c->image)
            continue;
        if (c->config.metadata_delay_ns == 0)
            kb_node_apply(c, n, c->image);
        else if (!n->apply.node.in_heap)
            kb_timer_set(c, &n->apply, c->now_ns + c->config.metadata_delay_ns);
    }
}

static void publish_all(struct kb_cluster *c)
{
    while (c->publish_again) {
        c->publish_again = false;
        publish_once(c);
    }
    c->publishing = false;
}

void kb_controller_publish(struct kb_cluster *c, struct kb_image *image)
{
    if (image != c->image) {
        kb_image_unref(c->image);
        c->image = image;
    }
    c->publish_again = true;
    if (c->publishing)
        return;
    c->publishing = true;
    publish_all(c);
}

void kb_controller_apply(struct kb_cluster *c, struct kb_node *n)
{
    bool nested = c->publishing;

    c->publishing = true;
    kb_node_apply(c, n, c->image);
    if (!nested)
        publish_all(c);
}

struct kb_topic_image *kb_controller_edit(struct kb_cluster *c,
                                          struct kb_topic *t)
{
    struct kb_topic_image *old = kb_image_by_id(c->image, &t->id);

    return old == NULL ? NULL : kb_topic_image_clone(old, old->part_count);
}

/* Does every node believe what the controller knows, and would hear of a change
 * at once? */
static bool in_step(const struct kb_cluster *c)
{
    int i;

    if (c->publishing || c->config.metadata_delay_ns != 0 ||
        c->image->refs != c->node_count + 1)
        return false;
    for (i = 0; i < c->node_count; i++)
        if (!kb_node_reachable(&c->nodes[i]) || c->nodes[i].image != c->image)
            return false;
    return true;
}

/* Then nobody needs the old image, and it can be changed where it stands: with
 * thousands of topics a copy for each change costs too much. */
static void put_in_step(struct kb_cluster *c, struct kb_topic_image *t)
{
    int i;

    c->publishing = true;
    kb_image_put(c->image, t);
    for (i = 0; i < c->node_count; i++)
        kb_node_apply_topic(c, &c->nodes[i], t);
    publish_all(c);
}

void kb_controller_put(struct kb_cluster *c, struct kb_topic_image *t)
{
    struct kb_image *image;

    if (in_step(c)) {
        put_in_step(c, t);
        return;
    }
    /* One that no node has taken yet can be changed too. */
    image = c->image->refs == 1 ? c->image : kb_image_clone(c->image);
    kb_image_put(image, t);
    kb_controller_publish(c, image);
}

static void set_remove(uint16_t *set, uint8_t *count, int node)
{
    uint8_t i, to = 0;

    for (i = 0; i < *count; i++)
        if (set[i] != node)
            set[to++] = set[i];
    *count = to;
}

static void make_leader(struct kb_part_image *p, int node)
{
    p->leader = (int16_t)node;
    p->leader_epoch++;
}

/* The first live replica of the ISR, in the order of assignment. */
static void elect(const struct kb_cluster *c, const struct kb_image *image,
                  struct kb_part_image *p)
{
    int i, pass;

    for (pass = 0; pass < (c->config.unclean ? 2 : 1); pass++)
        for (i = 0; i < p->replica_count; i++) {
            int node = p->replicas[i];

            if (!image->alive[node] ||
                (pass == 0 && !kb_part_has(p->isr, p->isr_count, node)))
                continue;
            if (pass == 1) {
                p->isr_count = 1;
                p->isr[0] = (uint16_t)node;
            }
            make_leader(p, node);
            return;
        }
    if (p->leader != -1)
        make_leader(p, -1);
}

/* Returns whether the partition had anything to do with the node. */
static bool fence_part(const struct kb_cluster *c, const struct kb_image *image,
                       struct kb_part_image *p, int node)
{
    if (!kb_part_has(p->isr, p->isr_count, node) && p->leader != node)
        return false;
    if (p->isr_count > 1)
        set_remove(p->isr, &p->isr_count, node);
    if (p->leader == node)
        elect(c, image, p);
    return true;
}

static bool unfence_part(const struct kb_cluster *c,
                         const struct kb_image *image, struct kb_part_image *p,
                         int node)
{
    if (p->leader != -1 || !kb_part_has(p->replicas, p->replica_count, node))
        return false;
    elect(c, image, p);
    return p->leader != -1;
}

typedef bool (*part_fn)(const struct kb_cluster *c,
                        const struct kb_image *image, struct kb_part_image *p,
                        int node);

static void each_part(struct kb_cluster *c, struct kb_image *image, int node,
                      part_fn fn)
{
    size_t i;

    for (i = 0; i < image->count; i++) {
        struct kb_topic_image *t = kb_topic_image_clone(
            image->by_name[i], image->by_name[i]->part_count);
        bool changed = false;
        int32_t p;

        for (p = 0; p < t->part_count; p++)
            if (fn(c, image, &t->parts[p], node))
                changed = true;
        if (changed)
            kb_image_put(image, t); /* takes the place of the old one */
        else
            kb_free(t);
    }
}

static void set_alive(struct kb_cluster *c, struct kb_node *n, bool alive)
{
    struct kb_image *image;

    if (c->image->alive[n->index] == alive)
        return;
    image = kb_image_clone(c->image);
    image->alive[n->index] = alive;
    each_part(c, image, n->index, alive ? unfence_part : fence_part);
    kb_controller_publish(c, image);
}

static void resume(struct kb_cluster *c, struct kb_node *n)
{
    size_t i;
    int32_t p;

    for (i = 0; i < c->topic_count; i++)
        for (p = 0; p < c->topics[i]->part_count; p++) {
            struct kb_replica *r = kb_replica_at(c->topics[i], p, n);

            if (r != NULL)
                kb_replica_resume(c, r);
        }
}

void kb_controller_node_changed(struct kb_cluster *c, struct kb_node *n,
                                bool at_once)
{
    if (kb_node_reachable(n)) {
        kb_timer_stop(c, &n->session);
        set_alive(c, n, true);
        kb_controller_publish(c, c->image);
        resume(c, n);
    } else if (at_once) {
        kb_timer_stop(c, &n->session);
        set_alive(c, n, false);
    } else if (!n->session.node.in_heap) {
        kb_timer_set(c, &n->session, c->now_ns + c->config.session_timeout_ns);
    }
}

void kb_controller_leave(struct kb_cluster *c, struct kb_node *n)
{
    kb_timer_stop(c, &n->session);
    set_alive(c, n, false);
}

void kb_controller_isr(struct kb_cluster *c, struct kb_replica *leader,
                       int node, bool in)
{
    struct kb_topic_image *t;
    struct kb_part_image *p;

    /* AlterPartition, from the leader of the current epoch only. */
    t = kb_controller_edit(c, leader->topic);
    if (t == NULL)
        return;
    p = &t->parts[leader->partition];
    if (!kb_node_reachable(leader->node) ||
        p->leader_epoch != leader->leader_epoch ||
        p->leader != leader->node->index || (in && !c->image->alive[node]) ||
        kb_part_has(p->isr, p->isr_count, node) == in ||
        !kb_part_has(p->replicas, p->replica_count, node)) {
        kb_free(t);
        return;
    }
    if (in) {
        p->isr[p->isr_count++] = (uint16_t)node;
        set_remove(leader->pending, &leader->pending_count, node);
        leader->pending[leader->pending_count++] = (uint16_t)node;
    } else {
        set_remove(p->isr, &p->isr_count, node);
        set_remove(leader->pending, &leader->pending_count, node);
    }
    kb_controller_put(c, t);
}

/* Round robin over the live nodes, as many as asked for. */
static void assign(struct kb_cluster *c, struct kb_part_image *p, int first,
                   int32_t replication)
{
    bool none;
    int i;

    p->leader = -1;
    p->leader_epoch = -1; /* the election makes it 0 */
    for (i = 0; i < c->node_count && p->replica_count < replication; i++) {
        int node = (first + i) % c->node_count;

        if (!c->image->alive[node])
            continue;
        p->replicas[p->replica_count++] = (uint16_t)node;
        p->isr[p->isr_count++] = (uint16_t)node;
    }
    /* Nobody is there: whoever comes back leads. */
    none = p->replica_count == 0;
    for (i = 0; none && i < c->node_count && i < replication; i++) {
        uint16_t node = (uint16_t)((first + i) % c->node_count);

        p->replicas[p->replica_count++] = node;
        p->isr[p->isr_count++] = node;
    }
    elect(c, c->image, p);
}

static int alive_count(const struct kb_image *i)
{
    int n, count = 0;

    for (n = 0; n < i->node_count; n++)
        count += i->alive[n];
    return count;
}

int16_t kb_controller_create(struct kb_cluster *c, const char *name,
                             size_t size, int32_t partitions,
                             int32_t replication)
{
    struct kb_topic *t;
    struct kb_topic_image *image;
    int32_t p;

    if (!kb_topic_name_valid(name, size))
        return 17;
    if (kb_image_by_name(c->image, name, size) != NULL)
        return 36;
    if (partitions < 1)
        return 37;
    if (replication == 0)
        replication = c->node_count < 3 ? c->node_count : 3;
    if (replication < 1 || replication > KB_REPLICAS_MAX ||
        replication > alive_count(c->image))
        return 38;
    t = kb_topic_new(c, name, size);
    kb_topic_extend(t, partitions);
    image = kb_topic_image_new(t, partitions);
    for (p = 0; p < partitions; p++)
        assign(c, &image->parts[p], (int)(p % c->node_count), replication);
    kb_controller_put(c, image);
    return 0;
}

int16_t kb_topic_create(struct kb_cluster *c, const char *name,
                        int32_t partitions, int32_t replication, int64_t now_ns)
{
    int16_t error;

    kb_advance(c, now_ns);
    error =
        kb_controller_create(c, name, strlen(name), partitions, replication);
    kb_advance(c, now_ns);
    return error;
}

int16_t kb_topic_delete(struct kb_cluster *c, const char *name, int64_t now_ns)
{
    struct kb_topic *t;
    struct kb_image *image;

    kb_advance(c, now_ns);
    t = kb_topic_live(c, name);
    if (t == NULL)
        return 3;
    t->deleted = true;
    image = kb_image_clone(c->image);
    kb_image_remove(image, t);
    kb_controller_publish(c, image);
    kb_advance(c, now_ns);
    return 0;
}

int16_t kb_topic_grow(struct kb_cluster *c, const char *name,
                      int32_t partitions, int64_t now_ns)
{
    struct kb_topic_image *old, *t;
    int32_t p;

    kb_advance(c, now_ns);
    old = kb_image_by_name(c->image, name, strlen(name));
    if (old == NULL)
        return 3;
    if (partitions <= old->part_count)
        return 37;
    kb_topic_extend(old->topic, partitions);
    t = kb_topic_image_clone(old, partitions);
    for (p = old->part_count; p < partitions; p++)
        assign(c, &t->parts[p], (int)(p % c->node_count),
               t->parts[0].replica_count);
    kb_controller_put(c, t);
    kb_advance(c, now_ns);
    return 0;
}

static struct kb_topic_image *edit_part(struct kb_cluster *c, const char *topic,
                                        int32_t partition)
{
    struct kb_topic *t = kb_topic_live(c, topic);

    if (t == NULL || partition < 0 || partition >= t->part_count)
        return NULL;
    return kb_controller_edit(c, t);
}

static bool lead(struct kb_cluster *c, struct kb_part_image *p,
                 const struct kb_node *n, bool force)
{
    if (!c->image->alive[n->index] ||
        !kb_part_has(p->replicas, p->replica_count, n->index))
        return false;
    if (!kb_part_has(p->isr, p->isr_count, n->index)) {
        if (!force)
            return false;
        p->isr_count = 1;
        p->isr[0] = (uint16_t)n->index;
    }
    make_leader(p, n->index);
    return true;
}

bool kb_leader_move(struct kb_cluster *c, const char *topic, int32_t partition,
                    int32_t node_id, bool force, int64_t now_ns)
{
    struct kb_topic_image *t;
    struct kb_node *n;

    kb_advance(c, now_ns);
    t = edit_part(c, topic, partition);
    n = kb_node_by_id(c, node_id);
    if (t == NULL)
        return false;
    if (node_id == -1) {
        make_leader(&t->parts[partition], -1);
    } else if (n == NULL || !lead(c, &t->parts[partition], n, force)) {
        kb_free(t);
        return false;
    }
    kb_controller_put(c, t);
    kb_advance(c, now_ns);
    return true;
}

bool kb_reassign(struct kb_cluster *c, const char *topic, int32_t partition,
                 const int32_t *node_ids, int count, int64_t now_ns)
{
    struct kb_topic_image *t;
    struct kb_part_image *p;
    struct kb_topic *physical;
    struct kb_replica *from = NULL;
    int i;

    kb_advance(c, now_ns);
    t = count < 1 || count > KB_REPLICAS_MAX ? NULL
                                             : edit_part(c, topic, partition);
    if (t == NULL)
        return false;
    physical = t->topic;
    p = &t->parts[partition];
    if (p->leader >= 0)
        from = kb_replica_at(physical, partition, &c->nodes[p->leader]);
    p->replica_count = p->isr_count = 0;
    for (i = 0; i < count; i++) {
        struct kb_node *n = kb_node_by_id(c, node_ids[i]);

        if (n == NULL || !c->image->alive[n->index] || from == NULL) {
            kb_free(t);
            return false;
        }
        p->replicas[p->replica_count++] = (uint16_t)n->index;
        p->isr[p->isr_count++] = (uint16_t)n->index;
    }
    for (i = 0; i < count; i++)
        kb_replica_copy(
            kb_replica_get(c, physical, partition, &c->nodes[p->replicas[i]]),
            from);
    elect(c, c->image, p);
    kb_controller_put(c, t);
    kb_advance(c, now_ns);
    return true;
}
