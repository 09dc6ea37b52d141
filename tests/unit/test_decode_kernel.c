/* SPDX-License-Identifier: MIT */
/*
 * Names and fields of the kernel's classes. Every layout of the tables is written out with values
 * that differ from field to field, read back, and cut at every length; the layouts that matter most
 * are spelled out here a second time, byte by byte, so that the tables are not their own witness.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/kernel.h"
#include "decode/kernel_table.h"
#include "kernel_payload.h"

static const struct {
    uint8_t id;
    const struct ew_kernel_class *table;
} classes[] = {
    {EW_KERNEL_EVENTTRACE, &ew_kernel_eventtrace},
    {EW_KERNEL_DISKIO, &ew_kernel_diskio},
    {EW_KERNEL_MEMORY, &ew_kernel_memory},
    {EW_KERNEL_PROCESS, &ew_kernel_process},
    {EW_KERNEL_FILEIO, &ew_kernel_fileio},
    {EW_KERNEL_THREAD, &ew_kernel_thread},
    {EW_KERNEL_TCPIP, &ew_kernel_tcpip},
    {EW_KERNEL_UDPIP, &ew_kernel_udpip},
    {EW_KERNEL_REGISTRY, &ew_kernel_registry},
    {EW_KERNEL_SYSTEMCONFIG, &ew_kernel_systemconfig},
    {EW_KERNEL_POOL, &ew_kernel_pool},
    {EW_KERNEL_PERFINFO, &ew_kernel_perfinfo},
    {EW_KERNEL_HEAP, &ew_kernel_heap},
    {EW_KERNEL_OBJECT, &ew_kernel_object},
    {EW_KERNEL_IMAGE, &ew_kernel_image},
    {EW_KERNEL_STACKWALK, &ew_kernel_stackwalk},
    {EW_KERNEL_ALPC, &ew_kernel_alpc},
    {EW_KERNEL_SPLITIO, &ew_kernel_splitio},
};

/* --------------------------------------------------- every layout of the tables */

enum { LIST_LEN = 2 };

/* A number that fits and is not that of the item before or behind; register values are the length
 * of the lists to come. */
static uint64_t value_of(const struct ew_kernel_item *item, unsigned i)
{
    return item->arg ? LIST_LEN : 33 + i % 90;
}

static void write_item(struct payload *payload, const struct ew_kernel_item *item, unsigned i)
{
    uint64_t value = value_of(item, i);
    char text[16];
    snprintf(text, sizeof text, "T%u", i);
    switch (item->type) {
    case K_U8:
    case K_I8:
    case K_X8:
        put(payload, value, 1);
        return;
    case K_BOOL:
        put(payload, 1, 1);
        return;
    case K_U16:
    case K_I16:
    case K_X16:
        put(payload, value, 2);
        return;
    case K_PORT:
        put(payload, value << 8, 2);
        return;
    case K_U32:
    case K_I32:
    case K_X32:
        put(payload, value, 4);
        return;
    case K_U64:
    case K_I64:
    case K_X64:
    case K_TIME:
        put(payload, value, 8);
        return;
    case K_PTR:
    case K_SIZE:
    case K_CONN:
        put_pointer(payload, value);
        return;
    case K_IPV4:
        put(payload, value, 4);
        return;
    case K_IPV6:
    case K_GUID:
        put(payload, value, 8);
        put(payload, value, 8);
        return;
    case K_SID:
        put_sid(payload);
        return;
    case K_ANSI:
        put_ansi(payload, text);
        return;
    case K_WIDE:
        put_wide(payload, text);
        return;
    case K_CHARS: {
        uint32_t end = payload->size + 2u * item->arg;
        put(payload, 'T', 2);
        if (item->arg > 1)
            put(payload, 0, 2);
        memset(payload->bytes + payload->size, 0xee, end - payload->size);
        payload->size = end;
        return;
    }
    case K_BYTES:
        for (unsigned n = 0; n < item->arg; n++)
            put(payload, value, 1);
        return;
    default: /* takes no bytes */
        return;
    }
}

