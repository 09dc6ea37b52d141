/* SPDX-License-Identifier: MIT */
#include "cli/py_spy.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_read.h"

enum {
    THREADS_MAX = 1024,
    FRAMES_MAX = 200,
    FRAME_SIZE = 200,
    STACK_SIZE = 16384,
    PARTS_MAX = 4000000,
    TEXTS_MAX = 1 << 18,
};

/* -------------------------------------------------------------------------- texts */

struct text {
    char *text;
    uint64_t weight;
};

struct ew_py_spy_table {
    struct text *texts;
    uint32_t count, size;
    uint32_t *places; /* number + 1 by hash; a power of two, at least twice the texts */
    uint32_t place_count;
};

struct ew_py_spy_table *ew_py_spy_table_new(void)
{
    return ew_calloc(1, sizeof(struct ew_py_spy_table));
}

void ew_py_spy_table_free(struct ew_py_spy_table *table)
{
    for (uint32_t i = 0; table != NULL && i < table->count; i++)
        ew_free(table->texts[i].text);
    if (table != NULL) {
        ew_free(table->texts);
        ew_free(table->places);
    }
    ew_free(table);
}

static uint32_t hash_of(const char *text, size_t len)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

static bool grow(struct ew_py_spy_table *table)
{
    uint32_t size = table->size == 0 ? 256 : table->size * 2;
    struct text *texts =
        size > TEXTS_MAX ? NULL : ew_realloc_array(table->texts, size, sizeof *texts);
    uint32_t *places = texts == NULL ? NULL : ew_calloc(2 * (size_t)size, sizeof *places);
    if (texts != NULL)
        table->texts = texts;
    if (places == NULL)
        return false;
    ew_free(table->places);
    table->places = places;
    table->place_count = 2 * size;
    table->size = size;
    for (uint32_t i = 0; i < table->count; i++) {
        uint32_t at = hash_of(texts[i].text, strlen(texts[i].text)) & (table->place_count - 1);
        while (places[at] != 0)
            at = (at + 1) & (table->place_count - 1);
        places[at] = i + 1;
    }
    return true;
}

uint32_t ew_py_spy_table_add(struct ew_py_spy_table *table, const char *text, size_t len,
                             uint64_t weight)
{
    if (table->count == table->size && !grow(table))
        return UINT32_MAX;
    uint32_t at = hash_of(text, len) & (table->place_count - 1);
    for (; table->places[at] != 0; at = (at + 1) & (table->place_count - 1)) {
        struct text *known = &table->texts[table->places[at] - 1];
        if (strlen(known->text) == len && memcmp(known->text, text, len) == 0) {
            known->weight += weight;
            return table->places[at] - 1;
        }
    }
    char *copy = ew_calloc(len + 1, 1);
    if (copy == NULL)
        return UINT32_MAX;
    memcpy(copy, text, len);
    copy[len] = '\0';
    table->texts[table->count] = (struct text){.text = copy, .weight = weight};
    table->places[at] = ++table->count;
    return table->count - 1;
}

/* ------------------------------------------------------------------------- parsing */

/* The stack of a thread while the events are read. */
struct thread {
    uint64_t key; /* py-spy's id of the thread */
    uint32_t pid, tid;
    uint32_t depth;
    uint64_t changed_us;
    bool changed;
    char frames[FRAMES_MAX][FRAME_SIZE];
};

struct parser {
    struct ew_py_spy *spy;
    struct thread *threads[THREADS_MAX];
    uint32_t thread_count;
};

struct event {
    char name[FRAME_SIZE], file[FRAME_SIZE], phase[4];
    uint64_t pid, tid, ts_us, line;
};

static void read_args(struct ew_bytes *in, struct event *event)
{
    char key[16];
    for (bool more = ew_jsonin_first(in, '{'); more; more = ew_jsonin_next(in, '}')) {
        ew_jsonin_key(in, key, sizeof key);
        char c = ew_jsonin_peek(in);
        if (strcmp(key, "filename") == 0 && c == '"')
            (void)ew_jsonin_text(in, event->file, sizeof event->file);
        else if (strcmp(key, "line") == 0 && c >= '0' && c <= '9')
            event->line = ew_jsonin_u64(in);
        else
            ew_jsonin_skip(in);
    }
}

