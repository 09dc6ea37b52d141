/* SPDX-License-Identifier: MIT */
/*
 * Payloads of real kernel events with the fields that another decoder's tests expect
 * (reference/kernel_payloads.tsv in the folder ETWATCH_CORPUS), and the kernel events of the
 * recordings there. Skipped without it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"
#include "decode/kernel.h"
#include "decode/kernel_table.h"
#include "kernel_payload.h"
#include "source/etl/reader.h"

enum { LINE_SIZE = 1 << 16, COLUMN_COUNT = 10 };
enum column { TEST_NAME, PROVIDER, VERSION, OPCODE, BITS, CATEGORY, OPERATION, LEN, HEX, EXPECTED };

struct score {
    unsigned rows, good_rows, fields, good_fields, unnamed;
};

/* "3d6fa8d0-…" to the byte order on disk. */
static void parse_guid(const char *text, uint8_t guid[16])
{
    static const uint8_t place[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    unsigned n = 0;
    for (; *text && n < 16; text += 2) {
        unsigned byte;
        if (*text == '-')
            text++;
        CHECK(sscanf(text, "%2x", &byte) == 1);
        guid[place[n++]] = (uint8_t)byte;
    }
    CHECK_EQ_UINT(n, 16);
}

static void parse_hex(const char *text, struct payload *payload)
{
    payload->size = 0;
    for (; text[0] && text[1]; text += 2) {
        unsigned byte;
        CHECK(sscanf(text, "%2x", &byte) == 1);
        CHECK(payload->size < sizeof payload->bytes);
        payload->bytes[payload->size++] = (uint8_t)byte;
    }
}

/* The other decoder names image fields as version 0 did. */
static const char *our_name(const struct ew_record *record, uint8_t class_id, const char *name)
{
    static const char *const pairs[][2] = {{"BaseAddress", "ImageBase"},
                                           {"ModuleSize", "ImageSize"},
                                           {"ImageCheckSum", "ImageChecksum"},
                                           {"ImageFileName", "FileName"}};
    if (class_id != EW_KERNEL_IMAGE || record->version == 0)
        return name;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(pairs[i][0], name) == 0)
            return pairs[i][1];
    return name;
}

/* L"one piece" L"another" without quotes and escapes. */
static void unquote(const char *text, char *out)
{
    bool inside = false;
    for (; *text; text++) {
        if (*text == '"')
            inside = !inside;
        else if (inside)
            *out++ = *text == '\\' ? *++text : *text;
    }
    *out = '\0';
}

/* Runs of blanks were lost when the expected values were extracted from their source. */
static bool is_same_text(const char *got, size_t len, const char *want)
{
    for (size_t i = 0; i < len; i++) {
        if (i && got[i] == ' ' && got[i - 1] == ' ')
            continue;
        if (got[i] != *want++)
            return false;
    }
    return *want == '\0';
}

static bool is_equal(const struct ew_field *field, const char *want, struct score *score)
{
    static char text[LINE_SIZE];
    if (strchr(want, '"')) {
        unquote(want, text);
        return field->type == EW_FIELD_TEXT && is_same_text(field->v.text, field->len, text);
    }
    char *end;
    errno = 0;
    uint64_t value = strtoull(want, &end, 0); /* accepts a minus sign too */
    if (end == want || errno) {               /* a constant in the other program's source */
        score->unnamed++;
        return field->type == EW_FIELD_TEXT;
    }
    switch (field->type) {
    case EW_FIELD_I64:
        return (uint64_t)field->v.i == value;
    case EW_FIELD_PORT:
        return ((field->v.u & 0xff) << 8 | field->v.u >> 8) == value;
    case EW_FIELD_IPV4:
        return ((uint32_t)field->v.raw[0] | (uint32_t)field->v.raw[1] << 8 |
                (uint32_t)field->v.raw[2] << 16 | (uint32_t)field->v.raw[3] << 24) == value;
    case EW_FIELD_U64:
    case EW_FIELD_HEX:
    case EW_FIELD_BOOL:
    case EW_FIELD_FILETIME:
        return field->v.u == value;
    default:
        return false;
    }
}

/* "Name=value; Name=value [+nested values in source]" */
static bool check_expected(char *expected, const struct ew_record *record, uint8_t class_id,
                           const struct ew_fields *fields, struct score *score)
{
    bool good = true;
    char *nested = strstr(expected, " [+nested");
    if (nested)
        *nested = '\0';
    for (char *pair = expected, *next; pair && *pair; pair = next) {
        next = strstr(pair, "; ");
        if (next) {
            *next = '\0';
            next += 2;
        }
        char *value = strchr(pair, '=');
        CHECK(value != NULL);
        *value++ = '\0';
        const struct ew_field *field = field_named(fields, our_name(record, class_id, pair));
        bool same = field && is_equal(field, value, score);
        score->fields++;
        score->good_fields += same;
        if (!same)
            printf("# %s: %s is not %s\n", field ? "differs" : "missing", pair, value);
        good = good && same;
    }
    return good;
}