static void write_layout(struct payload *payload, const struct ew_kernel_event *event)
{
    payload->size = 0;
    for (unsigned i = 0; i < event->item_count; i++) {
        const struct ew_kernel_item *item = &event->items[i];
        if (item->type != K_LIST) {
            write_item(payload, item, i);
            continue;
        }
        for (unsigned n = 0; n < LIST_LEN; n++)
            for (unsigned k = 1; k <= item->arg; k++)
                write_item(payload, &item[k], i + k);
        i += item->arg;
    }
}

static void check_field(const struct ew_field *field, const struct ew_kernel_item *item, unsigned i)
{
    uint64_t value = value_of(item, i);
    char text[16];
    switch (item->type) {
    case K_BOOL:
        CHECK_EQ_INT(field->type, EW_FIELD_BOOL);
        CHECK_EQ_UINT(field->v.u, 1);
        return;
    case K_I8:
    case K_I16:
    case K_I32:
    case K_I64:
        CHECK_EQ_INT(field->type, EW_FIELD_I64);
        CHECK_EQ_INT(field->v.i, value);
        return;
    case K_ANSI:
    case K_WIDE:
        snprintf(text, sizeof text, "T%u", i);
        CHECK_EQ_INT(field->type, EW_FIELD_TEXT);
        CHECK_EQ_UINT(field->len, strlen(text));
        CHECK_EQ_MEM(field->v.text, text, field->len);
        return;
    case K_CHARS:
        CHECK_EQ_UINT(field->len, 1);
        CHECK_EQ_MEM(field->v.text, "T", 1);
        return;
    case K_IPV4:
    case K_IPV6:
    case K_GUID:
    case K_BYTES:
        CHECK_EQ_UINT(field->len, item->type == K_IPV4    ? 4
                                  : item->type == K_BYTES ? item->arg
                                                          : 16);
        if (item->type != K_BYTES)
            CHECK_EQ_UINT(field->v.raw[0], value);
        return;
    case K_SID:
        CHECK_EQ_INT(field->type, EW_FIELD_SID);
        CHECK_EQ_UINT(field->len, 16);
        return;
    case K_BITS:
    case K_FLAG:
    case K_OPEN:
        return;
    default:
        CHECK_EQ_UINT(field->v.u, value);
        return;
    }
}

/* Two inner structs may have members of the same name. */
static bool named_before(const struct ew_kernel_event *event, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (event->items[k].name && strcmp(event->items[k].name, event->items[i].name) == 0)
            return true;
    return false;
}

static void check_layout(const struct ew_fields *fields, const struct ew_kernel_event *event)
{
    for (unsigned i = 0; i < event->item_count; i++) {
        const struct ew_kernel_item *item = &event->items[i];
        if (!item->name)
            continue;
        const struct ew_field *field = field_named(fields, item->name);
        CHECK(field != NULL);
        if (named_before(event, i))
            continue;
        if (item->type == K_LIST) {
            CHECK_EQ_INT(field->type, EW_FIELD_ARRAY);
            CHECK_EQ_INT(field[1].type, item->arg == 1 ? item[1].type == K_WIDE   ? EW_FIELD_TEXT
                                                         : item[1].type == K_GUID ? EW_FIELD_GUID
                                                                                  : field[1].type
                                                       : EW_FIELD_STRUCT);
            i += item->arg;
            continue;
        }
        check_field(field, item, i);
    }
}

/* Not every cut is told: a list may end, and so may the last text. But nothing outside is read
 * (the payload is at the end of its heap block), and what is there is well formed. */
static void check_cuts(const struct payload *payload, uint8_t class_id,
                       const struct ew_kernel_event *event, struct ew_fields *fields)
{
    bool steered = false;
    for (unsigned i = 0; i < event->item_count; i++)
        steered |= event->items[i].type == K_MAYEND || event->items[i].type == K_LIST ||
                   event->items[i].type == K_WIDE || event->items[i].type == K_ANSI;
    for (uint32_t size = 0; size < payload->size; size++) {
        uint8_t *bytes = malloc(size ? size : 1);
        CHECK(bytes != NULL);
        memcpy(bytes, payload->bytes, size);
        struct ew_record record = kernel_record(payload, class_id, event->opcode, event->version);
        record.payload = bytes;
        record.payload_size = size;
        ew_fields_clear(fields);
        int got = ew_kernel_fields(&record, fields);
        free(bytes);
        CHECK_EQ_UINT(fields->open, 0);
        CHECK(got == 1 || got == -1);
        if (!steered && class_id != EW_KERNEL_TCPIP && class_id != EW_KERNEL_UDPIP)
            CHECK_EQ_INT(got, -1);
    }
}

