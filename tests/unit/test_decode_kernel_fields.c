/* SPDX-License-Identifier: MIT */
/*
 * Names and fields of the kernel's classes. The most important layouts are written out here again,
 * byte by byte, so that the tables are not tested against themselves.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "decode/kernel.h"
#include "decode/kernel_table.h"
#include "kernel_payload.h"

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

/* Some writers clear the pointer before the SID. */
TEST(a_sid_after_a_cleared_token_is_found)
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

TEST(the_last_string_may_lack_its_terminator)
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

/* catapult's test vectors of a context switch, decoded by hand. */
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

TEST(a_sample_has_the_address_that_the_cpu_executed)
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
    payload.size -= 4; /* the connection ID has only four bytes */
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

/* A count larger than the payload allows. */
TEST(a_count_that_is_too_large_ends_at_the_payload)
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
        payload.bytes[zone + 68 + 2] = 11; /* the month of standard time */
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
        payload.size = zone + 90; /* inside the inner struct */
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

/* A 32-bit program rewrote a recording of a 64-bit system. */
TEST(pointers_wider_than_the_header_declares_are_decoded)
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
    struct ew_kernel_name got;
    test_row(event);
    CHECK(ew_kernel_names(record, scratch, &got));
    CHECK_EQ_STR(got.provider, provider);
    CHECK_EQ_STR(got.event, event);
}

TEST(rows_of_an_opcode_are_adjacent)
{
    static const struct ew_kernel_class *const all[] = {
        &ew_kernel_process,      &ew_kernel_thread,     &ew_kernel_image,    &ew_kernel_stackwalk,
        &ew_kernel_perfinfo,     &ew_kernel_memory,     &ew_kernel_diskio,   &ew_kernel_fileio,
        &ew_kernel_registry,     &ew_kernel_splitio,    &ew_kernel_tcpip,    &ew_kernel_udpip,
        &ew_kernel_systemconfig, &ew_kernel_eventtrace, &ew_kernel_pool,     &ew_kernel_heap,
        &ew_kernel_object,       &ew_kernel_alpc,       &ew_kernel_lost,     &ew_kernel_imageid,
        &ew_kernel_sysconfig,    &ew_kernel_winsat,     &ew_kernel_metadata,
    };
    for (size_t c = 0; c < sizeof all / sizeof *all; c++) {
        bool seen[256] = {false};
        test_row(all[c]->name);
        CHECK(all[c]->event_count > 0);
        for (size_t i = 0; i < all[c]->event_count; i++) {
            uint8_t opcode = all[c]->events[i].opcode;
            CHECK((i > 0 && all[c]->events[i - 1].opcode == opcode) || !seen[opcode]);
            seen[opcode] = true;
        }
    }
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
        {7, 32, 2, "Windows Kernel", "Job/Opcode(32)"},
        {12, 1, 2, "Windows Kernel", "Group(12)/Opcode(1)"},
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
    struct ew_kernel_name name;
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
    CHECK(!ew_kernel_names(&record, scratch, &name));
    struct ew_fields fields;
    ew_fields_init(&fields);
    CHECK_EQ_INT(ew_kernel_fields(&record, &fields), 0);
    record.kind = EW_RECORD_MANIFEST;
    record.provider = image_guid;
    CHECK(!ew_kernel_names(&record, scratch, &name));
    CHECK_EQ_INT(ew_kernel_fields(&record, &fields), 0);
    CHECK_EQ_UINT(fields.count, 0);
    ew_fields_done(&fields);
}

/* Bytes that fit neither pointer size are read as the header declares. */
TEST(pointers_of_a_damaged_image_are_as_the_header_declares)
{
    static struct payload payload = {.pointer_size = 4};
    struct ew_fields fields;
    fill(&payload, 61, 3);
    struct ew_record record = kernel_record(&payload, 0, 3, 2);
    record.kind = EW_RECORD_CLASSIC;
    record.provider = image_guid;
    ew_fields_init(&fields);
    CHECK_EQ_INT(ew_kernel_fields(&record, &fields), 1);
    CHECK_EQ_UINT(field_number(&fields, "ImageBase"), ew_load_u32(payload.bytes));
    ew_fields_clear(&fields);
    record.payload_size = 3;
    CHECK_EQ_INT(ew_kernel_fields(&record, &fields), -1);
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
