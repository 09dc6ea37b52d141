/* SPDX-License-Identifier: MIT */
/*
 * Owns the runs that have begun, by thread, and the names of sessions, by process and number. A run
 * that fails may have no end: the next one of its thread replaces it. Older versions of the runtime
 * state no session in the events of a run: then it is known if the process has only one.
 */
#include "recording/onnx_events.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* 3a26b1ff-7484-7484-7484-15261f42614d, as on disk. */
static const uint8_t provider[16] = {0xff, 0xb1, 0x26, 0x3a, 0x84, 0x74, 0x84, 0x74,
                                     0x74, 0x84, 0x15, 0x26, 0x1f, 0x42, 0x61, 0x4d};

struct ew_onnx_open {
    uint32_t pid, tid, kind; /* enum etwatch_span_kind */
    uint64_t t_ns;
};

struct ew_onnx_session {
    uint32_t pid, id;
    char name[EW_ONNX_NAME_SIZE];
};

void ew_recording_onnx_done(struct ew_onnx_events *events)
{
    ew_free(events->open);
    ew_free(events->sessions);
    memset(events, 0, sizeof *events);
}

bool ew_recording_onnx_wants(const struct etwatch_trace_event *event)
{
    return memcmp(event->provider_guid, provider, sizeof provider) == 0;
}

/* ------------------------------------------------------------------------- fields */

static const struct etwatch_field *field_of(const struct etwatch_trace_event *event,
                                            const char *name)
{
    for (uint32_t i = 0; i < event->field_count; i++)
        if (event->fields[i].name != NULL && strcmp(event->fields[i].name, name) == 0)
            return &event->fields[i];
    return NULL;
}

static bool number_of(const struct etwatch_trace_event *event, const char *name, uint32_t *ret)
{
    const struct etwatch_field *field = field_of(event, name);
    if (field == NULL || (field->type != ETWATCH_FIELD_U64 && field->type != ETWATCH_FIELD_BOOL))
        return false;
    *ret = (uint32_t)field->v.u;
    return true;
}

/* Without the folders of a path; NULL: there is none, or it is empty. */
static const char *file_name_of(const struct etwatch_trace_event *event, const char *name)
{
    const struct etwatch_field *field = field_of(event, name);
    if (field == NULL || field->type != ETWATCH_FIELD_TEXT || field->v.text[0] == '\0')
        return NULL;
    const char *last = field->v.text;
    for (const char *at = last; *at != '\0'; at++)
        if ((*at == '/' || *at == '\\') && at[1] != '\0')
            last = at + 1;
    return last;
}

/* ------------------------------------------------------------------------ sessions */

static struct ew_onnx_session *find_session(const struct ew_onnx_events *events, uint32_t pid,
                                            uint32_t id)
{
    for (uint32_t i = events->session_count; i > 0; i--)
        if (events->sessions[i - 1].pid == pid && events->sessions[i - 1].id == id)
            return &events->sessions[i - 1];
    return NULL;
}

/* Its entry, with the name "session 3" if it is new; NULL: no room. */
static struct ew_onnx_session *session_of(struct ew_onnx_events *events, uint32_t pid, uint32_t id)
{
    struct ew_onnx_session *session = find_session(events, pid, id);
    if (session != NULL)
        return session;
    if (events->session_count == events->session_size) {
        uint32_t size = events->session_size == 0 ? 16 : events->session_size * 2;
        struct ew_onnx_session *grown =
            size > EW_ONNX_SESSIONS_MAX ? NULL
                                        : ew_realloc_array(events->sessions, size, sizeof *grown);
        if (grown == NULL) {
            events->dropped++;
            return NULL;
        }
        events->sessions = grown;
        events->session_size = size;
    }
    session = &events->sessions[events->session_count++];
    session->pid = pid;
    session->id = id;
    (void)snprintf(session->name, sizeof session->name, "session %u", id);
    return session;
}

/* Two sessions of one model have different names, as in the other ways to see them. */
static void name_session(const struct ew_onnx_events *events, struct ew_onnx_session *session,
                         const char *name)
{
    uint32_t number = 1;
    size_t len = strlen(name);
    for (uint32_t i = 0; i < events->session_count; i++) {
        const struct ew_onnx_session *other = &events->sessions[i];
        number += other != session && other->pid == session->pid &&
                  strncmp(other->name, name, len) == 0 &&
                  (other->name[len] == '\0' || other->name[len] == '#');
    }
    if (number == 1)
        (void)snprintf(session->name, sizeof session->name, "%s", name);
    else
        (void)snprintf(session->name, sizeof session->name, "%.48s#%u", name, number);
}