static void check_row(struct payload *payload, uint8_t class_id,
                      const struct ew_kernel_event *event, struct ew_fields *fields)
{
    write_layout(payload, event);
    struct ew_record record = kernel_record(payload, class_id, event->opcode, event->version);
    ew_fields_clear(fields);
    CHECK_EQ_INT(ew_kernel_fields(&record, fields), 1);
    CHECK_EQ_UINT(fields->open, 0);
    check_layout(fields, event);
    uint32_t count = fields->count;
    check_cuts(payload, class_id, event, fields);
    /* A later version brings more bytes, which change nothing (a list to the end would take them).
     */
    if (event->item_count < 2 || event->items[event->item_count - 2].type != K_LIST) {
        put(payload, 0, 8);
        record.payload_size = payload->size;
        ew_fields_clear(fields);
        CHECK_EQ_INT(ew_kernel_fields(&record, fields), 1);
        CHECK_EQ_UINT(fields->count, count);
    }
}

static void check_table(uint8_t pointer_size)
{
    struct ew_fields fields;
    static struct payload payload;
    unsigned rows = 0;
    ew_fields_init(&fields);
    payload.pointer_size = pointer_size;
    for (size_t c = 0; c < sizeof classes / sizeof *classes; c++)
        for (size_t i = 0; i < classes[c].table->event_count; i++) {
            const struct ew_kernel_event *event = &classes[c].table->events[i];
            if (!event->items)
                continue;
            test_row(event->name);
            check_row(&payload, classes[c].id, event, &fields);
            rows++;
        }
    CHECK(rows > 300);
    ew_fields_done(&fields);
}

TEST(every_layout_gives_back_what_was_written_with_64_bits)
{
    check_table(8);
}

TEST(every_layout_gives_back_what_was_written_with_32_bits)
{
    check_table(4);
}

TEST(the_tables_have_each_version_once_and_in_order)
{
    for (size_t c = 0; c < sizeof classes / sizeof *classes; c++) {
        const struct ew_kernel_class *table = classes[c].table;
        for (size_t i = 0; i < table->event_count; i++)
            for (size_t k = i + 1; k < table->event_count; k++) {
                test_row(table->events[i].name);
                CHECK(table->events[i].opcode != table->events[k].opcode ||
                      table->events[i].version < table->events[k].version);
            }
    }
}

/* ------------------------------------------------------------------ spelled out */

struct decoded {
    struct ew_fields fields;
    int result;
};

static struct decoded decode(const struct payload *payload, uint8_t group, uint8_t opcode,
                             uint8_t version)
{
    struct decoded decoded;
    struct ew_record record = kernel_record(payload, group, opcode, version);
    ew_fields_init(&decoded.fields);
    decoded.result = ew_kernel_fields(&record, &decoded.fields);
    return decoded;
}

TEST(a_process_start_of_windows_10)
{
    for (uint8_t pointer_size = 4; pointer_size <= 8; pointer_size += 4) {
        static struct payload payload;
        payload.size = 0;
        payload.pointer_size = pointer_size;
        put_pointer(&payload, 0xffffb480);
        put(&payload, 3676, 4);
        put(&payload, 3508, 4);
        put(&payload, 0xffffffff, 4);
        put(&payload, 0xc0000005, 4);
        put_pointer(&payload, 0x187000);
        put(&payload, 2, 4);
        put_sid(&payload);
        put_ansi(&payload, "test.exe");
        put_wide(&payload, "test.exe --all");
        put_wide(&payload, "");
        put_wide(&payload, "app");
        struct decoded got = decode(&payload, 3, 1, 4);
        CHECK_EQ_INT(got.result, 1);
        CHECK_EQ_UINT(got.fields.count, 12);
        CHECK_EQ_UINT(field_number(&got.fields, "UniqueProcessKey"), 0xffffb480);
        CHECK_EQ_UINT(field_number(&got.fields, "ProcessId"), 3676);
        CHECK_EQ_UINT(field_number(&got.fields, "ParentId"), 3508);
        CHECK_EQ_UINT(field_number(&got.fields, "SessionId"), 0xffffffff);
        CHECK_EQ_INT(field_number(&got.fields, "ExitStatus"), (int32_t)0xc0000005);
        CHECK_EQ_UINT(field_number(&got.fields, "DirectoryTableBase"), 0x187000);
        CHECK_EQ_UINT(field_number(&got.fields, "Flags"), 2);
        CHECK_EQ_UINT(field_named(&got.fields, "UserSID")->len, 16);
        check_text(&got.fields, "ImageFileName", "test.exe");
        check_text(&got.fields, "CommandLine", "test.exe --all");
        check_text(&got.fields, "PackageFullName", "");
        check_text(&got.fields, "ApplicationId", "app");
        ew_fields_done(&got.fields);
    }
}

