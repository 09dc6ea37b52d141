/* SPDX-License-Identifier: MIT */
/*
 * Real recordings, Windows 6.0 to 11, 32 and 64 bits, compressed or not: every event that the
 * manifest counts, in order, with every byte understood. They are not part of the tree:
 * ETWATCH_CORPUS names the folder with MANIFEST.tsv and etl/.
 */
#include <stdio.h>

#include "etl_reader_kit.h"

enum {
    LINE_SIZE = 16384,
    COLUMN_FILE = 0,
    COLUMN_BYTES = 1,
    COLUMN_COMPRESSED = 10,
    COLUMN_EVENTS = 11
};

struct row {
    char file[256];
    unsigned long long bytes, events;
    bool compressed;
};

/* Columns are separated by tabs. */
static bool parse_row(const char *line, struct row *ret_row)
{
    const char *at = line;
    for (int column = 0; at; column++) {
        const char *tab = strchr(at, '\t');
        size_t len = tab ? (size_t)(tab - at) : strlen(at);
        if (column == COLUMN_FILE)
            (void)snprintf(ret_row->file, sizeof ret_row->file, "%.*s", (int)len, at);
        if (column == COLUMN_BYTES && sscanf(at, "%llu", &ret_row->bytes) != 1)
            return false; /* the line with the names */
        if (column == COLUMN_COMPRESSED)
            ret_row->compressed = strncmp(at, "yes", 3) == 0;
        if (column == COLUMN_EVENTS)
            return sscanf(at, "%llu", &ret_row->events) == 1;
        at = tab ? tab + 1 : NULL;
    }
    return false;
}

static struct seen_list read_file(const char *path, uint32_t workers, const struct row *row)
{
    struct ew_etl_options options = {.workers = workers};
    struct ew_etl_reader *reader = NULL;
    struct ew_error error = {0};
    CHECK_EQ_INT(ew_etl_open(&path, 1, &options, &reader, &error), 0);
    const struct ew_etl_file_info *info = ew_etl_file_info(reader, 0);
    CHECK_EQ_UINT(info->file_bytes, row->bytes);
    CHECK_EQ_INT(info->compressed, row->compressed);
    CHECK(info->cpu_count >= 1 && info->perf_frequency > 0);
    struct seen_list list = kit_drain(reader);
    ew_etl_close(reader);
    return list;
}

static void check_file(const char *path, const struct row *row)
{
    struct seen_list one = read_file(path, 1, row);
    uint64_t losses = 0;
    for (size_t i = 0; i < one.count; i++)
        losses += one.items[i].kind == EW_RECORD_LOSS;
    CHECK_EQ_UINT(one.count - losses, row->events);
    CHECK_EQ_UINT(one.counts.records, row->events);
    CHECK_EQ_UINT(one.counts.bad_buffers, 0);
    CHECK_EQ_UINT(one.counts.bad_records, 0);
    CHECK_EQ_UINT(one.counts.late, 0);
    CHECK_EQ_UINT(one.counts.bytes, row->bytes);
    CHECK_EQ_INT(one.counts.compressed_buffers > 0, row->compressed);
    kit_check_order(&one);
    struct seen_list three = read_file(path, 3, row);
    kit_check_same(&one, &three);
    kit_free(&one);
    kit_free(&three);
}

TEST(every_event_of_the_corpus_is_read_once_and_in_order)
{
    const char *corpus = getenv("ETWATCH_CORPUS");
    char path[512], line[LINE_SIZE];
    if (!corpus || !*corpus)
        SKIP("ETWATCH_CORPUS names no folder of recordings");
    (void)snprintf(path, sizeof path, "%s/MANIFEST.tsv", corpus);
    FILE *manifest = fopen(path, "r");
    if (!manifest)
        SKIP("there is no MANIFEST.tsv in ETWATCH_CORPUS");
    unsigned files = 0;
    while (fgets(line, sizeof line, manifest)) {
        struct row row = {0};
        if (!parse_row(line, &row))
            continue;
        test_row(row.file);
        (void)snprintf(path, sizeof path, "%s/etl/%s", corpus, row.file);
        check_file(path, &row);
        files++;
    }
    (void)fclose(manifest);
    CHECK(files > 0);
}