static void check_row(char *columns[COLUMN_COUNT], struct ew_fields *fields, struct score *score)
{
    static struct payload payload;
    uint8_t guid[16], opcode;
    parse_guid(columns[PROVIDER], guid);
    parse_hex(columns[HEX], &payload);
    payload.pointer_size = (uint8_t)(strtoul(columns[BITS], NULL, 10) / 8);
    struct ew_record record =
        kernel_record(&payload, 0, (uint8_t)strtoul(columns[OPCODE], NULL, 10),
                      (uint8_t)strtoul(columns[VERSION], NULL, 10));
    record.kind = EW_RECORD_CLASSIC;
    record.provider = guid;
    uint8_t class_id = ew_kernel_class_of(&record, &opcode);
    CHECK(class_id != EW_KERNEL_NO_CLASS);
    /* Decodes it again in the form in which the kernel itself writes it. */
    record.kind = EW_RECORD_KERNEL;
    record.group = class_id;
    ew_fields_clear(fields);
    bool good = ew_kernel_fields(&record, fields) == 1;
    good = check_expected(columns[EXPECTED], &record, class_id, fields, score) && good;
    score->rows++;
    score->good_rows += good;
    if (!good)
        printf("# row %s\n", columns[TEST_NAME]);
}

TEST(real_payloads_have_the_expected_fields)
{
    static char line[LINE_SIZE], path[4096];
    const char *corpus = getenv("ETWATCH_CORPUS");
    if (!corpus)
        SKIP("ETWATCH_CORPUS is not set");
    snprintf(path, sizeof path, "%s/reference/kernel_payloads.tsv", corpus);
    FILE *file = fopen(path, "r");
    if (!file)
        SKIP("no reference/kernel_payloads.tsv in ETWATCH_CORPUS");
    struct score score = {0};
    struct ew_fields fields;
    ew_fields_init(&fields);
    CHECK(fgets(line, sizeof line, file) != NULL); /* the heading */
    while (fgets(line, sizeof line, file)) {
        char *columns[COLUMN_COUNT] = {line};
        line[strcspn(line, "\r\n")] = '\0';
        for (unsigned n = 1; n < COLUMN_COUNT; n++) {
            columns[n] = strchr(columns[n - 1], '\t');
            CHECK(columns[n] != NULL);
            *columns[n]++ = '\0';
        }
        check_row(columns, &fields, &score);
    }
    fclose(file);
    ew_fields_done(&fields);
    printf("# %u of %u rows, %u of %u fields (%u of these with no value to compare)\n",
           score.good_rows, score.rows, score.good_fields, score.fields, score.unnamed);
    CHECK(score.rows > 100);
    CHECK_EQ_UINT(score.good_fields, score.fields);
    CHECK_EQ_UINT(score.good_rows, score.rows);
}

/* ---------------------------------------------------------------- real recordings */

struct tally {
    uint64_t kernel, short_typed, short_named, foreign;
};

static void decode_file(const char *path, struct tally *tally)
{
    struct ew_etl_reader *reader;
    struct ew_etl_options options = {.workers = 1};
    struct ew_error error;
    const struct ew_record *records;
    struct ew_fields fields;
    int count;
    test_row(path);
    CHECK_EQ_INT(ew_etl_open(&path, 1, &options, &reader, &error), 0);
    ew_fields_init(&fields);
    while ((count = ew_etl_next(reader, &records)) > 0)
        for (int i = 0; i < count; i++) {
            struct ew_event event;
            char scratch[EW_KERNEL_NAME_SIZE];
            struct ew_kernel_name name;
            tally->short_typed += !ew_decode_event(&records[i], &event);
            if (!ew_kernel_names(&records[i], scratch, &name)) {
                tally->foreign++;
                continue;
            }
            ew_fields_clear(&fields);
            int got = ew_kernel_fields(&records[i], &fields);
            tally->kernel++;
            tally->short_named += got < 0;
        }
    ew_fields_done(&fields);
    ew_etl_close(reader);
    CHECK_EQ_INT(count, 0);
}

TEST(no_kernel_event_of_a_real_recording_is_too_short)
{
    static char line[LINE_SIZE], path[4096];
    const char *corpus = getenv("ETWATCH_CORPUS");
    if (!corpus)
        SKIP("ETWATCH_CORPUS is not set");
    snprintf(path, sizeof path, "%s/MANIFEST.tsv", corpus);
    FILE *file = fopen(path, "r");
    if (!file)
        SKIP("no MANIFEST.tsv in ETWATCH_CORPUS");
    struct tally tally = {0};
    CHECK(fgets(line, sizeof line, file) != NULL); /* the heading */
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\t\r\n")] = '\0';
        snprintf(path, sizeof path, "%s/etl/%.200s", corpus, line);
        decode_file(path, &tally);
    }
    fclose(file);
    printf("# %ju kernel events, %ju others\n", (uintmax_t)tally.kernel, (uintmax_t)tally.foreign);
    CHECK(tally.kernel > 100000);
    CHECK_EQ_UINT(tally.short_typed, 0);
    CHECK_EQ_UINT(tally.short_named, 0);
}
