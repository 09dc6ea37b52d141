/* SPDX-License-Identifier: MIT */
/*
 * GPU time of processes from the packets of the graphics kernel.
 *
 * A node is one engine of one adapter. It works on the packets that it was given one after the
 * other: the first runs, the next begins when the first has ended. A packet belongs to a context,
 * and a context to a process and a node. Time is charged to the pseudo-thread of the process, and
 * is the sum over the nodes.
 *
 * Where the GPU schedules itself (hardware queues) or packets were not recorded, submissions stand
 * in for packets: they include the wait for the engine, so the time is an estimate. It is one too
 * if a context was not described (its engine is unknown), or an end is missing.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "tally/internal.h"

enum {
    OBJECTS_MAX = 16384, /* devices, contexts, queues; slots are twice as many */
    NODES_MAX = 256,
    PACKETS_MAX = 64, /* waiting for one node */
    NO_NODE = UINT32_MAX,
    PACKET_WAIT = 4,
    PACKET_SIGNAL = 5,
    PACKET_FLIP = 3,
    PACKET_SOFTWARE = 7,
};
/* Windows resets a GPU that does not end a packet within seconds. */
static const uint64_t longest_ns = UINT64_C(10000000000);

struct object {
    uint64_t handle;  /* 0: free slot */
    uint64_t adapter; /* of a device */
    uint32_t pid, node;
    bool is_device, is_queue; /* neither: a context */
};

struct packet {
    uint64_t context;
    uint32_t pid, sequence;
    bool submission;
};

struct node {
    uint64_t adapter; /* or the context, where the engine is unknown */
    uint32_t ordinal;
    uint32_t first, count;
    uint64_t began_ns; /* of the running packet */
    uint64_t since_ns; /* charged up to here */
    struct packet packets[PACKETS_MAX];
};

struct ew_tally_graphics {
    struct object *objects;
    uint32_t object_count;
    struct node *nodes;
    uint32_t node_count;
    bool packets_seen; /* submissions of contexts do not count any more */
    bool unsure, unattributed;
};

/* -------------------------------------------------------------------------- objects */

static uint32_t home_of(uint64_t handle)
{
    return (uint32_t)(ew_hash_mix(ew_hash_seed(), handle) >> 16) % (2 * OBJECTS_MAX);
}

static uint32_t slot_of(const struct ew_tally_graphics *graphics, uint64_t handle)
{
    uint32_t at = home_of(handle);
    while (graphics->objects[at].handle != 0 && graphics->objects[at].handle != handle)
        at = (at + 1) % (2 * OBJECTS_MAX);
    return at;
}

static struct object *object_of(const struct ew_tally_graphics *graphics, uint64_t handle)
{
    struct object *object = &graphics->objects[slot_of(graphics, handle)];
    return object->handle != 0 ? object : NULL;
}

/* A new object, or the known one of this handle: handles are reused. NULL: there is no room. */
static struct object *put_object(struct ew_tally *tally, uint64_t handle)
{
    struct ew_tally_graphics *graphics = tally->graphics;
    struct object *object = &graphics->objects[slot_of(graphics, handle)];
    if (handle == 0 || (object->handle == 0 && graphics->object_count == OBJECTS_MAX)) {
        tally->refused += handle != 0;
        graphics->unsure = true;
        return NULL;
    }
    graphics->object_count += object->handle == 0;
    *object = (struct object){.handle = handle, .pid = EW_NO_ID, .node = NO_NODE};
    return object;
}

/* Later objects of the same chain move up. */
static void remove_object(struct ew_tally_graphics *graphics, uint64_t handle)
{
    uint32_t hole = slot_of(graphics, handle), at = hole;
    if (graphics->objects[hole].handle == 0)
        return;
    graphics->object_count--;
    for (;;) {
        graphics->objects[hole].handle = 0;
        uint32_t home;
        do {
            at = (at + 1) % (2 * OBJECTS_MAX);
            if (graphics->objects[at].handle == 0)
                return;
            home = home_of(graphics->objects[at].handle);
            /* It stays if its home lies behind the hole. */
        } while (hole <= at ? hole < home && home <= at : hole < home || home <= at);
        graphics->objects[hole] = graphics->objects[at];
        hole = at;
    }
}

static uint32_t node_of(struct ew_tally *tally, uint64_t adapter, uint32_t ordinal)
{
    struct ew_tally_graphics *graphics = tally->graphics;
    for (uint32_t i = 0; i < graphics->node_count; i++)
        if (graphics->nodes[i].adapter == adapter && graphics->nodes[i].ordinal == ordinal)
            return i;
    if (graphics->node_count == NODES_MAX) {
        tally->refused++;
        graphics->unsure = true;
        return NO_NODE;
    }
    graphics->nodes[graphics->node_count].adapter = adapter;
    graphics->nodes[graphics->node_count].ordinal = ordinal;
    return graphics->node_count++;
}

