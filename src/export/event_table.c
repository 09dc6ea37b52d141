/* SPDX-License-Identifier: MIT */
/*
 * Fills columns directly from records, without a public struct per event. The name of an event is
 * looked up once per kind of kernel event, and the name of a process once per lifetime; after that
 * a row is a few stores.
 *
 * Name patterns are matched only when a name is new.
 */
#include "export/export.h"

#include <stdio.h>
#include <string.h>

#include "arrow/fields.h"
#include "arrow/rows.h"
#include "base/alloc.h"
#include "base/event_state.h"
#include "decode/kernel.h"
#include "recording/trace.h"

enum { JSON_MAX = 4 << 20 };

static const uint32_t CONTENT = ETWATCH_TABLE_FIELDS | ETWATCH_TABLE_TYPED | ETWATCH_TABLE_PAYLOAD;

/* Names of a kind of event: indices in the dictionaries. */
struct kind {
    int32_t provider, event; /* -1: unknown */
    uint8_t state;           /* enum state */
    uint8_t flags;           /* DECODED and NAMED */
};
enum state { NEW = 0, WANTED, SOME_WANTED, UNWANTED }; /* SOME_WANTED: by event */

struct table {
    struct etwatch_trace *trace;
    struct ew_columns columns;
    struct ew_event_name_filter names;
    uint32_t flags;
    uint32_t fields_column, payload_column;
    struct ew_field_kinds fields;
    struct ew_buf scratch;
    struct kind *kinds; /* by group, opcode and version */
    int32_t
        *lifetime_names; /* by lifetime of a process: index of its name + 1; 0: not looked up yet */
    uint32_t lifetime_count;
    int32_t states[ETWATCH_CLASS_DECODED + 1]; /* index of its word + 1; 0: not looked up yet */
    uint64_t shift_ns;
    struct etwatch_trace_stats *stats; /* filled in at the end; may be NULL */
};

static size_t kind_index(const struct ew_record *record)
{
    return ((size_t)record->group << 8 | record->opcode) * EW_CLASS_VERSIONS + record->version;
}

/* -------------------------------------------------------------------- names */

static int32_t intern(struct table *table, uint32_t column, const char *text)
{
    return ew_columns_dict_index(&table->columns, column, text, strlen(text));
}

/* The names of a record, as filters compare them. */
static void describe_record(const struct table *table, const struct ew_record *record,
                            struct ew_event_names *ret_names, struct ew_event_key *ret_key)
{
    ew_decoder_names(table->trace->decoder, record, ret_names);
    *ret_key = (struct ew_event_key){
        .provider = ret_names->provider,
        .event = ret_names->event,
        .guid = record->provider != NULL ? record->provider : ew_kernel_guid(record),
        .pid = EW_NO_ID,
        .id = record->id,
    };
}

static void name_record(struct table *table, const struct ew_record *record, struct kind *ret_kind)
{
    struct ew_event_names names;
    struct ew_event_key key;
    describe_record(table, record, &names, &key);
    *ret_kind = (struct kind){.provider = -1, .event = -1, .state = UNWANTED};
    enum ew_event_verdict verdict = ew_export_name_filter_kind(&table->names, &key);
    if (verdict == EW_EVENTS_NONE)
        return;
    ret_kind->state = verdict == EW_EVENTS_ALL ? WANTED : SOME_WANTED;
    ret_kind->flags = (uint8_t)((names.laid_out ? (uint32_t)ETWATCH_TRACE_DECODED : 0u) |
                                (names.named ? (uint32_t)ETWATCH_TRACE_NAMED : 0u));
    ret_kind->provider = intern(table, EW_RECORD_PROVIDER, names.provider);
    ret_kind->event = intern(table, EW_RECORD_EVENT, names.event);
}

/* The kind of a record; those of kernel records are cached. */
static struct kind kind_of(struct table *table, const struct ew_record *record)
{
    struct kind kind;
    if (record->kind == EW_RECORD_KERNEL && record->group < EW_CLASS_GROUPS &&
        record->version < EW_CLASS_VERSIONS) {
        struct kind *known = &table->kinds[kind_index(record)];
        if (known->state == NEW)
            name_record(table, record, known);
        return *known;
    }
    name_record(table, record, &kind);
    return kind;
}

