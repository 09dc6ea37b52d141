/* SPDX-License-Identifier: MIT */
/*
 * The events of a slot are replayed per answer: from the state of each thread (it has a CPU, is
 * ready to have one, sleeps, waits for a disk) come intervals. A thread is unknown until its first
 * event.
 */
#include "serve/strip.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "serve/catalog.h"

enum {
    RUN,
    READY,
    SLEEP,
    BLOCKED,
    UNKNOWN
}; /* kinds of intervals, as the dashboard numbers them */
enum { CULPRITS = 64, CULPRITS_SHOWN = 8, STATE_BLOCKED = 2 };

#define RENEW_NS UINT64_C(2000000000)
#define RETRY_NS UINT64_C(10000000000)
#define MARGIN_NS UINT64_C(500000000)

static void free_slot(struct ew_strip_slot *slot)
{
    ew_free(slot->events);
    *slot = (struct ew_strip_slot){0};
}

void ew_strip_done(struct ew_strip *sched)
{
    for (uint32_t i = 0; i < EW_STRIP_SLOTS; i++)
        free_slot(&sched->slots[i]);
    ew_free(sched->names);
    ew_buf_done(&sched->stacks.text);
    *sched = (struct ew_strip){0};
}

/* ------------------------------------------------------------------------- requests */

static struct ew_strip_slot *slot_of(struct ew_strip *sched, uint32_t pid)
{
    for (uint32_t i = 0; i < EW_STRIP_SLOTS && pid != 0; i++)
        if (sched->slots[i].pid == pid)
            return &sched->slots[i];
    return NULL;
}

/* The slot that was wanted least recently, emptied. */
static struct ew_strip_slot *take_slot(struct ew_strip *sched, uint32_t pid)
{
    struct ew_strip_slot *slot = &sched->slots[0];
    for (uint32_t i = 1; i < EW_STRIP_SLOTS; i++)
        if (sched->slots[i].wanted_ns < slot->wanted_ns)
            slot = &sched->slots[i];
    free_slot(slot);
    slot->events = ew_calloc(EW_STRIP_EVENTS, sizeof *slot->events);
    if (sched->names == NULL)
        sched->names = ew_calloc(EW_STRIP_NAMES, sizeof *sched->names);
    if (slot->events == NULL || sched->names == NULL) {
        free_slot(slot);
        return NULL;
    }
    slot->pid = pid;
    return slot;
}

struct ew_strip_slot *ew_strip_want(struct ew_strip *sched, uint32_t pid, uint64_t from_ns,
                                    uint64_t to_ns, uint64_t now_ns)
{
    struct ew_strip_slot *slot = slot_of(sched, pid);
    bool idle = slot != NULL && !sched->recorded && now_ns > slot->wanted_ns + EW_STRIP_IDLE_NS;
    if (slot == NULL || idle) /* between two views there is a gap */
        slot = take_slot(sched, pid);
    if (slot == NULL)
        return NULL;
    slot->wanted_ns = now_ns;
    bool inside = slot->stage != EW_STRIP_NONE && from_ns >= slot->from_ns && to_ns <= slot->to_ns;
    if (sched->recorded && !inside && slot->stage != EW_STRIP_READING) {
        slot->count = 0;
        slot->stage = EW_STRIP_READING;
        slot->from_ns = from_ns > MARGIN_NS ? from_ns - MARGIN_NS : 0;
        slot->to_ns = to_ns + MARGIN_NS;
        sched->problem[0] = '\0';
    }
    return slot;
}

void ew_strip_want_stacks(struct ew_strip *sched, uint32_t pid, uint64_t from_ns, uint64_t to_ns,
                          uint64_t now_ns)
{
    bool same = sched->stacks.stage != EW_STRIP_NONE && sched->stacks.pid == pid &&
                sched->stacks.from_ns == from_ns && sched->stacks.to_ns == to_ns;
    sched->stacks.wanted_ns = now_ns;
    if (same || sched->stacks.stage == EW_STRIP_READING)
        return;
    ew_buf_done(&sched->stacks.text);
    ew_buf_init(&sched->stacks.text, EW_STRIP_STACKS_MAX, NULL, NULL);
    sched->stacks.pid = pid;
    sched->stacks.from_ns = from_ns;
    sched->stacks.to_ns = to_ns;
    sched->stacks.stage = EW_STRIP_READING;
    sched->stacks.problem[0] = '\0';
}

