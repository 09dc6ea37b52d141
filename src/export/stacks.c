/* SPDX-License-Identifier: MIT */
/*
 * Owns the samples that wait for their stacks while a recording is read. They wait in time order in
 * a ring: when it is full, the oldest is completed with what has arrived. Parts of stacks (kernel
 * and user part arrive separately) are stored once each, so a waiting sample is small however deep
 * its stack is.
 *
 * Windows 8 and later logs a repeated stack by a key; the frames of the key are logged when it is
 * deleted or when recording ends: a first pass learns them.
 */
#include "export/export.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "recording/trace.h"

enum {
    STACK_GROUP = 0x18,
    STACK_WALK = 32,
    STACK_KEY_FIRST = 34, /* created, deleted, rundown: with its frames */
    STACK_KEY_LAST = 36,
    STACK_KERNEL_KEY = 37,
    STACK_USER_KEY = 38,
    WAITING = 1 << 16,
    ADDRESSES_MAX = 8 << 20,
    PARTS_MAX = 1 << 20,
    KEYS_MAX = 1 << 20,
    FRAMES_MAX = 512,
};
#define NO_PART UINT32_MAX

/* A run of addresses, innermost frame first. */
struct part {
    uint32_t from, count;
};

struct key {
    uint64_t key;
    uint64_t t_ns; /* when it was logged */
    uint32_t part;
    uint32_t older; /* of the same key: index + 1 */
    uint32_t jump;  /* a still older one, or 0; as in recording/process_history.c */
    uint32_t depth; /* number of older ones */
};

struct waiting {
    uint64_t t_raw, t_ns, ip;
    uint32_t pid, tid;
    uint32_t kernel, user; /* parts */
    uint32_t weight_100ns;
};

struct reading {
    struct etwatch_trace *trace;
    struct ew_flame *flame;
    struct ew_stacks_counts *counts;
    struct ew_modules modules;
    uint64_t *addresses;
    uint32_t address_count, address_size;
    struct part *parts;
    uint32_t part_count, part_size, *part_index, part_mask;
    struct key *keys;
    uint32_t key_count, key_size, *key_index, key_mask;
    struct waiting *waiting; /* ring of WAITING */
    uint32_t *chain;         /* hash of (time, thread): index in the ring + 1 */
    uint64_t first, next;    /* numbers of the samples in the ring */
    uint32_t interval_100ns;
    int error;
};

static uint64_t mix(uint64_t value)
{
    value *= UINT64_C(0x9E3779B97F4A7C15);
    return value ^ value >> 29;
}

/* Space for `more` items; false: no memory, or the maximum is reached. */
static bool grow(void **list, uint32_t count, uint32_t more, uint32_t *size, size_t item,
                 uint32_t max)
{
    uint32_t wanted = *size == 0 ? 1024 : *size;
    if (count > max || more > max - count)
        return false;
    if (count + more <= *size)
        return true;
    while (wanted < count + more)
        wanted *= 2;
    void *wider = ew_realloc_array(*list, wanted, item);
    if (wider == NULL)
        return false;
    *list = wider;
    *size = wanted;
    return true;
}

/* -------------------------------------------------------------------- parts */

static uint32_t hash_addresses(const uint64_t *addresses, uint32_t count)
{
    uint64_t sum = ew_hash_seed() ^ count;
    for (uint32_t i = 0; i < count; i++)
        sum = mix(sum ^ addresses[i]);
    return (uint32_t)(sum ^ sum >> 32);
}

static uint32_t part_slot(const struct reading *r, const uint64_t *addresses, uint32_t count)
{
    uint32_t at = hash_addresses(addresses, count) & r->part_mask;
    while (r->part_index[at] != 0) {
        const struct part *part = &r->parts[r->part_index[at] - 1];
        if (part->count == count &&
            memcmp(r->addresses + part->from, addresses, count * sizeof *addresses) == 0)
            break;
        at = (at + 1) & r->part_mask;
    }
    return at;
}

static bool grow_part_index(struct reading *r)
{
    if (r->part_index != NULL && (r->part_count + 1) * 2 <= r->part_mask)
        return true;
    uint32_t size = r->part_index == NULL ? 4096 : (r->part_mask + 1) * 2;
    uint32_t *index = ew_calloc(size, sizeof *index);
    if (index == NULL)
        return false;
    ew_free(r->part_index);
    r->part_index = index;
    r->part_mask = size - 1;
    for (uint32_t i = 0; i < r->part_count; i++)
        index[part_slot(r, r->addresses + r->parts[i].from, r->parts[i].count)] = i + 1;
    return true;
}