/* Whether an event of a selected kind is selected itself. */
static bool wants(const struct table *table, const struct ew_record *record,
                  const struct ew_event *known, const struct kind *kind)
{
    const struct ew_event_name_filter *filter = &table->names;
    if (kind->state == SOME_WANTED) {
        struct ew_event_names names;
        struct ew_event_key key;
        describe_record(table, record, &names, &key);
        key.pid = known->pid;
        if (!ew_export_name_filter_match(filter, &key))
            return false;
    }
    if (ew_selection_includes_all(&filter->processes))
        return true;
    const char *name = NULL;
    if (filter->processes.name_count > 0 && known->pid != EW_NO_ID)
        name = ew_recording_history_name(&table->trace->history, known->pid, record->t_ns);
    return ew_export_name_filter_process(filter, known->pid, name);
}

/* Dictionary index of a process's name, or -1. */
static int32_t name_of(struct table *table, uint32_t pid, uint64_t t_ns)
{
    const struct ew_process_history *history = &table->trace->history;
    uint32_t lifetime = ew_recording_history_find(history, pid, t_ns);
    if (lifetime == UINT32_MAX)
        return -1;
    if (table->lifetime_names == NULL) {
        table->lifetime_count = history->processes.count;
        table->lifetime_names =
            ew_calloc((size_t)table->lifetime_count + 1, sizeof *table->lifetime_names);
        if (table->lifetime_names == NULL) {
            table->columns.error = ETWATCH_ENOMEM;
            return -1;
        }
    }
    int32_t *known = &table->lifetime_names[lifetime];
    if (*known == 0) {
        const char *name = ew_recording_history_name(history, pid, t_ns);
        *known = name == NULL ? -1 : intern(table, EW_RECORD_NAME, name) + 1;
        *known = *known == 0 ? -1 : *known;
    }
    return *known < 0 ? -1 : *known - 1;
}

/* --------------------------------------------------------------------- rows */

/* The fields, and the bytes unless they contain a command line. *flags: DECODED is removed if the
 * bytes do not match. */
static void put_content(struct table *table, uint32_t *flags, const uint8_t *payload,
                        uint32_t payload_size)
{
    struct etwatch_trace_event event = {
        .size = sizeof event, .flags = *flags, .payload = payload, .payload_size = payload_size};
    int rc = etwatch_trace_fields(table->trace, &event);
    if (rc < 0) {
        table->columns.error = rc;
        return;
    }
    *flags = event.flags;
    if ((table->flags & ETWATCH_TABLE_PAYLOAD) != 0 && event.payload != NULL)
        ew_columns_bytes(&table->columns, table->payload_column, event.payload, event.payload_size);
    if ((table->flags & ETWATCH_TABLE_TYPED) != 0)
        ew_arrow_field_kinds_put(&table->fields, &table->columns, &table->scratch, event.fields,
                                 event.field_count);
    else if ((table->flags & ETWATCH_TABLE_FIELDS) != 0)
        ew_arrow_fields_put_json(&table->columns, table->fields_column, &table->scratch,
                                 event.fields, event.field_count);
}

static void put_state(struct table *table, uint32_t flags)
{
    uint32_t state = ew_event_state(flags);
    int32_t *index = &table->states[state];
    if (*index == 0)
        *index = intern(table, EW_RECORD_STATE, ew_event_state_name(state)) + 1;
    if (*index > 0)
        ew_columns_i32(&table->columns, EW_RECORD_STATE, *index - 1);
}

