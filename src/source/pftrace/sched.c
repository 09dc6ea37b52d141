/* SPDX-License-Identifier: MIT */
/*
 * Reads bundles of scheduler events: columns in the compact form, single messages otherwise.
 *
 * A compact switch has the incoming thread but not the outgoing one: that is the previous incoming
 * thread of the same CPU. So the three kinds of events of a bundle, each in time order, are merged
 * by time before they are emitted, and the running thread of each CPU is kept across bundles. After
 * a loss it is unknown, and the outgoing thread is tid 0 without a name until the next switch.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "source/pftrace/pftrace.h"

enum { RUN_MAX = 1 << 17 };

/* ------------------------------------------------------------------- threads */

static struct ew_pft_thread *cell_of(const struct ew_pftrace *trace, uint32_t tid)
{
    return &trace->threads[(tid * 2654435761u) >> (32 - EW_PFT_THREAD_BITS)];
}

static void copy_name(char to[EW_PFT_NAME_SIZE], const char *name, size_t len)
{
    len = len < EW_PFT_NAME_SIZE ? len : EW_PFT_NAME_SIZE - 1;
    memset(to, 0, EW_PFT_NAME_SIZE);
    if (len > 0)
        memcpy(to, name, len);
}

void ew_pft_set_thread(struct ew_pftrace *trace, uint32_t pid, uint32_t tid, const char *name,
                       size_t len)
{
    struct ew_pft_thread *cell = cell_of(trace, tid);
    if (tid == 0)
        return;
    if (cell->tid != tid)
        *cell = (struct ew_pft_thread){.tid = tid};
    cell->pid = pid;
    if (name != NULL)
        copy_name(cell->name, name, len);
}

const struct ew_pft_thread *ew_pft_thread(const struct ew_pftrace *trace, uint32_t tid)
{
    const struct ew_pft_thread *cell = cell_of(trace, tid);
    return cell->tid == tid && tid != 0 ? cell : NULL;
}

/* A process has its pid in field 1 and its arguments in 3; a thread its tid in 1, its name in 2
 * and its pid in 3. */
void ew_pft_process_tree(struct ew_pftrace *trace, struct ew_bytes *tree)
{
    struct ew_proto_field field, part;
    while (ew_proto_next(tree, &field)) {
        uint32_t first = 0, third = 0;
        struct ew_span name = {0};
        bool thread = field.number == 2;
        if ((field.number != 1 && !thread) || field.wire != EW_PROTO_LEN)
            continue;
        while (ew_proto_next(&field.body, &part)) {
            bool text = part.wire == EW_PROTO_LEN;
            if (part.number == 1 && !text)
                first = (uint32_t)part.u;
            if (part.number == 3 && !text)
                third = (uint32_t)part.u;
            if (text && name.text == NULL && part.number == (thread ? 2u : 3u))
                name = (struct ew_span){(const char *)part.body.data, part.body.size};
        }
        if (thread)
            ew_pft_set_thread(trace, third, first, name.text, name.len);
        else
            ew_pft_set_thread(trace, first, first, name.text, name.len);
    }
}

/* --------------------------------------------------------------------- runs */

static struct ew_pft_event *add(struct ew_pft_run *run)
{
    if (run->count == run->size) {
        uint32_t size = run->size == 0 ? 1024 : run->size * 2;
        if (size > RUN_MAX)
            return NULL;
        struct ew_pft_event *events = ew_realloc_array(run->events, size, sizeof *events);
        if (events == NULL)
            return NULL;
        run->events = events;
        run->size = size;
    }
    struct ew_pft_event *event = &run->events[run->count++];
    memset(event, 0, sizeof *event);
    event->target_cpu = UINT32_MAX;
    return event;
}

/* The columns of the compact form. */
struct columns {
    struct ew_bytes part[13]; /* by enum ew_pf_compact */
};

static struct ew_span name_at(const struct ew_pftrace *trace, uint64_t i)
{
    struct ew_span none = {NULL, 0};
    return i < trace->name_count ? trace->names[i] : none;
}