static void request_live(const struct ew_strip *sched, uint64_t now_ns,
                         struct ew_serve_request *request)
{
    request->kind = EW_SERVE_SCHED;
    for (uint32_t i = 0; i < EW_STRIP_SLOTS; i++)
        if (sched->slots[i].pid != 0 && now_ns <= sched->slots[i].wanted_ns + EW_STRIP_IDLE_NS)
            request->pids[request->pid_count++] = sched->slots[i].pid;
}

static void request_recorded(const struct ew_strip *sched, struct ew_serve_request *request)
{
    if (sched->stacks.stage == EW_STRIP_READING) {
        *request = (struct ew_serve_request){
            EW_SERVE_STACKS, 1, {sched->stacks.pid}, sched->stacks.from_ns, sched->stacks.to_ns};
        return;
    }
    for (uint32_t i = 0; i < EW_STRIP_SLOTS && request->pid_count == 0; i++) {
        const struct ew_strip_slot *slot = &sched->slots[i];
        if (slot->pid != 0 && slot->stage == EW_STRIP_READING)
            *request = (struct ew_serve_request){
                EW_SERVE_SCHED, 1, {slot->pid}, slot->from_ns, slot->to_ns};
    }
}

bool ew_strip_request(struct ew_strip *sched, uint64_t now_ns, struct ew_serve_request *ret_request)
{
    struct ew_serve_request request;
    memset(&request, 0, sizeof request);
    if (!sched->available)
        return false;
    if (sched->recorded)
        request_recorded(sched, &request);
    else
        request_live(sched, now_ns, &request);
    bool same = memcmp(&request, &sched->sent, sizeof request) == 0;
    bool refused = !sched->recorded && sched->problem[0] != '\0';
    if (request.pid_count == 0 ||
        (same && now_ns < sched->sent_ns + (refused ? RETRY_NS : RENEW_NS)))
        return false;
    sched->sent = *ret_request = request;
    sched->sent_ns = now_ns;
    return true;
}

/* --------------------------------------------------------------------------- events */

static void keep_name(struct ew_strip *sched, uint32_t tid, uint32_t pid, const char *name)
{
    if (tid == 0 || name[0] == '\0' || sched->names == NULL)
        return;
    struct ew_strip_name *at = &sched->names[tid % EW_STRIP_NAMES];
    at->tid = tid;
    at->pid = pid;
    memcpy(at->name, name, sizeof at->name);
}

const struct ew_strip_name *ew_strip_name(const struct ew_strip *sched, uint32_t tid)
{
    const struct ew_strip_name *at =
        sched->names == NULL ? NULL : &sched->names[tid % EW_STRIP_NAMES];
    return at != NULL && at->tid == tid && tid != 0 ? at : NULL;
}

static void keep_event(struct ew_strip_slot *slot, const struct ew_serve_event *event)
{
    if (slot == NULL)
        return;
    slot->began_ns = slot->count == 0 ? event->t_ns : slot->began_ns;
    slot->events[slot->count++ % EW_STRIP_EVENTS] = (struct ew_strip_event){
        .t_ns = event->t_ns,
        .pid = event->pid,
        .tid = event->tid,
        .next_pid = event->next_pid,
        .next_tid = event->next_tid,
        .ready_us =
            event->ready_ns / 1000 < UINT32_MAX ? (uint32_t)(event->ready_ns / 1000) : UINT32_MAX,
        .cpu = (uint16_t)event->cpu,
        .kind = (uint8_t)event->kind,
        .state = (uint8_t)(event->state & 0xff),
    };
}

static void take_event(struct ew_strip *sched, const struct ew_serve_event *event)
{
    bool other = event->kind == ETWATCH_EVENT_SWITCH && event->next_pid != event->pid;
    keep_name(sched, event->tid, event->pid, event->name);
    if (event->kind == ETWATCH_EVENT_SWITCH || event->kind == ETWATCH_EVENT_WAKEUP)
        keep_name(sched, event->next_tid, event->next_pid, event->next_name);
    keep_event(slot_of(sched, event->pid), event);
    if (other)
        keep_event(slot_of(sched, event->next_pid), event);
}

static void take_end(struct ew_strip *sched, const struct ew_serve_detail_end *end)
{
    const struct ew_serve_request *request = &end->request;
    bool stacks = request->kind == EW_SERVE_STACKS;
    char *problem = stacks ? sched->stacks.problem : sched->problem;
    memcpy(problem, end->text, sizeof end->text);
    sched->lost += end->lost;
    if (stacks && request->pids[0] == sched->stacks.pid &&
        request->from_ns == sched->stacks.from_ns && request->to_ns == sched->stacks.to_ns)
        sched->stacks.stage = EW_STRIP_READ;
    struct ew_strip_slot *slot = stacks ? NULL : slot_of(sched, request->pids[0]);
    if (slot != NULL && slot->from_ns == request->from_ns && slot->to_ns == request->to_ns)
        slot->stage = EW_STRIP_READ;
}