TEST(a_process_without_a_sid_has_a_null)
{
    static struct payload payload = {.pointer_size = 8};
    payload.size = 0;
    put_pointer(&payload, 1);
    put(&payload, 4, 4);
    put(&payload, 0, 4);
    put(&payload, 0, 4);
    put(&payload, 259, 4);
    put(&payload, 0, 4);
    put_ansi(&payload, "System");
    put_wide(&payload, "");
    struct decoded got = decode(&payload, 3, 3, 2);
    CHECK_EQ_INT(got.result, 1);
    CHECK_EQ_INT(field_named(&got.fields, "UserSID")->type, EW_FIELD_NULL);
    check_text(&got.fields, "ImageFileName", "System");
    ew_fields_done(&got.fields);
}

/* Some writers wipe the pointer in front of the SID. */
TEST(a_sid_behind_a_wiped_token_is_found)
{
    for (uint8_t pointer_size = 4; pointer_size <= 8; pointer_size += 4) {
        static struct payload payload;
        payload.size = 0;
        payload.pointer_size = pointer_size;
        put_pointer(&payload, 1);
        put(&payload, 4, 4);
        put(&payload, 0, 4);
        put(&payload, 0, 4);
        put(&payload, 259, 4);
        uint32_t token = payload.size;
        put_sid(&payload);
        memset(payload.bytes + token, 0, 2u * pointer_size);
        put_ansi(&payload, "System");
        put_wide(&payload, "");
        struct decoded got = decode(&payload, 3, 3, 2);
        CHECK_EQ_INT(got.result, 1);
        CHECK_EQ_INT(field_named(&got.fields, "UserSID")->type, EW_FIELD_SID);
        check_text(&got.fields, "ImageFileName", "System");
        ew_fields_done(&got.fields);
    }
}

TEST(the_last_text_may_lack_its_end)
{
    static struct payload payload = {.pointer_size = 8};
    payload.size = 0;
    put_pointer(&payload, 0x1234);
    put_wide(&payload, "\\Device\\x");
    payload.size -= 2;
    struct decoded got = decode(&payload, 4, 36, 2);
    CHECK_EQ_INT(got.result, 1);
    check_text(&got.fields, "FileName", "\\Device\\x");
    ew_fields_done(&got.fields);
    payload.size = 8;
    got = decode(&payload, 4, 36, 2);
    CHECK_EQ_INT(got.result, 1);
    check_text(&got.fields, "FileName", "");
    ew_fields_done(&got.fields);
}

TEST(a_thread_has_a_name_from_windows_10_on)
{
    static struct payload payload = {.pointer_size = 8};
    payload.size = 0;
    put(&payload, 100, 4);
    put(&payload, 200, 4);
    for (uint64_t i = 0; i < 7; i++)
        put(&payload, 0xf000 + i, 8);
    put(&payload, 13, 4);
    put(&payload, 8, 1);
    put(&payload, 5, 1);
    put(&payload, 2, 1);
    put(&payload, 0, 1);
    struct decoded got = decode(&payload, 5, 1, 3);
    CHECK_EQ_INT(got.result, 1);
    CHECK_EQ_UINT(field_number(&got.fields, "Affinity"), 0xf004);
    CHECK_EQ_UINT(field_number(&got.fields, "Win32StartAddr"), 0xf005);
    CHECK_EQ_UINT(field_number(&got.fields, "SubProcessTag"), 13);
    CHECK_EQ_UINT(field_number(&got.fields, "BasePriority"), 8);
    CHECK(!field_named(&got.fields, "ThreadName"));
    ew_fields_done(&got.fields);
    put_wide(&payload, "worker");
    got = decode(&payload, 5, 1, 3);
    CHECK_EQ_INT(got.result, 1);
    check_text(&got.fields, "ThreadName", "worker");
    ew_fields_done(&got.fields);
}