/* The part with the addresses of a payload from `from` on; NO_PART: none, or no space. */
static uint32_t keep_part(struct reading *r, const struct ew_record *record, uint32_t from)
{
    uint64_t frames[FRAMES_MAX];
    uint32_t width = record->pointer_size == 4 ? 4 : 8, count = 0;
    for (uint32_t at = from; count < FRAMES_MAX && at + width <= record->payload_size; at += width)
        frames[count++] =
            width == 4 ? ew_load_u32(record->payload + at) : ew_load_u64(record->payload + at);
    void *addresses = r->addresses, *parts = r->parts;
    bool fits = count > 0 && grow_part_index(r);
    if (!fits)
        return NO_PART;
    uint32_t slot = part_slot(r, frames, count);
    if (r->part_index[slot] != 0)
        return r->part_index[slot] - 1;
    fits = grow(&addresses, r->address_count, count, &r->address_size, sizeof *r->addresses,
                ADDRESSES_MAX);
    r->addresses = addresses;
    fits = fits && grow(&parts, r->part_count, 1, &r->part_size, sizeof *r->parts, PARTS_MAX);
    r->parts = parts;
    if (!fits)
        return NO_PART;
    memcpy(r->addresses + r->address_count, frames, count * sizeof *frames);
    r->parts[r->part_count] = (struct part){.from = r->address_count, .count = count};
    r->address_count += count;
    r->part_index[slot] = ++r->part_count;
    return r->part_count - 1;
}

/* --------------------------------------------------------------------- keys */

static uint32_t key_slot(const struct reading *r, uint64_t key)
{
    uint32_t at = (uint32_t)(mix(ew_hash_mix(ew_hash_seed(), key)) >> 32) & r->key_mask;
    while (r->key_index[at] != 0 && r->keys[r->key_index[at] - 1].key != key)
        at = (at + 1) & r->key_mask;
    return at;
}

static bool grow_key_index(struct reading *r)
{
    if (r->key_index != NULL && (r->key_count + 1) * 2 <= r->key_mask)
        return true;
    uint32_t size = r->key_index == NULL ? 4096 : (r->key_mask + 1) * 2;
    uint32_t *index = ew_calloc(size, sizeof *index);
    if (index == NULL)
        return false;
    ew_free(r->key_index);
    r->key_index = index;
    r->key_mask = size - 1;
    for (uint32_t i = 0; i < r->key_count; i++)
        index[key_slot(r, r->keys[i].key)] = i + 1; /* the newest of a key comes last */
    return true;
}

static uint64_t pointer_at(const struct ew_record *record, uint32_t at)
{
    return record->pointer_size == 4 ? ew_load_u32(record->payload + at)
                                     : ew_load_u64(record->payload + at);
}

/* The jump of the entry that follows `older`: see jump_of in recording/process_history.c. */
static uint32_t jump_of(const struct reading *r, uint32_t older)
{
    if (older == 0)
        return 0;
    const struct key *first = &r->keys[older - 1];
    if (first->jump == 0)
        return older;
    const struct key *second = &r->keys[first->jump - 1];
    uint32_t end = second->jump == 0 ? 0 : r->keys[second->jump - 1].depth;
    bool equal = second->jump != 0 && first->depth - second->depth == second->depth - end;
    return equal ? second->jump : older;
}

static void learn_key(struct reading *r, const struct ew_record *record)
{
    uint32_t width = record->pointer_size == 4 ? 4 : 8;
    if (record->payload_size < width)
        return;
    uint32_t part = keep_part(r, record, width);
    void *keys = r->keys;
    bool fits = part != NO_PART && grow_key_index(r) &&
                grow(&keys, r->key_count, 1, &r->key_size, sizeof *r->keys, KEYS_MAX);
    r->keys = keys;
    if (!fits)
        return;
    uint64_t key = pointer_at(record, 0);
    uint32_t slot = key_slot(r, key);
    uint32_t older = r->key_index[slot];
    r->keys[r->key_count] = (struct key){
        .key = key,
        .t_ns = record->t_ns,
        .part = part,
        .older = older,
        .jump = jump_of(r, older),
        .depth = older == 0 ? 0 : r->keys[older - 1].depth + 1,
    };
    r->key_index[slot] = ++r->key_count;
}

/* A key has the meaning that the next log entry gives; after the last entry, that one. */
static uint32_t part_of_key(const struct reading *r, uint64_t key, uint64_t t_ns)
{
    if (r->key_index == NULL)
        return NO_PART;
    uint32_t at = r->key_index[key_slot(r, key)];
    if (at == 0)
        return NO_PART;
    for (;;) {
        const struct key *found = &r->keys[at - 1];
        if (found->jump != 0 && r->keys[found->jump - 1].t_ns >= t_ns)
            at = found->jump;
        else if (found->older != 0 && r->keys[found->older - 1].t_ns >= t_ns)
            at = found->older;
        else
            return found->part;
    }
}