static bool read_switches(struct ew_pftrace *trace, struct columns *c)
{
    uint64_t t_ns = 0;
    while (ew_bytes_left(&c->part[EW_PF_SWITCH_TIME]) > 0) {
        t_ns += ew_proto_read_varint(&c->part[EW_PF_SWITCH_TIME]);
        struct ew_pft_event *e = add(&trace->switches);
        if (e == NULL)
            return false;
        struct ew_span name =
            name_at(trace, ew_proto_read_varint(&c->part[EW_PF_SWITCH_NEXT_COMM]));
        e->kind = ETWATCH_EVENT_SWITCH;
        e->t_ns = t_ns;
        e->state = (uint32_t)ew_proto_read_varint(&c->part[EW_PF_SWITCH_PREV_STATE]);
        e->next_tid = (uint32_t)ew_proto_read_varint(&c->part[EW_PF_SWITCH_NEXT_PID]);
        e->next_priority = (int32_t)ew_proto_read_varint(&c->part[EW_PF_SWITCH_NEXT_PRIO]);
        copy_name(e->next_name, name.text, name.len);
    }
    return ew_bytes_ok(&c->part[EW_PF_SWITCH_NEXT_PID]);
}

static bool read_wakings(struct ew_pftrace *trace, struct columns *c)
{
    uint64_t t_ns = 0;
    while (ew_bytes_left(&c->part[EW_PF_WAKING_TIME]) > 0) {
        t_ns += ew_proto_read_varint(&c->part[EW_PF_WAKING_TIME]);
        struct ew_pft_event *e = add(&trace->wakings);
        if (e == NULL)
            return false;
        struct ew_span name = name_at(trace, ew_proto_read_varint(&c->part[EW_PF_WAKING_COMM]));
        e->kind = ETWATCH_EVENT_WAKEUP;
        e->t_ns = t_ns;
        e->tid = (uint32_t)ew_proto_read_varint(&c->part[EW_PF_WAKING_PID]);
        e->target_cpu = (uint32_t)ew_proto_read_varint(&c->part[EW_PF_WAKING_CPU]);
        e->priority = (int32_t)ew_proto_read_varint(&c->part[EW_PF_WAKING_PRIO]);
        copy_name(e->name, name.text, name.len);
    }
    return ew_bytes_ok(&c->part[EW_PF_WAKING_PID]);
}

static bool read_compact(struct ew_pftrace *trace, struct ew_bytes *compact)
{
    struct columns columns;
    struct ew_proto_field field;
    memset(&columns, 0, sizeof columns);
    trace->name_count = 0;
    while (ew_proto_next(compact, &field)) {
        if (field.wire != EW_PROTO_LEN || field.number >= 13)
            continue;
        if (field.number != EW_PF_INTERN_TABLE)
            columns.part[field.number] = field.body;
        else if (trace->name_count < EW_PFT_NAMES_MAX)
            trace->names[trace->name_count++] =
                (struct ew_span){(const char *)field.body.data, field.body.size};
    }
    bool switches = read_switches(trace, &columns), wakings = read_wakings(trace, &columns);
    return switches && wakings && ew_bytes_ok(compact);
}

/* ------------------------------------------------------------------- messages */

static uint32_t kind_of(uint32_t field)
{
    switch (field) {
    case EW_PF_FTRACE_SWITCH:
        return ETWATCH_EVENT_SWITCH;
    case EW_PF_FTRACE_WAKING:
        return ETWATCH_EVENT_WAKEUP;
    case EW_PF_FTRACE_NEWTASK:
    case EW_PF_FTRACE_FORK:
        return ETWATCH_EVENT_FORK;
    case EW_PF_FTRACE_EXEC:
        return ETWATCH_EVENT_EXEC;
    case EW_PF_FTRACE_EXIT:
        return ETWATCH_EVENT_EXIT;
    default:
        return 0;
    }
}

/* The fields of a message by number; strings and numbers separate. */
struct message {
    uint64_t number[8];
    struct ew_span text[8];
    uint32_t seen; /* bit per field */
};

static void read_message(struct ew_bytes *body, struct message *ret)
{
    struct ew_proto_field field;
    memset(ret, 0, sizeof *ret);
    while (ew_proto_next(body, &field)) {
        if (field.number >= 8)
            continue;
        ret->seen |= 1u << field.number;
        if (field.wire == EW_PROTO_LEN)
            ret->text[field.number] =
                (struct ew_span){(const char *)field.body.data, field.body.size};
        else
            ret->number[field.number] = field.u;
    }
}