/* The test vectors of a switch that catapult has, read by hand. */
TEST(switches_of_all_versions)
{
    static struct payload payload = {.pointer_size = 8};
    payload.size = 0;
    put(&payload, 2252, 4);
    put(&payload, 4396, 4);
    put(&payload, 0xf709, 2);
    put(&payload, 1, 1);
    put(&payload, 0, 1);
    put(&payload, 23, 1);
    put(&payload, 0x25, 1);
    put(&payload, 1, 1);
    put(&payload, 4, 1);
    put(&payload, 18, 4);
    put(&payload, 18470, 4);
    struct decoded got = decode(&payload, 5, 36, 2);
    CHECK_EQ_INT(got.result, 1);
    CHECK_EQ_UINT(field_number(&got.fields, "NewThreadId"), 2252);
    CHECK_EQ_UINT(field_number(&got.fields, "OldThreadId"), 4396);
    CHECK_EQ_INT(field_number(&got.fields, "NewThreadPriority"), 9);
    CHECK_EQ_INT(field_number(&got.fields, "OldThreadPriority"), -9);
    CHECK_EQ_UINT(field_number(&got.fields, "OldThreadWaitReason"), 23);
    CHECK_EQ_UINT(field_number(&got.fields, "OldThreadWaitMode"), 0x25);
    CHECK_EQ_UINT(field_number(&got.fields, "OldThreadState"), 1);
    CHECK_EQ_UINT(field_number(&got.fields, "NewThreadWaitTime"), 18);
    ew_fields_done(&got.fields);
    got = decode(&payload, 5, 36, 4);
    CHECK_EQ_UINT(field_number(&got.fields, "OldThreadWaitMode"), 1);
    CHECK_EQ_UINT(field_number(&got.fields, "ThreadFlags"), 0x25);
    CHECK_EQ_UINT(field_number(&got.fields, "NewThreadWaitTime"), 18);
    ew_fields_done(&got.fields);
    payload.size = 16;
    got = decode(&payload, 5, 36, 1);
    CHECK_EQ_INT(got.result, 1);
    CHECK_EQ_UINT(field_number(&got.fields, "NewThreadQuantum"), 1);
    ew_fields_done(&got.fields);
    got = decode(&payload, 5, 36, 2);
    CHECK_EQ_INT(got.result, -1);
    ew_fields_done(&got.fields);
}

TEST(a_sample_says_what_the_cpu_was_at)
{
    static struct payload payload = {.pointer_size = 4};
    payload.size = 0;
    put(&payload, 0x82fc1a45, 4);
    put(&payload, 3252, 4);
    put(&payload, 1, 2);
    put(&payload, 0x0342, 2);
    struct decoded got = decode(&payload, 15, 46, 2);
    CHECK_EQ_INT(got.result, 1);
    CHECK_EQ_UINT(field_number(&got.fields, "ExecutingDPC"), 0);
    CHECK_EQ_UINT(field_number(&got.fields, "ExecutingISR"), 1);
    CHECK_EQ_UINT(field_number(&got.fields, "Priority"), 8);
    CHECK_EQ_UINT(field_number(&got.fields, "Rank"), 3);
    CHECK_EQ_UINT(field_number(&got.fields, "Reserved"), 0x342);
    ew_fields_done(&got.fields);
}