bool ew_strip_frame(struct ew_strip *sched, uint32_t type, struct ew_bytes *body)
{
    struct ew_serve_event event;
    struct ew_serve_detail_end end;
    if (type == EW_FRAME_SCHED) {
        while (ew_wire_read_event(body, &event))
            take_event(sched, &event);
        return ew_bytes_left(body) == 0;
    }
    if (type == EW_FRAME_STACKS) {
        size_t len = ew_bytes_left(body);
        const uint8_t *text = ew_bytes_take(body, len);
        if (text != NULL && sched->stacks.stage == EW_STRIP_READING)
            ew_buf_bytes(&sched->stacks.text, (const char *)text, len);
        return text != NULL;
    }
    bool good = ew_wire_read_detail_end(body, &end);
    if (good)
        take_end(sched, &end);
    return good;
}

/* ------------------------------------------------------------------------ the strip */

struct track {
    uint32_t tid, by, cpu;
    int state;
    uint64_t since_ns, known_ns;
};

struct interval {
    uint32_t track, kind, cpu, by;
    uint64_t from_ns, to_ns;
};

struct culprit {
    uint32_t tid, count;
    uint64_t ns;
};

struct strip {
    uint64_t from_ns, to_ns;
    uint32_t pid, track_count, interval_count, culprit_count;
    bool truncated;
    struct track tracks[EW_STRIP_THREADS];
    struct culprit culprits[CULPRITS];
    struct interval intervals[EW_STRIP_INTERVALS];
};

static struct track *track_of(struct strip *strip, uint32_t tid, uint64_t t_ns)
{
    uint32_t i = 0;
    while (i < strip->track_count && strip->tracks[i].tid != tid)
        i++;
    if (i == strip->track_count) {
        if (i == EW_STRIP_THREADS) {
            strip->truncated = true;
            return NULL;
        }
        strip->track_count++;
        strip->tracks[i] = (struct track){.tid = tid, .state = UNKNOWN, .known_ns = t_ns};
    }
    return &strip->tracks[i];
}

static void add_culprit(struct strip *strip, uint32_t tid, uint64_t ns)
{
    uint32_t i = 0;
    while (i < strip->culprit_count && strip->culprits[i].tid != tid)
        i++;
    if (i == CULPRITS)
        return;
    if (i == strip->culprit_count)
        strip->culprits[strip->culprit_count++] = (struct culprit){.tid = tid};
    strip->culprits[i].count++;
    strip->culprits[i].ns += ns;
}

/* Ends the current interval of a thread and begins another. */
static void change(struct strip *strip, struct track *track, uint64_t t_ns, int state, uint32_t cpu,
                   uint32_t by)
{
    uint64_t from_ns = track->since_ns > strip->from_ns ? track->since_ns : strip->from_ns;
    uint64_t to_ns = t_ns < strip->to_ns ? t_ns : strip->to_ns;
    bool shown = track->state != UNKNOWN && track->state != SLEEP && from_ns < to_ns;
    if (shown && strip->interval_count == EW_STRIP_INTERVALS) {
        strip->truncated = true;
    } else if (shown) {
        /* A running thread that is preempted: by the thread that takes the CPU. */
        bool run = track->state == RUN;
        strip->intervals[strip->interval_count++] =
            (struct interval){(uint32_t)(track - strip->tracks),
                              (uint32_t)track->state,
                              track->cpu,
                              run ? by : track->by,
                              from_ns,
                              to_ns};
        if (track->state == READY && track->by != 0)
            add_culprit(strip, track->by, to_ns - from_ns);
    }
    track->state = state;
    track->since_ns = t_ns;
    track->cpu = cpu;
    track->by = state == READY ? by : 0;
}

static void replay_switch(struct strip *strip, const struct ew_strip_event *event)
{
    if (event->pid == strip->pid && event->tid != 0) {
        struct track *track = track_of(strip, event->tid, event->t_ns);
        bool preempted = event->state == 0;
        int state = preempted ? READY : (event->state & STATE_BLOCKED) != 0 ? BLOCKED : SLEEP;
        if (track != NULL)
            change(strip, track, event->t_ns, state, event->cpu, preempted ? event->next_tid : 0);
    }
    if (event->next_pid == strip->pid && event->next_tid != 0) {
        struct track *track = track_of(strip, event->next_tid, event->t_ns);
        uint64_t ready_ns = event->ready_us == UINT32_MAX ? 0 : event->ready_us * UINT64_C(1000);
        if (track == NULL)
            return;
        if (track->state != READY && ready_ns > 0 && ready_ns < event->t_ns &&
            event->t_ns - ready_ns >= track->since_ns)
            change(strip, track, event->t_ns - ready_ns, READY, event->cpu, 0);
        change(strip, track, event->t_ns, RUN, event->cpu, 0);
    }
}