static void add_device(struct ew_tally *tally, const struct ew_event *event)
{
    struct object *device = put_object(tally, event->u.gpu.device);
    if (device == NULL)
        return;
    device->is_device = true;
    device->adapter = event->u.gpu.adapter;
    device->pid = event->u.gpu.pid;
}

static void add_context(struct ew_tally *tally, const struct ew_event *event)
{
    const struct object *device = object_of(tally->graphics, event->u.gpu.device);
    bool known = device != NULL && device->is_device;
    uint64_t adapter = known ? device->adapter : event->u.gpu.device;
    uint32_t pid = event->u.gpu.pid != EW_NO_ID ? event->u.gpu.pid : known ? device->pid : EW_NO_ID;
    tally->graphics->unsure |= !known; /* its adapter may be that of others */
    struct object *context = put_object(tally, event->u.gpu.context);
    if (context == NULL)
        return;
    context->pid = pid;
    context->node = node_of(tally, adapter, event->u.gpu.node);
}

static void add_queue(struct ew_tally *tally, const struct ew_event *event)
{
    const struct object *context = object_of(tally->graphics, event->u.gpu.context);
    if (context == NULL || context->is_device)
        return;
    struct object of_context = *context;
    struct object *queue = put_object(tally, event->u.gpu.queue);
    if (queue == NULL)
        return;
    queue->pid = of_context.pid;
    queue->node = of_context.node;
    queue->is_queue = true;
}

/* The context of a packet; one that was not described has a node of its own. */
static struct object *context_of(struct ew_tally *tally, const struct ew_event *event)
{
    struct object *context = object_of(tally->graphics, event->u.gpu.context);
    if (context == NULL || context->is_device) {
        context = put_object(tally, event->u.gpu.context);
        if (context == NULL)
            return NULL;
        tally->graphics->unsure = true;
        context->node = node_of(tally, event->u.gpu.context, UINT32_MAX);
    }
    if (context->pid == EW_NO_ID && event->u.gpu.pid != EW_NO_ID)
        context->pid = event->u.gpu.pid;
    return context->node == NO_NODE ? NULL : context;
}

/* -------------------------------------------------------------------------- packets */

static void charge(struct ew_tally *tally, struct node *node, uint64_t t_ns)
{
    if (node->count == 0 || t_ns <= node->since_ns)
        return;
    uint32_t pid = node->packets[node->first].pid;
    tally->graphics->unsure |= node->packets[node->first].submission;
    struct ew_tally_process *process = pid == EW_NO_ID ? NULL : ew_processes_find(tally, pid);
    struct ew_tally_thread *own = NULL;
    if (process != NULL && (process->flags & EW_TP_ENDED) == 0)
        own = ew_threads_own(tally, process);
    if (own != NULL) {
        ew_facts_active(tally, own, node->since_ns);
        own->cold->work[EW_WORK_GPU_NS] += t_ns - node->since_ns;
    } else {
        tally->graphics->unattributed = true;
        tally->unattributed++;
    }
    node->since_ns = t_ns;
}

static void begin_first(struct node *node, uint64_t t_ns)
{
    node->began_ns = node->since_ns = t_ns;
}

static void enqueue(struct ew_tally *tally, const struct object *context, uint32_t sequence,
                    bool submission, uint64_t t_ns)
{
    struct ew_tally_graphics *graphics = tally->graphics;
    struct node *node = &graphics->nodes[context->node];
    if (node->count == PACKETS_MAX) { /* their ends are missing */
        node->count = 0;
        graphics->unsure = true;
    }
    node->packets[(node->first + node->count) % PACKETS_MAX] =
        (struct packet){.context = context->handle,
                        .pid = context->pid,
                        .sequence = sequence,
                        .submission = submission};
    if (node->count++ == 0)
        begin_first(node, t_ns);
}

static void remove_packet(struct node *node, uint32_t place)
{
    for (uint32_t i = place; i + 1 < node->count; i++)
        node->packets[(node->first + i) % PACKETS_MAX] =
            node->packets[(node->first + i + 1) % PACKETS_MAX];
    node->count--;
}

static void complete(struct ew_tally *tally, const struct object *context, uint32_t sequence,
                     bool submission, uint64_t t_ns)
{
    struct ew_tally_graphics *graphics = tally->graphics;
    struct node *node = &graphics->nodes[context->node];
    for (uint32_t i = 0; i < node->count; i++) {
        const struct packet *packet = &node->packets[(node->first + i) % PACKETS_MAX];
        if (packet->context != context->handle || packet->sequence != sequence ||
            packet->submission != submission)
            continue;
        if (i == 0) {
            charge(tally, node, t_ns);
            node->first = (node->first + 1) % PACKETS_MAX;
            node->count--;
            begin_first(node, t_ns);
        } else { /* out of order: the running one had this time too */
            graphics->unsure = true;
            remove_packet(node, i);
        }
        return;
    }
}