TEST(addresses_and_ports_are_in_network_order)
{
    static struct payload payload = {.pointer_size = 8};
    static const uint8_t bytes[] = {4, 0,   0, 0,   201, 0, 0, 0, 10, 128, 3, 255, 10, 128, 0, 55,
                                    0, 138, 1, 189, 0,   0, 0, 0, 9,  0,   0, 0,   0,  0,   0, 0};
    memcpy(payload.bytes, bytes, sizeof bytes);
    payload.size = sizeof bytes;
    struct decoded got = decode(&payload, 8, 11, 2);
    CHECK_EQ_INT(got.result, 1);
    CHECK_EQ_UINT(field_number(&got.fields, "PID"), 4);
    CHECK_EQ_UINT(field_number(&got.fields, "size"), 201);
    CHECK_EQ_MEM(field_named(&got.fields, "daddr")->v.raw, bytes + 8, 4);
    CHECK_EQ_UINT(field_number(&got.fields, "dport"), 138);
    CHECK_EQ_UINT(field_number(&got.fields, "sport"), 445);
    CHECK_EQ_UINT(field_number(&got.fields, "connid"), 9);
    ew_fields_done(&got.fields);
    payload.size -= 4; /* the connection has four bytes only */
    got = decode(&payload, 8, 11, 2);
    CHECK_EQ_INT(got.result, 1);
    CHECK_EQ_UINT(field_number(&got.fields, "connid"), 9);
    ew_fields_done(&got.fields);
}

TEST(a_stack_is_a_list_of_addresses)
{
    static struct payload payload = {.pointer_size = 8};
    payload.size = 0;
    put(&payload, 123456, 8);
    put(&payload, 7, 4);
    put(&payload, 8, 4);
    for (uint64_t i = 0; i < 5; i++)
        put(&payload, 0xfffff80000000000u + i, 8);
    struct decoded got = decode(&payload, 24, 32, 2);
    CHECK_EQ_INT(got.result, 1);
    CHECK_EQ_UINT(got.fields.count, 3 + 1 + 5 + 1);
    const struct ew_field *stack = field_named(&got.fields, "Stack");
    CHECK_EQ_INT(stack->type, EW_FIELD_ARRAY);
    CHECK_EQ_INT(stack[5].type, EW_FIELD_HEX);
    CHECK_EQ_UINT(stack[5].v.u, 0xfffff80000000004u);
    CHECK_EQ_INT(stack[6].type, EW_FIELD_CLOSE);
    ew_fields_done(&got.fields);
}

/* A count that the payload has no room for. */
TEST(a_lying_count_ends_at_the_payload)
{
    static struct payload payload = {.pointer_size = 8};
    payload.size = 0;
    put(&payload, 0xffffffff, 4);
    for (unsigned n = 0; n < 3; n++) {
        put(&payload, 40 + n, 4);
        for (unsigned i = 0; i < 4; i++)
            put(&payload, i, 8);
    }
    struct decoded got = decode(&payload, 2, 125, 0);
    CHECK_EQ_INT(got.result, -1);
    CHECK_EQ_UINT(got.fields.open, 0);
    CHECK_EQ_UINT(field_number(&got.fields, "Count"), 0xffffffff);
    CHECK_EQ_UINT(field_number(&got.fields, "ProcessId"), 40);
    ew_fields_done(&got.fields);
}