static void read_event(struct ew_bytes *in, struct event *event)
{
    char key[16];
    memset(event, 0, sizeof *event);
    for (bool more = ew_jsonin_first(in, '{'); more; more = ew_jsonin_next(in, '}')) {
        ew_jsonin_key(in, key, sizeof key);
        char c = ew_jsonin_peek(in);
        bool number = c >= '0' && c <= '9';
        if (strcmp(key, "name") == 0 && c == '"')
            (void)ew_jsonin_text(in, event->name, sizeof event->name);
        else if (strcmp(key, "ph") == 0 && c == '"')
            (void)ew_jsonin_text(in, event->phase, sizeof event->phase);
        else if (strcmp(key, "pid") == 0 && number)
            event->pid = ew_jsonin_u64(in);
        else if (strcmp(key, "tid") == 0 && number)
            event->tid = ew_jsonin_u64(in);
        else if (strcmp(key, "ts") == 0 && number)
            event->ts_us = ew_jsonin_u64(in);
        else if (strcmp(key, "args") == 0 && c == '{')
            read_args(in, event);
        else
            ew_jsonin_skip(in);
    }
}

static struct thread *thread_of(struct parser *parser, const struct event *event)
{
    for (uint32_t i = 0; i < parser->thread_count; i++)
        if (parser->threads[i]->key == event->tid && parser->threads[i]->pid == event->pid)
            return parser->threads[i];
    if (parser->thread_count == THREADS_MAX)
        return NULL;
    struct thread *thread = ew_calloc(1, sizeof *thread);
    if (thread == NULL)
        return NULL;
    thread->key = event->tid;
    thread->pid = (uint32_t)event->pid;
    parser->threads[parser->thread_count++] = thread;
    return thread;
}

/* "thread (123): name" has the kernel's id. */
static bool read_tid(const char *name, uint32_t *ret_tid)
{
    static const char prefix[] = "thread (";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    unsigned long tid = strtoul(name + sizeof prefix - 1, NULL, 10);
    *ret_tid = tid <= UINT32_MAX ? (uint32_t)tid : 0;
    return tid > 0;
}

/* A call of a function that is named after its time cannot be seen before it. */
static void use_clock(struct ew_py_spy *spy, const struct event *event)
{
    static const char prefix[] = "etwatch_clock_";
    const char *digits = strstr(event->name, prefix);
    if (digits == NULL)
        return;
    uint64_t ns = strtoull(digits + sizeof prefix - 1, NULL, 10), since_ns = event->ts_us * 1000;
    if (ns > since_ns && ns - since_ns > spy->start_ns)
        spy->start_ns = ns - since_ns;
}

/* The frames of a thread as a folded stack. */
static uint32_t stack_of(struct ew_py_spy *spy, const struct thread *thread)
{
    char text[STACK_SIZE];
    size_t len = 0;
    for (uint32_t i = 0; i < thread->depth && i < FRAMES_MAX; i++) {
        size_t frame_len = strlen(thread->frames[i]);
        if (len + frame_len + 1 >= sizeof text)
            break;
        if (frame_len == 0)
            continue;
        if (len > 0)
            text[len++] = ';';
        memcpy(text + len, thread->frames[i], frame_len);
        len += frame_len;
    }
    return len == 0 ? UINT32_MAX : ew_py_spy_table_add(spy->stacks, text, len, 0);
}

/* All events of one time belong together: the stack is complete when time goes on. */
static void settle(struct ew_py_spy *spy, struct thread *thread)
{
    if (!thread->changed || thread->tid == 0)
        return;
    thread->changed = false;
    if (spy->part_count == spy->part_size) {
        size_t size = spy->part_size == 0 ? 1024 : spy->part_size * 2;
        struct ew_py_spy_part *parts =
            size > PARTS_MAX ? NULL : ew_realloc_array(spy->parts, size, sizeof *parts);
        if (parts == NULL) {
            spy->lost++;
            return;
        }
        spy->parts = parts;
        spy->part_size = size;
    }
    spy->parts[spy->part_count++] = (struct ew_py_spy_part){.pid = thread->pid,
                                                            .tid = thread->tid,
                                                            .from_us = thread->changed_us,
                                                            .stack = stack_of(spy, thread)};
}