static void replay(struct strip *strip, const struct ew_strip_slot *slot)
{
    uint64_t first = slot->count > EW_STRIP_EVENTS ? slot->count - EW_STRIP_EVENTS : 0;
    uint64_t last_ns = 0;
    for (uint64_t i = first; i < slot->count; i++) {
        const struct ew_strip_event *event = &slot->events[i % EW_STRIP_EVENTS];
        if (event->t_ns >= strip->to_ns)
            break;
        last_ns = event->t_ns;
        if (event->kind == ETWATCH_EVENT_SWITCH) {
            replay_switch(strip, event);
            continue;
        }
        struct track *track =
            event->pid == strip->pid && event->tid != 0 &&
                    (event->kind == ETWATCH_EVENT_WAKEUP || event->kind == ETWATCH_EVENT_EXIT)
                ? track_of(strip, event->tid, event->t_ns)
                : NULL;
        if (track != NULL && event->kind == ETWATCH_EVENT_EXIT)
            change(strip, track, event->t_ns, UNKNOWN, 0, 0);
        else if (track != NULL && track->state != RUN && track->state != READY)
            change(strip, track, event->t_ns, READY, event->cpu, 0);
    }
    for (uint32_t i = 0; i < strip->track_count; i++)
        change(strip, &strip->tracks[i], slot->stage == EW_STRIP_READ ? strip->to_ns : last_ns,
               UNKNOWN, 0, 0);
}

static void put_us(struct ew_buf *out, uint64_t ns)
{
    ew_catalog_put_short(out, (double)ns / 1000);
}

static void put_ms(struct ew_buf *out, const char *key, uint64_t ns)
{
    ew_buf_text(out, key);
    if (ns == 0)
        ew_buf_text(out, "null");
    else
        ew_catalog_put_short(out, (double)(ns / 1000) / 1000);
}

static void put_name(const struct ew_strip *sched, uint32_t tid, struct ew_buf *out)
{
    const struct ew_strip_name *name = ew_strip_name(sched, tid);
    if (name == NULL)
        ew_buf_text(out, "null");
    else
        ew_buf_json_string(out, name->name, strlen(name->name));
}

static void put_tracks(const struct ew_strip *sched, const struct strip *strip, struct ew_buf *out)
{
    for (uint32_t t = 0; t < strip->track_count; t++) {
        const struct track *track = &strip->tracks[t];
        ew_buf_text(out, t == 0 ? "{\"tid\":" : ",\n{\"tid\":");
        ew_buf_u64(out, track->tid);
        ew_buf_text(out, ",\"name\":");
        put_name(sched, track->tid, out);
        put_ms(out, ",\"known_from_ms\":", track->known_ns);
        ew_buf_text(out, ",\"intervals\":[");
        bool first = true;
        for (uint32_t i = 0; i < strip->interval_count; i++) {
            const struct interval *interval = &strip->intervals[i];
            if (interval->track != t)
                continue;
            ew_buf_text(out, first ? "[" : ",[");
            first = false;
            ew_buf_u64(out, interval->kind);
            ew_buf_char(out, ',');
            put_us(out, interval->from_ns - strip->from_ns);
            ew_buf_char(out, ',');
            put_us(out, interval->to_ns - interval->from_ns);
            ew_buf_char(out, ',');
            ew_buf_u64(out, interval->cpu);
            ew_buf_char(out, ',');
            ew_buf_u64(out, interval->by);
            ew_buf_char(out, ']');
        }
        ew_buf_text(out, "]}");
    }
}

/* Names of threads that took the CPU. */
static void put_names(const struct ew_strip *sched, const struct strip *strip, struct ew_buf *out)
{
    bool first = true;
    for (uint32_t i = 0; i < strip->culprit_count; i++) {
        const struct ew_strip_name *name = ew_strip_name(sched, strip->culprits[i].tid);
        if (name == NULL)
            continue;
        ew_buf_text(out, first ? "\"" : ",\"");
        first = false;
        ew_buf_u64(out, name->tid);
        ew_buf_text(out, "\":");
        ew_buf_json_string(out, name->name, strlen(name->name));
    }
}