TEST(the_header_of_a_recording)
{
    static struct payload payload;
    for (uint8_t pointer_size = 4; pointer_size <= 8; pointer_size += 4) {
        payload.size = 0;
        payload.pointer_size = pointer_size;
        put(&payload, 65536, 4);
        put(&payload, 0x05010106, 4);
        put(&payload, 7601, 4);
        put(&payload, 8, 4);
        put(&payload, 130371671034768955u, 8);
        for (unsigned i = 0; i < 8; i++)
            put(&payload, 100 + i, 4);
        put_pointer(&payload, 5);
        put_pointer(&payload, 6);
        uint32_t zone = payload.size;
        memset(payload.bytes + zone, 0, 176);
        payload.bytes[zone] = 0xc4; /* -60 */
        memset(payload.bytes + zone + 1, 0xff, 3);
        payload.bytes[zone + 4] = 'S';
        payload.bytes[zone + 68 + 2] = 11; /* of the standard time's month */
        payload.size += 176;
        put(&payload, 130371020571099993u, 8);
        put(&payload, 10000000, 8);
        put(&payload, 130371670762939437u, 8);
        put(&payload, 1, 4);
        put(&payload, 2, 4);
        put_wide(&payload, "Relogger");
        put_wide(&payload, "[multiple files]");
        CHECK_EQ_UINT(payload.size, (pointer_size == 8 ? 280 : 272) + 52);
        struct decoded got = decode(&payload, 0, 0, 2);
        CHECK_EQ_INT(got.result, 1);
        CHECK_EQ_UINT(field_number(&got.fields, "EndTime"), 130371671034768955u);
        CHECK_EQ_UINT(field_number(&got.fields, "CPUSpeed"), 107);
        CHECK_EQ_INT(field_number(&got.fields, "Bias"), -60);
        check_text(&got.fields, "StandardName", "S");
        CHECK_EQ_UINT(field_number(&got.fields, "Month"), 11);
        CHECK_EQ_UINT(field_number(&got.fields, "PerfFreq"), 10000000);
        CHECK_EQ_UINT(field_number(&got.fields, "BuffersLost"), 2);
        check_text(&got.fields, "LogFileNameString", "[multiple files]");
        ew_fields_done(&got.fields);
        payload.size = zone + 90; /* within the inner struct */
        got = decode(&payload, 0, 0, 2);
        CHECK_EQ_INT(got.result, -1);
        CHECK_EQ_UINT(got.fields.open, 0);
        ew_fields_done(&got.fields);
    }
}

/* ----------------------------------------------------------------------- classes */

static const uint8_t image_guid[16] = {0x1d, 0x5d, 0xb1, 0x2c, 0xc1, 0x5f, 0xd2, 0x11,
                                       0xab, 0xe1, 0x00, 0xa0, 0xc9, 0x11, 0xf5, 0x18};
static const uint8_t control_guid[16] = {0x91, 0xee, 0x79, 0x9b, 0xfd, 0xb5, 0xc0, 0x41,
                                         0xa2, 0x43, 0x42, 0x48, 0xe2, 0x66, 0xe9, 0xd0};

/* A 32-bit program replayed what a 64-bit system had written. */
TEST(pointers_wider_than_the_header_says)
{
    static struct payload payload;
    for (uint8_t version = 0; version <= 3; version++)
        for (uint8_t pointer_size = 4; pointer_size <= 8; pointer_size += 4) {
            payload.size = 0;
            payload.pointer_size = pointer_size;
            put_pointer(&payload, 0x1160000);
            if (version == 0)
                put(&payload, 0x19e000, 4);
            else
                put_pointer(&payload, 0x19e000);
            if (version >= 1)
                put(&payload, 7644, 4);
            if (version >= 2) {
                put(&payload, 0x4ba26867, 4);
                put(&payload, 0xcafebabe, 4);
                put(&payload, 0, 4);
                put_pointer(&payload, 0);
                put(&payload, 0, 8);
                put(&payload, 0, 8);
            }
            put_wide(&payload, "C:\\code\\test.dll");
            struct ew_record record = kernel_record(&payload, 0, 3, version);
            record.kind = EW_RECORD_CLASSIC;
            record.provider = image_guid;
            record.pointer_size = 4;
            struct ew_fields fields;
            ew_fields_init(&fields);
            CHECK_EQ_INT(ew_kernel_fields(&record, &fields), 1);
            check_text(&fields, version ? "FileName" : "ImageFileName", "C:\\code\\test.dll");
            CHECK_EQ_UINT(field_number(&fields, version ? "ImageBase" : "BaseAddress"), 0x1160000);
            ew_fields_done(&fields);
        }
}

static void check_names(const struct ew_record *record, const char *provider, const char *event)
{
    char scratch[EW_KERNEL_NAME_SIZE];
    const char *got_provider, *got_event;
    test_row(event);
    CHECK(ew_kernel_names(record, scratch, &got_provider, &got_event));
    CHECK_EQ_STR(got_provider, provider);
    CHECK_EQ_STR(got_event, event);
}