/* ------------------------------------------------------------------ samples */

/* The node of one more frame. */
static uint32_t descend(struct reading *r, uint32_t parent, const struct waiting *w,
                        uint64_t address)
{
    if (parent == UINT32_MAX)
        return parent;
    uint32_t node = ew_flame_find(r->flame, parent, address);
    if (node != UINT32_MAX)
        return node;
    r->counts->frames++;
    char name[320];
    ew_modules_name(&r->modules, w->pid, address, w->t_ns, name, sizeof name);
    r->counts->unnamed += strchr(name, '!') == NULL;
    return ew_flame_add(r->flame, parent, address, name);
}

static uint32_t descend_part(struct reading *r, uint32_t node, const struct waiting *w,
                             uint32_t part)
{
    if (part == NO_PART)
        return node;
    for (uint32_t i = r->parts[part].count; i > 0; i--)
        node = descend(r, node, w, r->addresses[r->parts[part].from + i - 1]);
    return node;
}

static uint32_t thread_node(struct reading *r, const struct waiting *w)
{
    char name[320];
    const char *process = ew_recording_history_name(&r->trace->history, w->pid, w->t_ns);
    uint32_t lifetime = ew_recording_history_find(&r->trace->history, w->pid, w->t_ns);
    /* Processes may have the same id one after another. */
    uint64_t key = (uint64_t)w->pid << 32 | lifetime;
    uint32_t node = ew_flame_find(r->flame, EW_FLAME_ROOT, key);
    if (node == UINT32_MAX) {
        if (w->pid == EW_NO_ID)
            (void)snprintf(name, sizeof name, "[unknown process]");
        else
            (void)snprintf(name, sizeof name, "%s (%u)",
                           process != NULL ? process
                           : w->pid == 0   ? "Idle"
                                           : "process",
                           w->pid);
        node = ew_flame_add(r->flame, EW_FLAME_ROOT, key, name);
    }
    if (node == UINT32_MAX)
        return node;
    uint32_t thread = ew_flame_find(r->flame, node, w->tid);
    if (thread != UINT32_MAX)
        return thread;
    (void)snprintf(name, sizeof name, "thread %u", w->tid);
    return ew_flame_add(r->flame, node, w->tid, name);
}

static void complete_sample(struct reading *r, const struct waiting *w)
{
    uint32_t thread = thread_node(r, w), node = thread;
    bool stack = w->kernel != NO_PART || w->user != NO_PART;
    node = descend_part(r, node, w, w->user);
    node = descend_part(r, node, w, w->kernel);
    if (!stack)
        node = descend(r, node, w, w->ip);
    r->counts->with_stack += stack;
    ew_flame_sample(r->flame, thread, node, w->weight_100ns);
}

static uint32_t chain_slot(uint64_t t_raw, uint32_t tid)
{
    return (uint32_t)(mix(t_raw ^ (uint64_t)tid << 40) >> 32) & (2 * WAITING - 1);
}

static void complete_oldest(struct reading *r)
{
    struct waiting *w = &r->waiting[r->first % WAITING];
    uint32_t slot = chain_slot(w->t_raw, w->tid);
    if (r->chain[slot] == r->first % WAITING + 1)
        r->chain[slot] = 0;
    complete_sample(r, w);
    r->first++;
}

static void take_sample(struct reading *r, const struct ew_record *record,
                        const struct ew_event *known)
{
    if (r->next - r->first == WAITING)
        complete_oldest(r);
    uint32_t at = (uint32_t)(r->next++ % WAITING);
    r->waiting[at] = (struct waiting){
        .t_raw = record->t_raw,
        .t_ns = record->t_ns,
        .ip = known->u.sample.ip,
        .pid = known->pid,
        .tid = known->tid,
        .kernel = NO_PART,
        .user = NO_PART,
        .weight_100ns = r->interval_100ns,
    };
    r->chain[chain_slot(record->t_raw, known->tid)] = at + 1;
    r->counts->samples++;
}

/* The sample that a stack belongs to, or NULL: other events have stacks too. */
static struct waiting *find_waiting(struct reading *r, uint64_t t_raw, uint32_t tid)
{
    uint32_t at = r->chain[chain_slot(t_raw, tid)];
    if (at == 0)
        return NULL;
    struct waiting *w = &r->waiting[at - 1];
    return w->t_raw == t_raw && w->tid == tid ? w : NULL;
}

static bool is_kernel(const struct reading *r, uint32_t part, uint32_t pointer_size)
{
    uint64_t inner = r->addresses[r->parts[part].from];
    return pointer_size == 4 ? inner >= UINT32_C(0x80000000) : inner >> 47 != 0;
}