static void put_row(struct table *table, const struct ew_record *record,
                    const struct ew_event *known, const struct kind *kind)
{
    struct ew_columns *columns = &table->columns;
    ew_columns_u64(columns, EW_RECORD_T_NS, record->t_ns + table->shift_ns);
    ew_columns_u16(columns, EW_RECORD_CPU, record->cpu);
    if (known->pid != EW_NO_ID) {
        int32_t name = name_of(table, known->pid, record->t_ns);
        ew_columns_u32(columns, EW_RECORD_PID, known->pid);
        if (name >= 0)
            ew_columns_i32(columns, EW_RECORD_NAME, name);
    }
    if (known->tid != EW_NO_ID)
        ew_columns_u32(columns, EW_RECORD_TID, known->tid);
    if (kind->provider >= 0)
        ew_columns_i32(columns, EW_RECORD_PROVIDER, kind->provider);
    if (kind->event >= 0)
        ew_columns_i32(columns, EW_RECORD_EVENT, kind->event);
    ew_columns_u16(columns, EW_RECORD_ID, record->id);
    ew_columns_u8(columns, EW_RECORD_OPCODE, record->opcode);
    ew_columns_u8(columns, EW_RECORD_VERSION, record->version);
    if (record->pid != EW_NO_ID && record->tid != EW_NO_ID) {
        ew_columns_u32(columns, EW_RECORD_HEADER_PID, record->pid);
        ew_columns_u32(columns, EW_RECORD_HEADER_TID, record->tid);
    }
    uint32_t flags = kind->flags;
    if ((table->flags & CONTENT) != 0)
        put_content(table, &flags, record->payload, record->payload_size);
    put_state(table, flags);
    ew_columns_end(columns);
}

/* For recordings other than .etl: by way of the public event. */
static void put_public_event(struct table *table, const struct etwatch_trace_event *event)
{
    struct ew_columns *columns = &table->columns;
    uint32_t flags = event->flags; /* of samples and scheduler events: always decoded */
    ew_arrow_record_rows_put(columns, event);
    if ((table->flags & CONTENT) != 0)
        put_content(table, &flags, event->payload, event->payload_size);
    ew_columns_end(columns);
}

static int fill_from_perfetto(struct table *table)
{
    struct etwatch_trace_event event = {.size = sizeof event};
    int rc = 0;
    while (!table->columns.full && table->columns.error == 0 &&
           (rc = etwatch_trace_next(table->trace, &event, NULL)) > 0)
        if (ew_export_name_filter_event(&table->names, &event) && ew_columns_begin(&table->columns))
            put_public_event(table, &event);
    return rc;
}

static int fill(struct table *table)
{
    const struct ew_record *record = NULL;
    struct ew_event known;
    int rc = 0;
    while (!table->columns.full && table->columns.error == 0 &&
           (rc = ew_trace_next_record(table->trace, &record, &known)) > 0) {
        struct kind kind = kind_of(table, record);
        if (kind.state != UNWANTED && wants(table, record, &known, &kind) &&
            ew_columns_begin(&table->columns))
            put_row(table, record, &known, &kind);
    }
    return rc;
}

static int next_batch(void *ctx, struct ew_batch **ret_batch, char *message, size_t size)
{
    struct table *table = ctx;
    struct etwatch_error_info error = {.size = sizeof error};
    struct ew_alloc_limit *before = ew_alloc_limit_use(table->trace->memory);
    int rc = table->trace->perfetto != NULL ? fill_from_perfetto(table) : fill(table);
    rc = table->columns.error != 0 ? table->columns.error : rc < 0 ? rc : 0;
    if (rc == 0) {
        *ret_batch = ew_columns_cut(&table->columns);
        rc = table->columns.error;
    }
    (void)ew_alloc_limit_use(before);
    rc = ew_trace_result(table->trace, rc, &error);
    if (rc < 0)
        (void)snprintf(message, size, "%s", error.message);
    return rc;
}

/* -------------------------------------------------------- begin and done */

static void done(void *ctx)
{
    struct table *table = ctx;
    ew_arrow_field_kinds_done(&table->fields);
    ew_export_name_filter_done(&table->names);
    ew_columns_done(&table->columns);
    ew_buf_done(&table->scratch);
    ew_free(table->kinds);
    ew_free(table->lifetime_names);
    if (table->stats != NULL)
        (void)etwatch_trace_stats(table->trace, table->stats);
    etwatch_trace_free(table->trace);
    ew_free(table);
}