TEST(names_are_those_of_perfview)
{
    static const struct {
        uint8_t group, opcode, version;
        const char *provider, *event;
    } rows[] = {
        {0, 0, 2, "Windows Kernel", "EventTrace"},
        {0, 5, 2, "Windows Kernel", "EventTrace/Extension"},
        {0, 8, 2, "Windows Kernel", "EventTrace/RundownComplete"},
        {1, 10, 3, "Windows Kernel", "DiskIO/Read"},
        {1, 14, 3, "Windows Kernel", "DiskIO/FlushBuffers"},
        {2, 10, 2, "Windows Kernel", "Memory/TransitionFault"},
        {2, 32, 2, "Windows Kernel", "Memory/HardFault"},
        {2, 98, 2, "Windows Kernel", "VirtualMem/Alloc"},
        {3, 1, 4, "Windows Kernel", "Process/Start"},
        {3, 2, 4, "Windows Kernel", "Process/Stop"},
        {3, 4, 9, "Windows Kernel", "Process/DCStop"},
        {3, 10, 2, "Windows Kernel", "Image/Load"},
        {4, 36, 2, "Windows Kernel", "FileIO/FileRundown"},
        {5, 36, 4, "Windows Kernel", "Thread/CSwitch"},
        {5, 50, 2, "Windows Kernel", "Dispatcher/ReadyThread"},
        {6, 26, 2, "Windows Kernel", "TcpIp/SendIPV6"},
        {8, 11, 2, "Windows Kernel", "UdpIp/Recv"},
        {11, 22, 4, "Windows Kernel", "SystemConfig/PnP"},
        {11, 25, 2, "MSNT_SystemTrace", "SystemConfig/Platform"},
        {15, 46, 2, "Windows Kernel", "PerfInfo/Sample"},
        {20, 3, 2, "Windows Kernel", "Image/DCStart"},
        {20, 33, 2, "MSNT_SystemTrace", "Image/KernelBase"},
        {24, 37, 2, "Windows Kernel", "StackWalk/StackKeyKernel"},
        {5, 123, 2, "Windows Kernel", "Thread/Opcode(123)"},
        {18, 50, 2, "Windows Kernel", "Power/Opcode(50)"},
        {77, 255, 2, "Windows Kernel", "Group(77)/Opcode(255)"},
    };
    static struct payload payload = {.pointer_size = 8};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ew_record record =
            kernel_record(&payload, rows[i].group, rows[i].opcode, rows[i].version);
        check_names(&record, rows[i].provider, rows[i].event);
    }
}

TEST(classes_by_their_guid)
{
    static struct payload payload = {.pointer_size = 8};
    struct ew_record record = kernel_record(&payload, 0, 35, 0);
    char scratch[EW_KERNEL_NAME_SIZE];
    const char *provider, *event;
    record.kind = EW_RECORD_CLASSIC;
    record.provider = control_guid;
    check_names(&record, "Windows Kernel", "SysConfig/VolumeMapping");
    record.opcode = 37;
    check_names(&record, "Windows Kernel", "SysConfig/Opcode(37)");
    record.provider = image_guid;
    record.opcode = 10;
    check_names(&record, "Windows Kernel", "Image/Load");
    static const uint8_t unknown[16] = {0x1d, 0x5d};
    record.provider = unknown;
    CHECK(!ew_kernel_names(&record, scratch, &provider, &event));
    struct ew_fields fields;
    ew_fields_init(&fields);
    CHECK_EQ_INT(ew_kernel_fields(&record, &fields), 0);
    record.kind = EW_RECORD_MANIFEST;
    record.provider = image_guid;
    CHECK(!ew_kernel_names(&record, scratch, &provider, &event));
    CHECK_EQ_INT(ew_kernel_fields(&record, &fields), 0);
    CHECK_EQ_UINT(fields.count, 0);
    ew_fields_done(&fields);
}

TEST(volumes_of_a_merged_recording)
{
    static struct payload payload = {.pointer_size = 8};
    payload.size = 0;
    put_wide(&payload, "\\Device\\HarddiskVolume2\\");
    put_wide(&payload, "C:\\");
    struct ew_record record = kernel_record(&payload, 0, 35, 0);
    record.kind = EW_RECORD_CLASSIC;
    record.provider = control_guid;
    struct ew_fields fields;
    ew_fields_init(&fields);
    CHECK_EQ_INT(ew_kernel_fields(&record, &fields), 1);
    check_text(&fields, "NtPath", "\\Device\\HarddiskVolume2\\");
    check_text(&fields, "DosPath", "C:\\");
    ew_fields_done(&fields);
}
