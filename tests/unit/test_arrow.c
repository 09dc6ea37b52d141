/* SPDX-License-Identifier: MIT */
/*
 * Arrow: the content of the arrays, their ownership, and that nothing leaks in any order of release
 * (found by the address sanitizer build). tests/contract/export_tools.py reads the files back with
 * other programs.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/arrow.h>

#include "arrow/columns.h"
#include "arrow/export.h"
#include "arrow/flatbuffer.h"
#include "arrow_kit.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "export/export.h"
#include "trace_kit.h"

/* ------------------------------------------------------------------ filters */

/* Whether filters select an event, and what they say about its kind. */
static bool selects(const struct etwatch_event_filter *filters, uint32_t count,
                    const struct ew_event_key *key, enum ew_event_verdict *ret_kind)
{
    struct etwatch_table_options options = {
        .size = sizeof options, .filters = filters, .filter_count = count};
    struct ew_event_name_filter names;
    CHECK_EQ_INT(ew_export_name_filter_init(&names, &options), 0);
    bool selected = ew_export_name_filter_match(&names, key);
    *ret_kind = ew_export_name_filter_kind(&names, key);
    ew_export_name_filter_done(&names);
    return selected;
}

TEST(a_filter_selects_events_that_have_all_of_its_properties)
{
    enum { FIRST = ETWATCH_TRACE_FIRST_THREAD, SIZE = sizeof(struct etwatch_event_filter) };
    static const char *const switches[] = {"Thread/CSwitch"};
    static const char *const tasks[] = {"task_*"};
    static const uint32_t pids[] = {5, 7};
    static const uint16_t ids[] = {9};
    static const struct etwatch_event_filter of_kernel = {
        .size = SIZE, .provider = "Windows Kernel", .events = switches, .event_count = 1};
    static const struct etwatch_event_filter of_pids = {
        .size = SIZE, .provider = "Other", .pids = pids, .pid_count = 2};
    static const struct etwatch_event_filter of_id = {.size = SIZE, .ids = ids, .id_count = 1};
    static const struct etwatch_event_filter first = {.size = SIZE,
                                                      .flags = ETWATCH_FILTER_FIRST_THREADS};
    static const struct etwatch_event_filter no_others = {.size = SIZE,
                                                          .flags = ETWATCH_FILTER_OTHER_THREADS |
                                                                   ETWATCH_FILTER_EXCLUDE,
                                                          .events = tasks,
                                                          .event_count = 1};
    static const struct etwatch_event_filter no_kernel = {
        .size = SIZE, .flags = ETWATCH_FILTER_EXCLUDE, .provider = "windows*"};
    static const struct {
        const char *remark;
        const struct etwatch_event_filter *filters[2];
        struct ew_event_key key;
        bool selected;
        enum ew_event_verdict kind;
    } rows[] = {
        {"its provider and event",
         {&of_kernel},
         {"Windows Kernel", "Thread/CSwitch", NULL, 1, 0, 0},
         true,
         EW_EVENTS_ALL},
        {"another event",
         {&of_kernel},
         {"Windows Kernel", "Thread/Start", NULL, 1, 0, 0},
         false,
         EW_EVENTS_NONE},
        {"the event of another provider",
         {&of_kernel, &of_pids},
         {"Third", "Thread/CSwitch", NULL, 5, 0, 0},
         false,
         EW_EVENTS_NONE},
        {"any filter", {&of_kernel, &of_pids}, {"Other", "x", NULL, 7, 0, 0}, true, EW_EVENTS_SOME},
        {"another process", {&of_pids}, {"Other", "x", NULL, 6, 0, 0}, false, EW_EVENTS_SOME},
        {"an unknown process",
         {&of_pids},
         {"Other", "x", NULL, EW_NO_ID, 0, 0},
         false,
         EW_EVENTS_SOME},
        {"its id", {&of_id}, {"Other", "x", NULL, 1, 9, 0}, true, EW_EVENTS_SOME},
        {"another id", {&of_id}, {"Other", "x", NULL, 1, 8, 0}, false, EW_EVENTS_SOME},
        {"a first thread",
         {&first},
         {"sched", "task_newtask", NULL, 1, 0, FIRST},
         true,
         EW_EVENTS_SOME},
        {"a further thread",
         {&first},
         {"sched", "task_newtask", NULL, 1, 0, 0},
         false,
         EW_EVENTS_SOME},
        {"not about a thread",
         {&first},
         {"sched", "sched_switch", NULL, 1, 0, FIRST},
         false,
         EW_EVENTS_SOME},
        {"an exclusion leaves the rest",
         {&no_others},
         {"sched", "sched_switch", NULL, 1, 0, 0},
         true,
         EW_EVENTS_ALL},
        {"excluded", {&no_others}, {"sched", "task_newtask", NULL, 1, 0, 0}, false, EW_EVENTS_SOME},
        {"not excluded",
         {&no_others},
         {"sched", "task_newtask", NULL, 1, 0, FIRST},
         true,
         EW_EVENTS_SOME},
        {"exclusion wins",
         {&of_kernel, &no_kernel},
         {"Windows Kernel", "Thread/CSwitch", NULL, 1, 0, 0},
         false,
         EW_EVENTS_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct etwatch_event_filter given[2] = {*rows[i].filters[0]};
        uint32_t count = rows[i].filters[1] != NULL ? 2 : 1;
        enum ew_event_verdict kind;
        if (count == 2)
            given[1] = *rows[i].filters[1];
        test_row(rows[i].remark);
        CHECK_EQ_INT(selects(given, count, &rows[i].key, &kind), rows[i].selected);
        CHECK_EQ_INT(kind, rows[i].kind);
    }
}

TEST(a_wrong_filter_is_refused)
{
    static const char *const nothing[] = {NULL};
    static const struct etwatch_event_filter rows[] = {
        {.size = sizeof rows[0], .flags = 1u << 9},
        {.size = sizeof rows[0], .event_count = 1},
        {.size = sizeof rows[0], .events = nothing, .event_count = 1},
        {.size = sizeof rows[0], .pid_count = 1},
        {.size = sizeof rows[0], .id_count = 1},
        {.size = 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct etwatch_table_options options = {
            .size = sizeof options, .filters = &rows[i], .filter_count = 1};
        struct ew_event_name_filter names;
        CHECK_EQ_INT(ew_export_name_filter_init(&names, &options), ETWATCH_EINVAL);
        ew_export_name_filter_done(&names);
    }
    struct etwatch_table_options options = {
        .size = sizeof options, .filters = rows, .filter_count = 257};
    struct ew_event_name_filter names;
    CHECK_EQ_INT(ew_export_name_filter_init(&names, &options), ETWATCH_EINVAL);
    ew_export_name_filter_done(&names);
}

/* ------------------------------------------------------------------ columns */

static struct ew_layout *two_columns(uint32_t batch_rows)
{
    struct ew_layout *layout = NULL;
    CHECK_EQ_INT(ew_layout_new(batch_rows, &layout), 0);
    CHECK_EQ_INT(ew_layout_add(layout, "value", EW_COLUMN_I64, true), 0);
    CHECK_EQ_INT(ew_layout_add(layout, "word", EW_COLUMN_DICT, true), 0);
    CHECK_EQ_INT(ew_layout_add(layout, "text", EW_COLUMN_TEXT, true), 0);
    return layout;
}

TEST(an_unset_value_is_null_and_a_full_batch_is_delivered)
{
    struct ew_layout *layout = two_columns(1000);
    struct ew_columns columns;
    CHECK_EQ_INT(ew_columns_init(&columns, layout), 0);
    for (int64_t i = 0; i < 1000; i++) {
        CHECK(ew_columns_begin(&columns));
        CHECK(!columns.full);
        if (i % 3 != 0)
            ew_columns_i64(&columns, 0, i);
        if (i % 2 == 0)
            ew_columns_dict(&columns, 1, i % 4 == 0 ? "four" : "two");
        if (i >= 500)
            ew_columns_text(&columns, 2, "abc", 3);
        ew_columns_end(&columns);
    }
    CHECK(columns.full);
    CHECK(!ew_columns_begin(&columns));
    struct ew_batch *batch = ew_columns_cut(&columns);
    struct ArrowArray array;
    CHECK_EQ_INT(ew_batch_export(batch, &array), 0);
    ew_batch_unref(batch);
    ew_columns_done(&columns);
    ew_layout_unref(layout);
    CHECK_EQ_INT(array.length, 1000);
    CHECK_EQ_INT(array.children[0]->null_count, 334);
    CHECK_EQ_INT(array.children[1]->null_count, 500);
    CHECK_EQ_INT(array.children[2]->null_count, 500);
    CHECK(is_null(array.children[0], 0));
    CHECK_EQ_INT(number_at(array.children[0], 998), 998);
    CHECK_EQ_STR(text_at(array.children[1], 8), "four");
    CHECK_EQ_STR(text_at(array.children[1], 10), "two");
    CHECK_EQ_STR(text_at(array.children[1], 11), NULL);
    const int32_t *offsets = array.children[2]->buffers[1];
    CHECK_EQ_INT(offsets[500], 0);
    CHECK_EQ_INT(offsets[1000], 1500);
    array.release(&array);
    CHECK(array.release == NULL);
}

TEST(a_column_may_outlive_its_batch_and_the_others)
{
    struct ew_layout *layout = two_columns(0);
    struct ew_columns columns;
    CHECK_EQ_INT(ew_columns_init(&columns, layout), 0);
    for (int i = 0; i < 10; i++) {
        CHECK(ew_columns_begin(&columns));
        ew_columns_i64(&columns, 0, i);
        ew_columns_dict(&columns, 1, "kept");
        ew_columns_end(&columns);
    }
    struct ew_batch *batch = ew_columns_cut(&columns);
    struct ArrowArray array, moved;
    CHECK_EQ_INT(ew_batch_export(batch, &array), 0);
    ew_batch_unref(batch);
    moved = *array.children[1];
    array.children[1]->release = NULL; /* the Arrow specification moves a child like this */
    array.release(&array);
    ew_columns_done(&columns);
    ew_layout_unref(layout);
    CHECK_EQ_STR(text_at(&moved, 9), "kept");
    struct ArrowArray words = *moved.dictionary;
    moved.dictionary->release = NULL;
    moved.release(&moved);
    CHECK_EQ_INT(words.length, 1);
    CHECK_EQ_MEM(words.buffers[2], "kept", 4);
    words.release(&words);
}

TEST(a_dictionary_continues_in_the_next_batch_and_earlier_batches_keep_theirs)
{
    struct ew_layout *layout = two_columns(100);
    struct ew_columns columns;
    struct ArrowArray arrays[50];
    CHECK_EQ_INT(ew_columns_init(&columns, layout), 0);
    for (int b = 0; b < 50; b++) {
        for (int i = 0; i < 100; i++) {
            char word[32];
            (void)snprintf(word, sizeof word, "word %d", b * 20 + i % 25);
            CHECK(ew_columns_begin(&columns));
            ew_columns_dict(&columns, 1, word);
            ew_columns_end(&columns);
        }
        struct ew_batch *batch = ew_columns_cut(&columns);
        CHECK_EQ_INT(ew_batch_export(batch, &arrays[b]), 0);
        ew_batch_unref(batch);
    }
    ew_columns_done(&columns);
    ew_layout_unref(layout);
    for (int b = 0; b < 50; b++) {
        struct ArrowArray *column = arrays[b].children[1];
        char want[32];
        (void)snprintf(want, sizeof want, "word %d", b * 20 + 24);
        CHECK_EQ_INT(column->dictionary->length, b * 20 + 25);
        CHECK_EQ_STR(text_at(column, 24), want);
        CHECK_EQ_INT(((const int32_t *)column->buffers[1])[24], b * 20 + 24);
    }
    for (int b = 49; b >= 0; b -= 2)
        arrays[b].release(&arrays[b]);
    for (int b = 0; b < 50; b += 2)
        arrays[b].release(&arrays[b]);
}

TEST(invalid_utf8_is_replaced)
{
    struct ew_layout *layout = two_columns(0);
    struct ew_columns columns;
    CHECK_EQ_INT(ew_columns_init(&columns, layout), 0);
    for (int i = 0; i < 2; i++) {
        CHECK(ew_columns_begin(&columns));
        ew_columns_dict(&columns, 1, "a\xFFz");
        ew_columns_text(&columns, 2, "\xC3(\xE2\x82\xAC", 5);
        ew_columns_end(&columns);
    }
    struct ew_batch *batch = ew_columns_cut(&columns);
    CHECK_EQ_UINT(batch->columns[1].entry_count, 1);
    CHECK_EQ_MEM(batch->columns[1].dictionary->text, "a\xEF\xBF\xBDz", 5);
    const int32_t *offsets = (const int32_t *)(const void *)batch->columns[2].values;
    CHECK_EQ_INT(offsets[1], 7);
    CHECK_EQ_MEM(batch->columns[2].text, "\xEF\xBF\xBD(\xE2\x82\xAC", 7);
    ew_batch_unref(batch);
    ew_columns_done(&columns);
    ew_layout_unref(layout);
}

TEST(a_batch_ends_early_when_its_text_is_large)
{
    struct ew_layout *layout = two_columns(0);
    struct ew_columns columns;
    static char large[1 << 20];
    CHECK_EQ_INT(ew_columns_init(&columns, layout), 0);
    memset(large, 'x', sizeof large);
    unsigned rows = 0;
    while (!columns.full && rows < 100) {
        CHECK(ew_columns_begin(&columns));
        ew_columns_text(&columns, 2, large, sizeof large);
        ew_columns_end(&columns);
        rows++;
    }
    CHECK_EQ_UINT(rows, 32);
    ew_columns_done(&columns);
    ew_layout_unref(layout);
}

/* --------------------------------------------------------------- flatbuffers */

TEST(a_flatbuffer_has_its_fields_where_its_table_says)
{
    struct ew_flatbuffer flat;
    size_t size = 0;
    ew_flatbuffer_init(&flat);
    size_t text = ew_flatbuffer_string(&flat, "name");
    ew_flatbuffer_table_begin(&flat);
    ew_flatbuffer_field(&flat, 2, 0x1122334455667788, 8);
    ew_flatbuffer_field_ref(&flat, 0, text);
    ew_flatbuffer_field(&flat, 4, 7, 1);
    const uint8_t *bytes = ew_flatbuffer_finish(&flat, ew_flatbuffer_table_end(&flat), &size);
    CHECK(bytes != NULL);
    CHECK_EQ_UINT(size % 8, 0);
    size_t table = ew_load_u32(bytes);
    size_t list = table - ew_load_u32(bytes + table);
    CHECK_EQ_UINT(ew_load_u16(bytes + list), 4 + 2 * 5);
    CHECK_EQ_UINT(ew_load_u16(bytes + list + 6), 0); /* field 1 is absent */
    size_t number = table + ew_load_u16(bytes + list + 8);
    CHECK_EQ_UINT(number % 8, 0);
    CHECK_EQ_UINT(ew_load_u64(bytes + number), 0x1122334455667788);
    CHECK_EQ_UINT(bytes[table + ew_load_u16(bytes + list + 12)], 7);
    size_t ref = table + ew_load_u16(bytes + list + 4);
    size_t string = ref + ew_load_u32(bytes + ref);
    CHECK_EQ_UINT(ew_load_u32(bytes + string), 4);
    CHECK_EQ_MEM(bytes + string + 4, "name", 5);
    ew_flatbuffer_done(&flat);
}

/* ------------------------------------------------------------------- traces */

static void make_file(struct file *file)
{
    begin_file(file, 1);
    put_process(file, 3, START_RAW + 5, 100, 4, "parent.exe");
    put_thread(file, 3, START_RAW + 10, 100, 104);
    put_switch(file, START_RAW + 500, 0, 104);
    put_process(file, 1, START_RAW + 600, 200, 100, "child.exe");
    put_thread(file, 1, START_RAW + 700, 200, 204);
    put_switch(file, START_RAW + 1000, 104, 204);
    put_switch(file, START_RAW + 3000, 204, 0);
    put_thread(file, 2, START_RAW + 6100, 200, 204);
    put_process(file, 2, START_RAW + 6200, 200, 100, "child.exe");
    end_file(file, START_RAW + 10000, 0);
}

TEST(a_stream_of_a_trace_outlives_it_and_two_can_be_read_at_once)
{
    struct file file;
    struct ArrowArrayStream events, processes;
    make_file(&file);
    struct etwatch_trace *trace = open_file(&file, NULL);
    CHECK_EQ_INT(etwatch_trace_table(trace, ETWATCH_TABLE_EVENTS, NULL, &events, NULL), 0);
    CHECK_EQ_INT(etwatch_trace_table(trace, ETWATCH_TABLE_PROCESSES, NULL, &processes, NULL), 0);
    etwatch_trace_free(trace);
    struct ArrowSchema schema;
    struct ArrowArray batch;
    CHECK_EQ_INT(events.get_schema(&events, &schema), 0);
    CHECK_EQ_INT(events.get_next(&events, &batch), 0);
    CHECK_EQ_UINT(drain(&processes, NULL), 2 + 1); /* plus the header event */
    CHECK_EQ_INT(batch.length, 10);
    CHECK_EQ_STR(text_at(batch.children[column_of(&schema, "event")], 5), "Thread/Start");
    CHECK_EQ_STR(text_at(batch.children[column_of(&schema, "name")], 5), "child.exe");
    events.release(&events);
    processes.release(&processes);
    batch.release(&batch);
    schema.release(&schema);
    remove_file(&file);
}

TEST(batches_have_the_requested_number_of_rows)
{
    struct file file;
    struct ArrowArrayStream stream;
    unsigned batches = 0;
    make_file(&file);
    struct etwatch_trace *trace = open_file(&file, NULL);
    struct etwatch_table_options options = {.size = sizeof options, .batch_rows = 3};
    CHECK_EQ_INT(etwatch_trace_table(trace, ETWATCH_TABLE_EVENTS, &options, &stream, NULL), 0);
    CHECK_EQ_UINT(drain(&stream, &batches), 10);
    CHECK_EQ_UINT(batches, 4);
    stream.release(&stream);
    etwatch_trace_free(trace);
    remove_file(&file);
}

TEST(typed_events_have_a_column_for_each_field)
{
    struct file file;
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    const char *events[] = {"cswitch"};
    struct etwatch_table_options options = {
        .size = sizeof options, .flags = ETWATCH_TABLE_TYPED, .events = events, .event_count = 1};
    make_file(&file);
    struct etwatch_trace *trace = open_file(&file, NULL);
    CHECK_EQ_INT(etwatch_trace_table(trace, ETWATCH_TABLE_EVENTS, &options, &stream, NULL), 0);
    etwatch_trace_free(trace);
    CHECK_EQ_INT(stream.get_schema(&stream, &schema), 0);
    CHECK_EQ_INT(stream.get_next(&stream, &batch), 0);
    CHECK_EQ_INT(batch.length, 3);
    const struct ArrowArray *old = batch.children[column_of(&schema, "OldThreadId")];
    CHECK_EQ_INT(number_at(old, 1), 104);
    CHECK_EQ_INT(number_at(old, 2), 204);
    batch.release(&batch);
    schema.release(&schema);
    stream.release(&stream);
    remove_file(&file);
}

static int stop_at_once(void *ctx, uint64_t done, uint64_t all)
{
    (void)ctx;
    (void)done;
    (void)all;
    return 1;
}

TEST(errors_of_a_stream_have_a_text_and_it_can_be_released)
{
    struct file file;
    struct ArrowArrayStream stream;
    struct ArrowArray batch = {0};
    struct etwatch_error_info error = {.size = sizeof error};
    make_file(&file);
    struct etwatch_trace *trace = open_file(&file, NULL);
    struct etwatch_table_options options = {.size = sizeof options, .on_progress = stop_at_once};
    CHECK_EQ_INT(etwatch_trace_table(trace, 99, NULL, &stream, &error), ETWATCH_EINVAL);
    CHECK_CONTAINS(error.message, "99");
    CHECK_EQ_INT(etwatch_trace_table(trace, ETWATCH_TABLE_PROCESSES, &options, &stream, NULL), 0);
    CHECK(stream.get_last_error(&stream) == NULL);
    if (stream.get_next(&stream, &batch) !=
        0) /* so small that the read may be over before it is queried */
        CHECK(stream.get_last_error(&stream) != NULL);
    else if (batch.release != NULL)
        batch.release(&batch);
    stream.release(&stream);
    (void)remove(file.path);
    FILE *still = fopen(file.path, "rb"); /* Windows does not remove an open file */
    if (still == NULL) {
        CHECK(etwatch_trace_table(trace, ETWATCH_TABLE_EVENTS, NULL, &stream, &error) < 0);
        CHECK_CONTAINS(error.message, "t.etl");
    } else {
        CHECK_EQ_INT(fclose(still), 0);
    }
    etwatch_trace_free(trace);
    remove_file(&file);
}

/* -------------------------------------------------------------- files, memory */

struct sum {
    size_t size;
    char first[8], last[6];
    size_t fail_after;
};

static int add_up(void *ctx, const void *bytes, size_t len)
{
    struct sum *sum = ctx;
    if (sum->fail_after != 0 && sum->size + len > sum->fail_after)
        return ETWATCH_EOS;
    if (sum->size == 0 && len >= 8)
        memcpy(sum->first, bytes, 8);
    if (len >= 6)
        memcpy(sum->last, (const char *)bytes + len - 6, 6);
    sum->size += len;
    return 0;
}

static int write_all(void *ctx)
{
    const struct file *file = ctx;
    const char *path = file->path;
    struct etwatch_trace_options single = {.size = sizeof single, .workers = 1};
    struct etwatch_table_options options = {.size = sizeof options,
                                            .flags = ETWATCH_TABLE_FIELDS | ETWATCH_TABLE_PAYLOAD,
                                            .batch_rows = 4};
    struct etwatch_trace *trace = NULL;
    struct ArrowArrayStream stream;
    struct sum sum = {0};
    uint64_t rows = 0;
    int rc = etwatch_trace_open(&path, 1, &single, &trace, NULL);
    if (rc == 0)
        rc = etwatch_trace_table(trace, ETWATCH_TABLE_EVENTS, &options, &stream, NULL);
    if (rc == 0)
        rc = etwatch_arrow_write(&stream, add_up, &sum, &rows, NULL);
    if (rc == 0)
        rc = etwatch_trace_table(trace, ETWATCH_TABLE_THREADS, &options, &stream, NULL);
    if (rc == 0)
        rc = etwatch_table_write(&stream, ETWATCH_FORMAT_CSV, NULL, add_up, &sum, NULL, NULL);
    etwatch_trace_free(trace);
    if (rc == 0) {
        CHECK_EQ_UINT(rows, 10);
        CHECK_EQ_MEM(sum.first, "ARROW1\0\0", 8);
    }
    return rc;
}

struct failing {
    unsigned at, count;
};

static int fail_one(void *ctx, size_t size)
{
    struct failing *failing = ctx;
    (void)size;
    return ++failing->count == failing->at;
}

/* Process names may be missing in that case, so the export may still succeed; it must not leak. */
TEST(an_export_leaks_nothing_whichever_allocation_fails)
{
    struct file file;
    unsigned failed = 0;
    make_file(&file);
    for (unsigned at = 1;; at++) {
        struct failing failing = {.at = at};
        ew_alloc_set_hook(fail_one, &failing);
        int rc = write_all(&file);
        ew_alloc_set_hook(NULL, NULL);
        failed += rc < 0;
        if (failing.count < at)
            break;
    }
    CHECK(failed > 50);
    remove_file(&file);
}

static int build_and_write(void *ctx)
{
    struct ew_layout *layout = NULL;
    struct ew_columns columns = {0};
    struct ew_batch_list list = {0};
    struct ArrowArrayStream stream;
    struct sum sum = {0};
    (void)ctx;
    int rc = ew_layout_new(300, &layout);
    if (rc == 0)
        rc = ew_layout_add(layout, "word", EW_COLUMN_DICT, true);
    if (rc == 0)
        rc = ew_layout_add(layout, "text", EW_COLUMN_TEXT, true);
    if (rc == 0)
        rc = ew_columns_init(&columns, layout);
    for (int i = 0; i < 1000 && rc == 0; i++) {
        char word[16];
        (void)snprintf(word, sizeof word, "%d", i);
        if (ew_columns_begin(&columns)) {
            ew_columns_dict(&columns, 0, word);
            ew_columns_text(&columns, 1, "\xFF", 1);
            ew_columns_end(&columns);
        }
        rc = columns.error;
        if (rc == 0 && columns.full)
            rc = ew_batch_list_add(&list, ew_columns_cut(&columns));
        rc = rc == 0 ? columns.error : rc;
    }
    if (rc == 0)
        rc = ew_batch_list_export(&list, layout, &stream);
    if (rc == 0)
        rc = etwatch_arrow_write(&stream, add_up, &sum, NULL, NULL);
    ew_batch_list_done(&list);
    ew_columns_done(&columns);
    ew_layout_unref(layout);
    return rc;
}

TEST(running_out_of_memory_is_an_error_and_leaks_nothing)
{
    TORTURE(build_and_write, NULL);
}

TEST(a_write_that_fails_ends_the_file_with_its_code)
{
    struct file file;
    struct ArrowArrayStream stream;
    make_file(&file);
    struct etwatch_trace *trace = open_file(&file, NULL);
    struct sum sum = {.fail_after = 1};
    CHECK_EQ_INT(etwatch_trace_table(trace, ETWATCH_TABLE_EVENTS, NULL, &stream, NULL), 0);
    CHECK_EQ_INT(etwatch_arrow_write(&stream, add_up, &sum, NULL, NULL), ETWATCH_EOS);
    CHECK(stream.release == NULL);
    CHECK_EQ_INT(etwatch_trace_table(trace, ETWATCH_TABLE_EVENTS, NULL, &stream, NULL), 0);
    CHECK_EQ_INT(etwatch_table_write(&stream, ETWATCH_FORMAT_CSV, NULL, add_up, &sum, NULL, NULL),
                 ETWATCH_EOS);
    CHECK(stream.release == NULL);
    etwatch_trace_free(trace);
    remove_file(&file);
}

TEST(foreign_streams_that_cannot_be_written_are_refused)
{
    struct ew_layout *layout = two_columns(0);
    struct ew_batch_list none = {0};
    struct ArrowArrayStream stream;
    struct sum sum = {0};
    CHECK_EQ_INT(ew_batch_list_export(&none, layout, &stream), 0);
    CHECK_EQ_INT(etwatch_arrow_write(&stream, NULL, &sum, NULL, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_table_write(&stream, ETWATCH_FORMAT_TABLE, NULL, add_up, &sum, NULL, NULL),
                 ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_arrow_write(&stream, add_up, &sum, NULL, NULL), 0);
    CHECK_EQ_INT(etwatch_arrow_write(&stream, add_up, &sum, NULL, NULL), ETWATCH_EINVAL);
    CHECK_EQ_MEM(sum.last, "ARROW1", 6);
    ew_layout_unref(layout);
}