static void learn_session(struct ew_onnx_events *events, const struct etwatch_trace_event *event)
{
    uint32_t id = 0;
    const char *name = file_name_of(event, "modelFileName");
    if (name == NULL)
        name = file_name_of(event, "modelGraphName");
    if (!number_of(event, "sessionId", &id) || find_session(events, event->header_pid, id) != NULL)
        return;
    struct ew_onnx_session *session = session_of(events, event->header_pid, id);
    if (session != NULL && name != NULL)
        name_session(events, session, name);
}

/* NULL: unknown. */
static const char *session_name(struct ew_onnx_events *events,
                                const struct etwatch_trace_event *event)
{
    uint32_t id = 0;
    const struct ew_onnx_session *only = NULL;
    if (number_of(event, "sessionId", &id))
        only = session_of(events, event->header_pid, id);
    else
        for (uint32_t i = 0; i < events->session_count; i++) {
            if (events->sessions[i].pid != event->header_pid)
                continue;
            if (only != NULL)
                return NULL;
            only = &events->sessions[i];
        }
    return only == NULL ? NULL : only->name;
}

/* ---------------------------------------------------------------------------- pairs */

static struct ew_onnx_open *find_open(const struct ew_onnx_events *events,
                                      const struct etwatch_trace_event *event, uint32_t kind)
{
    for (uint32_t i = events->open_count; i > 0; i--) {
        struct ew_onnx_open *open = &events->open[i - 1];
        if (open->pid == event->header_pid && open->tid == event->header_tid && open->kind == kind)
            return open;
    }
    return NULL;
}

static void begin(struct ew_onnx_events *events, const struct etwatch_trace_event *event,
                  uint32_t kind)
{
    struct ew_onnx_open *open = find_open(events, event, kind);
    if (open == NULL && events->open_count == EW_ONNX_OPEN_MAX) {
        /* Runs that failed have no end: the oldest is one of them. */
        memmove(events->open, events->open + 1, (EW_ONNX_OPEN_MAX - 1) * sizeof *open);
        events->open_count--;
        events->dropped++;
    }
    if (open == NULL && events->open_count == events->open_size) {
        uint32_t size = events->open_size == 0 ? 16 : events->open_size * 2;
        struct ew_onnx_open *grown = ew_realloc_array(events->open, size, sizeof *grown);
        if (grown == NULL) {
            events->dropped++;
            return;
        }
        events->open = grown;
        events->open_size = size;
    }
    if (open == NULL)
        open = &events->open[events->open_count++];
    *open = (struct ew_onnx_open){event->header_pid, event->header_tid, kind, event->t_ns};
}

/* False: its start is not known. */
static bool end(struct ew_onnx_events *events, const struct etwatch_trace_event *event,
                uint32_t kind, struct etwatch_span *ret_span)
{
    struct ew_onnx_open *open = find_open(events, event, kind);
    if (open == NULL)
        return false;
    *ret_span = (struct etwatch_span){
        .size = sizeof *ret_span,
        .kind = kind,
        .flags = ETWATCH_SPAN_PROBED,
        .pid = event->header_pid,
        .tid = event->header_tid,
        .end_tid = event->header_tid,
        .start_ns = open->t_ns,
        .end_ns = event->t_ns > open->t_ns ? event->t_ns : open->t_ns,
        .name = kind == ETWATCH_SPAN_LOAD ? "load" : "run",
        .session = session_name(events, event),
    };
    size_t after = (size_t)(events->open + events->open_count - (open + 1));
    memmove(open, open + 1, after * sizeof *open);
    events->open_count--;
    return true;
}

bool ew_recording_onnx_add(struct ew_onnx_events *events, const struct etwatch_trace_event *event,
                           struct etwatch_span *ret_span)
{
    uint32_t succeeded = 1;
    if (!ew_recording_onnx_wants(event) || (event->flags & ETWATCH_TRACE_HAS_HEADER_IDS) == 0)
        return false;
    if (strcmp(event->event, "EvaluationStart") == 0) {
        begin(events, event, ETWATCH_SPAN_INFERENCE);
    } else if (strcmp(event->event, "EvaluationStop") == 0) {
        return end(events, event, ETWATCH_SPAN_INFERENCE, ret_span);
    } else if (strcmp(event->event, "SessionCreationStart") == 0) {
        begin(events, event, ETWATCH_SPAN_LOAD);
    } else if (strcmp(event->event, "SessionCreation") == 0) {
        learn_session(events, event);
        return end(events, event, ETWATCH_SPAN_LOAD, ret_span);
    } else if (strcmp(event->event, "SessionCreation_CaptureState") == 0) {
        learn_session(events, event); /* it exists already */
    } else if (strcmp(event->event, "SessionCreationEnd") == 0) {
        /* After SessionCreation, if it was created: there is nothing left to end. */
        if (!end(events, event, ETWATCH_SPAN_LOAD, ret_span))
            return false;
        if (number_of(event, "isSuccess", &succeeded) && succeeded == 0)
            ret_span->flags |= ETWATCH_SPAN_FAILED;
        return true;
    }
    return false;
}
