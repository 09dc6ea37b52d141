/* SPDX-License-Identifier: MIT */
#include "span/profile_reader.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json_read.h"

/* Times beyond this (about 35 years in microseconds) are no times. */
static const uint64_t most_us = UINT64_C(1) << 50;

struct event {
    char cat[16], node[256], type[64], provider[64];
    uint64_t tid, dur_us, ts_us;
    uint32_t pool_threads;
};

/* The members of "sub_threads": the threads of the pool without the caller. */
static void read_pool(struct ew_bytes *in, struct event *event)
{
    char key[32];
    for (bool more = ew_jsonin_first(in, '{'); more; more = ew_jsonin_next(in, '}')) {
        ew_jsonin_key(in, key, sizeof key);
        if (strcmp(key, "sub_threads") != 0 || ew_jsonin_peek(in) != '{') {
            ew_jsonin_skip(in);
            continue;
        }
        event->pool_threads = 1;
        for (bool thread = ew_jsonin_first(in, '{'); thread; thread = ew_jsonin_next(in, '}')) {
            ew_jsonin_key(in, key, sizeof key);
            ew_jsonin_skip(in);
            event->pool_threads++;
        }
    }
}

static void read_args(struct ew_bytes *in, struct event *event)
{
    char key[40];
    for (bool more = ew_jsonin_first(in, '{'); more; more = ew_jsonin_next(in, '}')) {
        ew_jsonin_key(in, key, sizeof key);
        char c = ew_jsonin_peek(in);
        if (strcmp(key, "op_name") == 0 && c == '"')
            (void)ew_jsonin_text(in, event->type, sizeof event->type);
        else if (strcmp(key, "provider") == 0 && c == '"')
            (void)ew_jsonin_text(in, event->provider, sizeof event->provider);
        else if (strcmp(key, "thread_scheduling_stats") == 0 && c == '{')
            read_pool(in, event);
        else
            ew_jsonin_skip(in);
    }
}

static void read_member(struct ew_bytes *in, const char *key, struct event *event)
{
    char c = ew_jsonin_peek(in);
    bool number = c >= '0' && c <= '9';
    if (strcmp(key, "cat") == 0 && c == '"')
        (void)ew_jsonin_text(in, event->cat, sizeof event->cat);
    else if (strcmp(key, "name") == 0 && c == '"')
        (void)ew_jsonin_text(in, event->node, sizeof event->node);
    else if (strcmp(key, "tid") == 0 && number)
        event->tid = ew_jsonin_u64(in);
    else if (strcmp(key, "dur") == 0 && number)
        event->dur_us = ew_jsonin_u64(in);
    else if (strcmp(key, "ts") == 0 && number)
        event->ts_us = ew_jsonin_u64(in);
    else if (strcmp(key, "args") == 0 && c == '{')
        read_args(in, event);
    else
        ew_jsonin_skip(in);
}

/* A node's event is called "NODE_kernel_time"; false: it is another event. */
static bool cut_suffix(char *name)
{
    static const char suffix[] = "_kernel_time";
    size_t len = strlen(name), suffix_len = sizeof suffix - 1;
    if (len < suffix_len || strcmp(name + len - suffix_len, suffix) != 0)
        return false;
    name[len - suffix_len] = '\0';
    return true;
}

static void deliver(struct ew_spans_profile *profile, const struct event *event)
{
    struct etwatch_span span = {
        .size = sizeof span,
        .kind = ETWATCH_SPAN_OPERATOR,
        .pid = profile->pid,
        .tid = (uint32_t)event->tid,
        .end_tid = (uint32_t)event->tid,
        .start_ns = profile->start_ns + event->ts_us * 1000,
        .end_ns = profile->start_ns + (event->ts_us + event->dur_us) * 1000,
        .name = event->type,
        .session = profile->session,
    };
    struct etwatch_operator op = {
        .size = sizeof op,
        .pool_threads = event->pool_threads,
        .node = event->node,
        .provider = event->provider[0] == '\0' ? NULL : event->provider,
        .pool_percent = -1,
        .span = &span,
    };
    profile->operators++;
    profile->on_operator(profile->ctx, &op);
}

static void take_line(struct ew_spans_profile *profile, const char *text, size_t len)
{
    struct event event = {.tid = 0};
    struct ew_bytes in;
    char key[16];
    while (len > 0 && (text[len - 1] == '\r' || text[len - 1] == ' '))
        len--;
    if (len > 0 && text[len - 1] == ',')
        len--;
    if (len == 0 || (len == 1 && text[0] == '['))
        return;
    if (len == 1 && text[0] == ']') {
        profile->ended = true;
        return;
    }
    profile->events++;
    ew_bytes_init(&in, text, len);
    for (bool more = ew_jsonin_first(&in, '{'); more; more = ew_jsonin_next(&in, '}')) {
        ew_jsonin_key(&in, key, sizeof key);
        read_member(&in, key, &event);
    }
    if (!ew_bytes_ok(&in) || ew_bytes_left(&in) > 0 || event.ts_us >= most_us ||
        event.dur_us >= most_us || event.tid > UINT32_MAX)
        profile->lost++;
    else if (strcmp(event.cat, "Node") == 0 && cut_suffix(event.node))
        deliver(profile, &event);
}

static int keep_part(struct ew_spans_profile *profile, const char *text, size_t len)
{
    if (profile->too_long || profile->len + len > EW_SPANS_PROFILE_LINE_MAX) {
        profile->too_long = true;
        return 0;
    }
    if (profile->len + len > profile->size) {
        size_t size = 2 * (profile->len + len);
        char *line = ew_realloc_array(profile->line, size, 1);
        if (line == NULL)
            return ETWATCH_ENOMEM;
        profile->line = line;
        profile->size = size;
    }
    if (len > 0)
        memcpy(profile->line + profile->len, text, len);
    profile->len += len;
    return 0;
}

static void end_line(struct ew_spans_profile *profile)
{
    if (profile->too_long) {
        profile->events++;
        profile->lost++;
    } else if (profile->len > 0) {
        take_line(profile, profile->line, profile->len);
    }
    profile->too_long = false;
    profile->len = 0;
}

int ew_spans_profile_add(struct ew_spans_profile *profile, const void *bytes, size_t len)
{
    const char *at = bytes;
    int rc = 0;
    while (len > 0 && rc == 0) {
        const char *end = memchr(at, '\n', len);
        size_t part = end == NULL ? len : (size_t)(end - at);
        if (end != NULL && profile->len == 0 && !profile->too_long &&
            part <= EW_SPANS_PROFILE_LINE_MAX)
            take_line(profile, at, part); /* without a copy */
        else
            rc = keep_part(profile, at, part);
        if (end == NULL || rc < 0)
            break;
        end_line(profile);
        at += part + 1;
        len -= part + 1;
    }
    return rc;
}

void ew_spans_profile_end(struct ew_spans_profile *profile)
{
    end_line(profile);
    /* Its process was killed, or the limit of ONNX Runtime was reached: how much is missing is
     * unknown, that something is, is not. */
    if (!profile->ended || profile->events >= EW_SPANS_PROFILE_EVENTS_MAX)
        profile->lost++;
    ew_free(profile->line);
    profile->line = NULL;
}