/* TYPED: one pass that looks at every selected event. */
static int learn_fields(struct table *table)
{
    struct etwatch_trace_event event = {.size = sizeof event};
    int rc;
    while ((rc = etwatch_trace_next(table->trace, &event, NULL)) > 0) {
        if (!ew_export_name_filter_event(&table->names, &event))
            continue;
        rc = etwatch_trace_fields(table->trace, &event);
        if (rc == 0)
            rc = ew_arrow_field_kinds_learn(&table->fields, event.fields, event.field_count);
        if (rc < 0)
            break;
    }
    return rc < 0 ? rc : etwatch_trace_rewind(table->trace);
}

static int make_layout(struct table *table, uint32_t batch_rows, struct ew_layout **ret_layout)
{
    struct ew_layout *layout = NULL;
    int rc = ew_arrow_record_layout(table->flags, batch_rows, &layout);
    if (rc == 0 && (table->flags & ETWATCH_TABLE_TYPED) != 0) {
        rc = learn_fields(table);
        if (rc == 0)
            rc = ew_arrow_field_kinds_add(&table->fields, layout);
    } else if (rc == 0 && (table->flags & ETWATCH_TABLE_FIELDS) != 0) {
        table->fields_column = ew_layout_count(layout);
        rc = ew_layout_add(layout, "fields", EW_COLUMN_TEXT, true);
    }
    if (rc == 0 && (table->flags & ETWATCH_TABLE_PAYLOAD) != 0) {
        bool taken =
            ew_layout_find(layout, "payload") >= 0; /* column for what TYPED could not decode */
        table->payload_column = ew_layout_count(layout);
        rc = ew_layout_add(layout, taken ? "event_payload" : "payload", EW_COLUMN_BINARY, true);
    }
    if (rc < 0)
        ew_layout_unref(layout);
    else
        *ret_layout = layout;
    return rc;
}

static int begin(struct table *table, const struct etwatch_table_options *options,
                 struct ArrowArrayStream *ret_stream, struct ew_error *reterr)
{
    struct ew_layout *layout = NULL;
    struct ew_batches batches = {.next = next_batch, .done = done, .ctx = table};
    int rc = ew_export_name_filter_init(&table->names, options);
    table->flags = options->flags;
    table->shift_ns = (uint64_t)table->trace->unix_minus_raw_ns;
    ew_buf_init(&table->scratch, JSON_MAX, NULL, NULL);
    table->kinds =
        ew_calloc((size_t)EW_CLASS_GROUPS * 256 * EW_CLASS_VERSIONS, sizeof *table->kinds);
    if (rc == 0 && table->kinds == NULL)
        rc = ETWATCH_ENOMEM;
    if (rc == 0)
        rc = make_layout(table, options->batch_rows, &layout);
    if (rc == 0) {
        rc = ew_columns_init(&table->columns, layout);
        if (rc == 0)
            rc = ew_stream_export(layout, &batches, ret_stream);
        ew_layout_unref(layout);
    }
    if (rc == ETWATCH_ELIMIT)
        return ew_error_set(reterr, rc, 0,
                            "these events have more different fields than a table has columns: "
                            "select fewer kinds of events");
    return rc < 0 ? ew_error_set(reterr, rc, 0, "%s", etwatch_strerror(rc)) : 0;
}

int ew_table_events(struct etwatch_trace *trace, const struct etwatch_table_options *options,
                    struct etwatch_trace_stats *stats, struct ArrowArrayStream *ret_stream,
                    struct ew_error *reterr)
{
    struct table *table = ew_calloc(1, sizeof *table);
    if (table == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    table->trace = trace;
    struct ew_alloc_limit *before = ew_alloc_limit_use(trace->memory);
    int rc = begin(table, options, ret_stream, reterr);
    (void)ew_alloc_limit_use(before);
    if (rc < 0) {
        table->trace = NULL; /* still owned by the caller */
        done(table);
    } else {
        table->stats = stats;
    }
    return rc;
}