static void put_culprits(const struct ew_strip *sched, struct strip *strip, struct ew_buf *out)
{
    for (uint32_t shown = 0; shown < CULPRITS_SHOWN && shown < strip->culprit_count; shown++) {
        uint32_t most = shown;
        for (uint32_t i = shown + 1; i < strip->culprit_count; i++)
            if (strip->culprits[i].ns > strip->culprits[most].ns)
                most = i;
        struct culprit culprit = strip->culprits[most];
        strip->culprits[most] = strip->culprits[shown];
        strip->culprits[shown] = culprit;
        ew_buf_text(out, shown == 0 ? "{\"tid\":" : ",{\"tid\":");
        ew_buf_u64(out, culprit.tid);
        ew_buf_text(out, ",\"name\":");
        put_name(sched, culprit.tid, out);
        ew_buf_text(out, ",\"count\":");
        ew_buf_u64(out, culprit.count);
        ew_buf_text(out, ",\"us\":");
        put_us(out, culprit.ns);
        ew_buf_char(out, '}');
    }
}

static const char *stage_of(const struct ew_strip *sched, const struct ew_strip_slot *slot)
{
    if (sched->problem[0] != '\0' && slot->count == 0)
        return "unavailable";
    if (!sched->recorded)
        return slot->count > 0 ? "live" : "starting";
    return slot->stage == EW_STRIP_READ ? "read" : "reading";
}

void ew_strip_put_strip(const struct ew_strip *sched, const struct ew_strip_slot *slot,
                        uint64_t from_ns, uint64_t to_ns, struct ew_buf *out)
{
    struct strip *strip = ew_calloc(1, sizeof *strip);
    if (strip == NULL) {
        out->error = ETWATCH_ENOMEM;
        return;
    }
    strip->pid = slot->pid;
    uint64_t first = slot->count > EW_STRIP_EVENTS ? slot->count % EW_STRIP_EVENTS : 0;
    uint64_t known_ns = slot->count > 0 ? slot->events[first].t_ns : 0;
    uint64_t last_ns = slot->count > 0 ? slot->events[(slot->count - 1) % EW_STRIP_EVENTS].t_ns : 0;
    /* Live: the latest stretch of this length that is known. */
    if (!sched->recorded && last_ns != 0 && to_ns > last_ns) {
        from_ns = to_ns - from_ns < last_ns ? last_ns - (to_ns - from_ns) : 0;
        to_ns = last_ns;
    }
    strip->from_ns = from_ns;
    strip->to_ns = to_ns;
    replay(strip, slot);
    ew_buf_text(out, "{\"stage\":\"");
    ew_buf_text(out, stage_of(sched, slot));
    ew_buf_text(out, "\",\"problem\":");
    if (sched->problem[0] != '\0')
        ew_buf_json_string(out, sched->problem, strlen(sched->problem));
    else
        ew_buf_text(out, "null");
    put_ms(out, ",\"from_ms\":", from_ns);
    put_ms(out, ",\"to_ms\":", to_ns);
    put_ms(out, ",\"known_from_ms\":", known_ns);
    ew_buf_text(out, strip->truncated ? ",\"truncated\":true" : ",\"truncated\":false");
    ew_buf_text(out, ",\"lost\":");
    ew_buf_u64(out, sched->lost);
    ew_buf_text(out, ",\"threads\":[");
    put_tracks(sched, strip, out);
    ew_buf_text(out, "],\"preempted_by\":[");
    put_culprits(sched, strip, out);
    ew_buf_text(out, "],\"names\":{");
    put_names(sched, strip, out);
    ew_buf_text(out, "}}\n");
    ew_free(strip);
}

/* -------------------------------------------------------------------------- stacks */

void ew_strip_put_stacks(const struct ew_strip *sched, struct ew_buf *out)
{
    const char *problem = sched->stacks.problem;
    const struct ew_buf *text = &sched->stacks.text;
    ew_buf_text(out, "{\"stage\":\"");
    ew_buf_text(out, sched->stacks.stage == EW_STRIP_READ ? "read" : "reading");
    ew_buf_text(out, "\",\"problem\":");
    if (problem[0] != '\0')
        ew_buf_json_string(out, problem, strlen(problem));
    else
        ew_buf_text(out, "null");
    ew_buf_text(out, text->error != 0 ? ",\"truncated\":true" : ",\"truncated\":false");
    ew_buf_text(out, ",\"folded\":");
    ew_buf_json_string(out, text->data != NULL ? text->data : "", text->len);
    ew_buf_text(out, "}\n");
}