static void take_message(struct ew_pftrace *trace, struct ew_pft_event *e, const struct message *m)
{
    switch (e->kind) {
    case ETWATCH_EVENT_SWITCH:
        copy_name(e->name, m->text[1].text, m->text[1].len);
        copy_name(e->next_name, m->text[5].text, m->text[5].len);
        e->tid = (uint32_t)m->number[2];
        e->priority = (int32_t)m->number[3];
        e->state = (uint32_t)m->number[4];
        e->next_tid = (uint32_t)m->number[6];
        e->next_priority = (int32_t)m->number[7];
        break;
    case ETWATCH_EVENT_WAKEUP:
        copy_name(e->name, m->text[1].text, m->text[1].len);
        e->next_tid = e->tid; /* the waker */
        e->tid = (uint32_t)m->number[2];
        e->priority = (int32_t)m->number[3];
        e->target_cpu = (uint32_t)m->number[5];
        break;
    case ETWATCH_EVENT_FORK: {
        if (e->field == EW_PF_FTRACE_FORK) {
            const struct ew_pft_thread *child = ew_pft_thread(trace, (uint32_t)m->number[4]);
            e->next_tid = (uint32_t)m->number[4];
            e->next_pid = child != NULL ? child->pid : 0;
            copy_name(e->name, m->text[1].text, m->text[1].len);
            copy_name(e->next_name, m->text[3].text, m->text[3].len);
            break;
        }
        const struct ew_pft_thread *parent = ew_pft_thread(trace, e->tid);
        bool thread = (m->number[3] & EW_PF_CLONE_THREAD) != 0;
        e->next_tid = (uint32_t)m->number[1];
        e->next_pid = !thread || parent == NULL ? e->next_tid : parent->pid;
        copy_name(e->next_name, m->text[2].text, m->text[2].len);
        ew_pft_set_thread(trace, e->next_pid, e->next_tid, e->next_name,
                          strnlen(e->next_name, EW_PFT_NAME_SIZE));
        break;
    }
    case ETWATCH_EVENT_EXEC:
        copy_name(e->name, m->text[1].text, m->text[1].len);
        e->tid = (uint32_t)m->number[2];
        break;
    default:
        copy_name(e->name, m->text[1].text, m->text[1].len);
        e->tid = (uint32_t)m->number[2];
        e->priority = (int32_t)m->number[4];
        break;
    }
}

static bool read_event(struct ew_pftrace *trace, struct ew_bytes *event)
{
    struct ew_pft_event *e = add(&trace->others);
    struct ew_proto_field field;
    struct ew_bytes body = {0};
    struct message message;
    if (e == NULL)
        return false;
    e->full = true;
    while (ew_proto_next(event, &field)) {
        if (field.number == EW_PF_FTRACE_TIME && field.wire == EW_PROTO_VARINT)
            e->t_ns = field.u;
        if (field.number == EW_PF_FTRACE_PID && field.wire == EW_PROTO_VARINT)
            e->tid = (uint32_t)field.u;
        if (field.wire == EW_PROTO_LEN) {
            e->field = field.number;
            body = field.body;
        }
    }
    e->kind = kind_of(e->field);
    /* Other writers report the same by task_newtask. */
    if (e->field == EW_PF_FTRACE_FORK && !trace->own_known)
        e->kind = 0;
    if (e->kind != 0) {
        read_message(&body, &message);
        /* A switch that the writer did not observe: it only completes the picture. */
        if (e->field == EW_PF_FTRACE_SWITCH && trace->own_known && (message.seen & 1u << 3) == 0)
            trace->others.count--;
        else
            take_message(trace, e, &message);
    }
    return ew_bytes_ok(event) && ew_bytes_ok(&body);
}

/* ------------------------------------------------------------------- emitting */

static int32_t priority_of(int32_t prio)
{
    return (int32_t)((uint32_t)prio - EW_PF_PRIO_BASE);
}

static uint32_t kernel_state(uint32_t state)
{
    if (state == EW_PF_STATE_PREEMPTED)
        return 0;
    if (state == EW_PF_STATE_DEAD || state == EW_PF_STATE_ZOMBIE)
        return EW_PF_KERNEL_DEAD;
    return state == EW_PF_KERNEL_DEAD ? EW_PF_KERNEL_IDLE : state;
}

static uint32_t pid_of(const struct ew_pftrace *trace, uint32_t tid)
{
    const struct ew_pft_thread *thread = ew_pft_thread(trace, tid);
    return thread != NULL ? thread->pid : tid;
}

static const char *or_null(const char *name)
{
    return name[0] != '\0' ? name : NULL;
}