/* From the first packet on, submissions of contexts are no stand-in any more. */
static void forget_submissions(struct ew_tally *tally, uint64_t t_ns)
{
    struct ew_tally_graphics *graphics = tally->graphics;
    graphics->packets_seen = true;
    for (uint32_t n = 0; n < graphics->node_count; n++) {
        struct node *node = &graphics->nodes[n];
        for (uint32_t i = node->count; i-- > 0;) {
            const struct packet *packet = &node->packets[(node->first + i) % PACKETS_MAX];
            const struct object *context = object_of(graphics, packet->context);
            if (!packet->submission || (context != NULL && context->is_queue))
                continue;
            remove_packet(node, i);
            if (i == 0)
                begin_first(node, t_ns);
        }
    }
}

static void take_submission(struct ew_tally *tally, const struct ew_event *event, bool end)
{
    uint32_t type = event->u.gpu.packet_type;
    struct object *context = context_of(tally, event);
    if (!end && event->u.gpu.pid != EW_NO_ID) /* the process is alive now */
        (void)ew_processes_get(tally, event->u.gpu.pid, event->t_ns);
    if (context == NULL || type == PACKET_WAIT || type == PACKET_SIGNAL || type == PACKET_FLIP ||
        type == PACKET_SOFTWARE || (tally->graphics->packets_seen && !context->is_queue))
        return;
    if (end)
        complete(tally, context, event->u.gpu.sequence, true, event->t_ns);
    else
        enqueue(tally, context, event->u.gpu.sequence, true, event->t_ns);
}

static void take_packet(struct ew_tally *tally, const struct ew_event *event, bool end)
{
    /* Notifications, such as of preemption, have no number: no work. */
    struct object *context = event->u.gpu.sequence == 0 ? NULL : context_of(tally, event);
    if (context == NULL)
        return;
    if (!tally->graphics->packets_seen)
        forget_submissions(tally, event->t_ns);
    if (end)
        complete(tally, context, event->u.gpu.sequence, false, event->t_ns);
    else
        enqueue(tally, context, event->u.gpu.sequence, false, event->t_ns);
}

/* --------------------------------------------------------------------------- events */

static bool prepare(struct ew_tally *tally)
{
    if (tally->graphics != NULL)
        return true;
    struct ew_tally_graphics *graphics = ew_calloc(1, sizeof *graphics);
    if (graphics != NULL) {
        graphics->objects = ew_calloc(2 * OBJECTS_MAX, sizeof *graphics->objects);
        graphics->nodes = ew_calloc(NODES_MAX, sizeof *graphics->nodes);
        tally->graphics = graphics;
        if (graphics->objects != NULL && graphics->nodes != NULL)
            return true;
        ew_graphics_free(graphics);
        tally->graphics = NULL;
    }
    ew_tally_short_of_memory(tally);
    return false;
}

void ew_graphics_free(struct ew_tally_graphics *graphics)
{
    if (graphics == NULL)
        return;
    ew_free(graphics->objects);
    ew_free(graphics->nodes);
    ew_free(graphics);
}

void ew_graphics_event(struct ew_tally *tally, const struct ew_event *event)
{
    if (!prepare(tally))
        return;
    switch (event->kind) {
    case EW_EVENT_GPU_DEVICE:
        add_device(tally, event);
        break;
    case EW_EVENT_GPU_CONTEXT:
        add_context(tally, event);
        break;
    case EW_EVENT_GPU_CONTEXT_END:
        remove_object(tally->graphics, event->u.gpu.context);
        break;
    case EW_EVENT_GPU_QUEUE:
        add_queue(tally, event);
        break;
    case EW_EVENT_GPU_PACKET:
    case EW_EVENT_GPU_PACKET_END:
        ew_tally_saw(tally, EW_TALLY_GPU);
        take_packet(tally, event, event->kind == EW_EVENT_GPU_PACKET_END);
        break;
    case EW_EVENT_GPU_SUBMIT:
    case EW_EVENT_GPU_SUBMIT_END:
        ew_tally_saw(tally, EW_TALLY_GPU);
        take_submission(tally, event, event->kind == EW_EVENT_GPU_SUBMIT_END);
        break;
    default:
        break;
    }
}

void ew_graphics_charge(struct ew_tally *tally, uint64_t t_ns)
{
    struct ew_tally_graphics *graphics = tally->graphics;
    for (uint32_t i = 0; graphics != NULL && i < graphics->node_count; i++) {
        struct node *node = &graphics->nodes[i];
        if (node->count > 0 && t_ns > node->began_ns && t_ns - node->began_ns > longest_ns) {
            node->count = 0;
            graphics->unsure = true;
        }
        charge(tally, node, t_ns);
    }
}

void ew_graphics_lose(struct ew_tally *tally)
{
    for (uint32_t i = 0; tally->graphics != NULL && i < tally->graphics->node_count; i++)
        tally->graphics->nodes[i].count = 0;
    if (tally->graphics != NULL)
        tally->graphics->unsure = true;
}

bool ew_graphics_is_unsure(const struct ew_tally *tally)
{
    return tally->graphics != NULL && tally->graphics->unsure;
}

bool ew_graphics_is_complete(const struct ew_tally *tally)
{
    return tally->graphics != NULL && !tally->graphics->unattributed;
}