static void take_stack(struct reading *r, const struct ew_record *record)
{
    if (record->payload_size < 16)
        return;
    uint64_t t_raw = ew_load_u64(record->payload);
    struct waiting *w = find_waiting(r, t_raw, ew_load_u32(record->payload + 12));
    if (w == NULL)
        return;
    uint32_t part, width = record->pointer_size == 4 ? 4 : 8;
    bool kernel = record->opcode == STACK_KERNEL_KEY;
    if (record->opcode == STACK_WALK) {
        part = keep_part(r, record, 16);
        kernel = part != NO_PART && is_kernel(r, part, record->pointer_size);
    } else {
        part = record->payload_size < 16 + width
                   ? NO_PART
                   : part_of_key(r, pointer_at(record, 16), record->t_ns);
    }
    if (kernel && w->kernel == NO_PART)
        w->kernel = part;
    else if (!kernel && w->user == NO_PART)
        w->user = part;
}

/* ------------------------------------------------------------------ reading */

static bool is_stack(const struct ew_record *record, unsigned first, unsigned last)
{
    return record->kind == EW_RECORD_KERNEL && record->group == STACK_GROUP &&
           record->opcode >= first && record->opcode <= last;
}

static void learn_event(struct reading *r, const struct ew_event *event)
{
    if (event->kind >= EW_EVENT_IMAGE_LOAD && event->kind <= EW_EVENT_IMAGE_STILL)
        ew_modules_learn(&r->modules, event);
    else if (event->kind == EW_EVENT_SAMPLE_INTERVAL && event->u.interval.profile_source == 0 &&
             r->interval_100ns == 0)
        r->interval_100ns = (uint32_t)event->u.interval.interval_100ns;
}

/* Learns modules, keys and the first interval, for all processes. */
static int learn(struct reading *r, struct etwatch_trace *all)
{
    const struct ew_record *records;
    struct ew_event event;
    int count = 0, rc = ew_trace_restart(all);
    while (rc == 0 && (count = ew_etl_next(all->reader, &records)) > 0) {
        for (int i = 0; i < count; i++) {
            const struct ew_record *record = &records[i];
            if (record->kind == EW_RECORD_LOSS)
                continue;
            if (is_stack(record, STACK_KEY_FIRST, STACK_KEY_LAST))
                learn_key(r, record);
            else if (ew_decode_event(record, &event))
                learn_event(r, &event);
        }
        rc = ew_trace_progress(all, 0, 3, false);
    }
    ew_modules_sort(&r->modules);
    return rc == 0 && count < 0 ? count : rc;
}

static int walk(struct reading *r)
{
    const struct ew_record *record;
    struct ew_event known;
    int rc;
    while ((rc = ew_trace_next_record(r->trace, &record, &known)) > 0) {
        if (known.kind == EW_EVENT_SAMPLE)
            take_sample(r, record, &known);
        else if (known.kind == EW_EVENT_SAMPLE_INTERVAL && known.u.interval.profile_source == 0)
            r->interval_100ns = (uint32_t)known.u.interval.interval_100ns;
        else if (is_stack(record, STACK_WALK, STACK_WALK) ||
                 is_stack(record, STACK_KERNEL_KEY, STACK_USER_KEY))
            take_stack(r, record);
    }
    while (rc == 0 && r->first < r->next)
        complete_oldest(r);
    return rc;
}

static void done(struct reading *r)
{
    ew_modules_done(&r->modules);
    ew_free(r->addresses);
    ew_free(r->parts);
    ew_free(r->part_index);
    ew_free(r->keys);
    ew_free(r->key_index);
    ew_free(r->waiting);
    ew_free(r->chain);
}

int ew_stacks_read(struct etwatch_trace *all, struct etwatch_trace *selected,
                   struct ew_flame *flame, struct ew_stacks_counts *ret_counts)
{
    struct ew_stacks_counts counts = {0};
    struct reading r = {.trace = selected, .flame = flame, .counts = &counts};
    struct ew_alloc_limit *before = ew_alloc_limit_use(selected->memory);
    ew_modules_init(&r.modules);
    r.waiting = ew_calloc(WAITING, sizeof *r.waiting);
    r.chain = ew_calloc((size_t)2 * WAITING, sizeof *r.chain);
    int rc = r.waiting == NULL || r.chain == NULL ? ETWATCH_ENOMEM : learn(&r, all);
    if (rc == 0)
        rc = walk(&r);
    counts.refused = flame->refused;
    if (rc == 0)
        *ret_counts = counts;
    done(&r);
    (void)ew_alloc_limit_use(before);
    return ew_trace_result(selected, rc, NULL);
}