/* Separators of folded stacks and line ends cannot be in a name. */
static void put_frame(char *to, const struct event *event)
{
    struct ew_buf out;
    ew_buf_init(&out, 0, NULL, NULL);
    ew_buf_text(&out, event->name);
    if (event->file[0] != '\0') {
        ew_buf_text(&out, " (");
        const char *base = strrchr(event->file, '/');
        ew_buf_text(&out, base == NULL ? event->file : base + 1);
        ew_buf_char(&out, ')');
    }
    size_t len = out.len < FRAME_SIZE - 1 ? out.len : FRAME_SIZE - 1;
    if (out.error != 0)
        len = 0;
    for (size_t i = 0; i < len; i++)
        to[i] = out.data[i] == ';' ? ':' : (unsigned char)out.data[i] < ' ' ? '?' : out.data[i];
    to[len] = '\0';
    ew_buf_done(&out);
}

static void take_event(struct parser *parser, const struct event *event)
{
    struct thread *thread = thread_of(parser, event);
    bool begins = strcmp(event->phase, "B") == 0;
    if (thread == NULL || (!begins && strcmp(event->phase, "E") != 0)) {
        parser->spy->lost++;
        return;
    }
    if (event->ts_us != thread->changed_us)
        settle(parser->spy, thread);
    thread->changed_us = event->ts_us;
    thread->changed = true;
    if (!begins) {
        thread->depth -= thread->depth > 0 ? 1 : 0;
        return;
    }
    use_clock(parser->spy, event);
    /* The roots are the process, with its command line, and the thread: neither is a function. */
    bool root = thread->depth < 2 &&
                (read_tid(event->name, &thread->tid) || strncmp(event->name, "process ", 8) == 0);
    if (root)
        thread->frames[thread->depth][0] = '\0';
    else if (thread->depth < FRAMES_MAX)
        put_frame(thread->frames[thread->depth], event);
    thread->depth++;
}

static int by_time(const void *a, const void *b)
{
    const struct ew_py_spy_part *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return x->from_us < y->from_us ? -1 : x->from_us > y->from_us;
}

int ew_py_spy_parse(struct ew_py_spy *spy, const void *text, size_t size)
{
    struct ew_bytes in;
    struct event event;
    memset(spy, 0, sizeof *spy);
    struct parser *parser = ew_calloc(1, sizeof *parser);
    spy->stacks = ew_py_spy_table_new();
    if (parser == NULL || spy->stacks == NULL) {
        ew_free(parser);
        return ETWATCH_ENOMEM;
    }
    parser->spy = spy;
    ew_bytes_init(&in, text, size);
    for (bool more = ew_jsonin_first(&in, '['); more; more = ew_jsonin_next(&in, ']')) {
        read_event(&in, &event);
        if (ew_bytes_ok(&in))
            take_event(parser, &event);
    }
    for (uint32_t i = 0; i < parser->thread_count; i++) {
        settle(spy, parser->threads[i]);
        ew_free(parser->threads[i]);
    }
    ew_free(parser);
    if (spy->part_count > 0)
        qsort(spy->parts, spy->part_count, sizeof *spy->parts, by_time);
    return in.error;
}

void ew_py_spy_done(struct ew_py_spy *spy)
{
    ew_free(spy->parts);
    ew_py_spy_table_free(spy->stacks);
    memset(spy, 0, sizeof *spy);
}

/* ------------------------------------------------------------------------- joining */

struct join {
    const struct ew_py_spy *spy;
    const struct etwatch_span *span;
    uint64_t zero_ns; /* Unix time of py-spy's time 0 */
    struct ew_py_spy_table *folded;
};

static bool is_mine(const struct join *join, size_t i)
{
    const struct ew_py_spy *spy = join->spy;
    return i < spy->part_count && spy->parts[i].pid == join->span->pid &&
           spy->parts[i].tid == join->span->tid;
}