static int emit_other(struct ew_pftrace *trace, const struct ew_pft_event *e,
                      const struct ew_pftrace_visitor *visitor)
{
    char name[32] = "sched_process_free";
    bool known = e->field == EW_PF_FTRACE_FREE;
    /* Ours only marks the last switch of a thread. */
    if (visitor->other == NULL || (known && trace->own_known))
        return 0;
    if (!known)
        (void)snprintf(name, sizeof name, "field %u", e->field);
    return visitor->other(visitor->ctx, "ftrace", name, e->t_ns + trace->unix_minus_boot_ns, known);
}

/* Fills in the outgoing thread of a switch, the previous incoming thread of the CPU. */
static void complete(struct ew_pft_cpu *cpu, struct ew_pft_event *e)
{
    if (e->kind == ETWATCH_EVENT_WAKEUP && !e->full)
        e->next_tid = cpu->tid;
    if (e->kind != ETWATCH_EVENT_SWITCH)
        return;
    if (!e->full) {
        e->tid = cpu->tid;
        e->priority = cpu->known ? cpu->priority : EW_PF_PRIO_BASE;
        memcpy(e->name, cpu->name, sizeof e->name);
    }
    cpu->known = true;
    cpu->tid = e->next_tid;
    cpu->priority = e->next_priority;
    memcpy(cpu->name, e->next_name, sizeof cpu->name);
}

static int emit(struct ew_pftrace *trace, uint32_t number, struct ew_pft_event *e,
                const struct ew_pftrace_visitor *visitor)
{
    if (e->kind == 0)
        return emit_other(trace, e, visitor);
    complete(&trace->cpus[number], e);
    if (e->kind == ETWATCH_EVENT_SWITCH)
        e->state = kernel_state(e->state);
    struct etwatch_event event = {
        .size = sizeof event,
        .kind = e->kind,
        .t_ns = e->t_ns + trace->unix_minus_boot_ns,
        .cpu = number,
        .pid = pid_of(trace, e->tid),
        .tid = e->tid,
        .next_tid = e->next_tid,
        .next_pid = e->next_pid != 0 ? e->next_pid : pid_of(trace, e->next_tid),
        .state = e->state,
        .priority = priority_of(e->priority),
        .next_priority = e->kind == ETWATCH_EVENT_SWITCH ? priority_of(e->next_priority) : 0,
        .target_cpu = e->target_cpu,
        .name = or_null(e->name),
        .next_name = or_null(e->next_name),
    };
    return visitor->event != NULL ? visitor->event(visitor->ctx, &event) : 0;
}

int ew_pft_emit(struct ew_pftrace *trace, const struct ew_pftrace_visitor *visitor)
{
    struct ew_pft_run *runs[3] = {&trace->others, &trace->wakings, &trace->switches};
    uint32_t *at = trace->run_at;
    int rc = 0;
    for (; rc == 0 && trace->steps < EW_PFT_STEPS; trace->steps++) {
        int next = -1;
        for (int i = 0; i < 3; i++)
            if (at[i] < runs[i]->count &&
                (next < 0 || runs[i]->events[at[i]].t_ns < runs[next]->events[at[next]].t_ns))
                next = i;
        if (next < 0) {
            trace->runs_open = false;
            break;
        }
        rc = emit(trace, trace->run_cpu, &runs[next]->events[at[next]++], visitor);
    }
    return rc;
}

void ew_pft_bundle(struct ew_pftrace *trace, struct ew_bytes *bundle)
{
    struct ew_proto_field field;
    uint64_t offset = bundle->base, size = bundle->size;
    uint32_t cpu = 0;
    bool good = true;
    trace->switches.count = trace->wakings.count = trace->others.count = 0;
    while (ew_proto_next(bundle, &field)) {
        if (field.number == EW_PF_BUNDLE_CPU && field.wire == EW_PROTO_VARINT)
            cpu = (uint32_t)field.u;
        else if (field.number == EW_PF_BUNDLE_LOST && field.u != 0)
            trace->counts.lost_bundles++;
        else if (field.number == EW_PF_BUNDLE_EVENT && field.wire == EW_PROTO_LEN)
            good = read_event(trace, &field.body) && good;
        else if (field.number == EW_PF_BUNDLE_COMPACT && field.wire == EW_PROTO_LEN)
            good = read_compact(trace, &field.body) && good;
    }
    if (!good || !ew_bytes_ok(bundle) || cpu >= EW_PFT_CPUS_MAX)
        ew_pft_damage(trace, offset, size, "a bundle of scheduler events is malformed");
    memset(trace->run_at, 0, sizeof trace->run_at);
    trace->run_cpu = cpu;
    trace->runs_open = cpu < EW_PFT_CPUS_MAX;
}