/* The last part of the thread that begins at or before this time, or the first one after it. */
static size_t find_part(const struct join *join, uint64_t t_ns)
{
    const struct ew_py_spy *spy = join->spy;
    uint64_t us = t_ns > join->zero_ns ? (t_ns - join->zero_ns) / 1000 : 0;
    struct ew_py_spy_part key = {.pid = join->span->pid, .tid = join->span->tid, .from_us = us + 1};
    size_t low = 0, high = spy->part_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_time(&spy->parts[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && is_mine(join, low - 1) ? low - 1 : low;
}

static void add_folded(const struct join *join, const char *state, uint32_t stack, uint64_t us)
{
    struct ew_buf key;
    ew_buf_init(&key, 0, NULL, NULL);
    ew_buf_text(&key, join->span->name);
    if (join->span->session != NULL) {
        ew_buf_text(&key, " of ");
        ew_buf_text(&key, join->span->session);
    }
    for (size_t i = 0; key.error == 0 && i < key.len; i++)
        if (key.data[i] == ';' || (unsigned char)key.data[i] < ' ')
            key.data[i] = ':';
    ew_buf_char(&key, ';');
    ew_buf_text(&key, state);
    ew_buf_char(&key, ';');
    ew_buf_text(&key, stack < join->spy->stacks->count ? join->spy->stacks->texts[stack].text
                                                       : "no sample");
    if (key.error == 0)
        (void)ew_py_spy_table_add(join->folded, key.data, key.len, us);
    ew_buf_done(&key);
}

static void on_strip(void *ctx, const struct etwatch_strip *strip)
{
    static const char *const states[] = {"?",      "on a CPU",           "waiting for a CPU",
                                         "asleep", "waiting for a disk", "page fault"};
    const struct join *join = ctx;
    const struct ew_py_spy *spy = join->spy;
    if (strip->tid != join->span->tid || strip->state >= sizeof states / sizeof states[0])
        return;
    uint64_t at_ns = strip->from_ns;
    size_t i = find_part(join, at_ns);
    while (at_ns < strip->to_ns) {
        bool mine = is_mine(join, i);
        uint64_t from_ns = mine ? join->zero_ns + spy->parts[i].from_us * 1000 : UINT64_MAX;
        bool before = from_ns > at_ns; /* the first sample of the thread, or there is none */
        uint64_t to_ns = before                 ? from_ns
                         : is_mine(join, i + 1) ? join->zero_ns + spy->parts[i + 1].from_us * 1000
                                                : UINT64_MAX;
        to_ns = to_ns < strip->to_ns ? to_ns : strip->to_ns;
        if (to_ns > at_ns) {
            add_folded(join, states[strip->state], before ? UINT32_MAX : spy->parts[i].stack,
                       (to_ns - at_ns) / 1000);
            at_ns = to_ns;
        }
        i += before ? 0 : 1;
    }
}

void ew_py_spy_join(const struct ew_py_spy *spy, const struct etwatch_spans *spans,
                    const struct etwatch_span *span, int64_t unix_minus_raw_ns,
                    struct ew_py_spy_table *folded)
{
    struct join join = {.spy = spy,
                        .span = span,
                        .zero_ns = spy->start_ns + (uint64_t)unix_minus_raw_ns,
                        .folded = folded};
    (void)etwatch_spans_strips(spans, span->pid, span->start_ns, span->end_ns, on_strip, &join);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct text *)a)->text, ((const struct text *)b)->text);
}

void ew_py_spy_write(const struct ew_py_spy_table *folded, struct ew_buf *out)
{
    if (folded->count > 1)
        qsort(folded->texts, folded->count, sizeof *folded->texts, by_text);
    for (uint32_t i = 0; i < folded->count; i++) {
        if (folded->texts[i].weight == 0)
            continue;
        ew_buf_text(out, folded->texts[i].text);
        ew_buf_char(out, ' ');
        ew_buf_u64(out, folded->texts[i].weight);
        ew_buf_char(out, '\n');
        ew_buf_end_line(out);
    }
}
