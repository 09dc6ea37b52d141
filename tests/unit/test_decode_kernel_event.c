/* SPDX-License-Identifier: MIT */
/*
 * The events that accounting uses. The typed decoders read fixed offsets, the tables name the
 * fields: two ways to read the same bytes, which must agree for every version and both pointer
 * sizes.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"
#include "decode/kernel.h"
#include "kernel_payload.h"

/* ------------------------------------------------------- typed and named agree */

struct both {
    struct ew_event event;
    struct ew_fields fields;
    bool typed;
    int named;
};

static struct both decode_both(const struct ew_record *record)
{
    struct both both;
    memset(&both.event, 0xa5, sizeof both.event);
    ew_fields_init(&both.fields);
    both.typed = ew_decode_event(record, &both.event);
    both.named = ew_kernel_fields(record, &both.fields);
    return both;
}

#define AGREE(member, name) CHECK_EQ_UINT((uint64_t)(member), field_number(&both->fields, name))

static void agree_switch(const struct both *both, uint8_t version)
{
    const struct ew_event *event = &both->event;
    AGREE(event->tid, "OldThreadId");
    AGREE(event->u.cswitch.new_tid, "NewThreadId");
    AGREE((int64_t)event->u.cswitch.new_priority, "NewThreadPriority");
    AGREE((int64_t)event->u.cswitch.old_priority, "OldThreadPriority");
    CHECK_EQ_UINT(event->u.cswitch.old_state,
                  (uint8_t)field_number(&both->fields, "OldThreadState"));
    CHECK_EQ_UINT(event->u.cswitch.old_wait_reason,
                  (uint8_t)field_number(&both->fields, "OldThreadWaitReason"));
    CHECK_EQ_UINT(event->u.cswitch.old_wait_mode,
                  field_number(&both->fields, "OldThreadWaitMode") & 1);
    CHECK_EQ_UINT(event->u.cswitch.new_wait_ticks,
                  version >= 2 ? field_number(&both->fields, "NewThreadWaitTime") : 0);
}

static void agree_thread(const struct both *both, uint8_t version)
{
    const struct ew_event *event = &both->event;
    AGREE(event->pid, "ProcessId");
    AGREE(event->tid, "TThreadId");
    if (version >= 1)
        AGREE(event->u.thread.start_address, "Win32StartAddr");
    CHECK_EQ_INT(event->u.thread.has_priority, version >= 3);
    CHECK_EQ_INT(event->u.thread.has_affinity, version >= 3);
    if (version >= 3) {
        AGREE(event->u.thread.affinity, "Affinity");
        CHECK_EQ_UINT((uint8_t)event->u.thread.base_priority,
                      field_number(&both->fields, "BasePriority"));
        CHECK_EQ_INT(event->u.thread.name.len != 0,
                     field_named(&both->fields, "ThreadName") &&
                         field_named(&both->fields, "ThreadName")->len);
    }
}

static void agree_disk(const struct both *both, uint8_t version)
{
    const struct ew_event *event = &both->event;
    AGREE(event->u.io.disk, "DiskNumber");
    AGREE(event->u.io.bytes, "TransferSize");
    AGREE(event->u.io.offset, "ByteOffset");
    AGREE(event->u.io.file_object, "FileObject");
    if (version >= 1)
        AGREE(event->u.io.response_raw, "HighResResponseTime");
    if (version >= 2)
        AGREE(event->u.io.irp, "Irp");
    if (version >= 3)
        AGREE(event->tid, "IssuingThreadId");
    else
        CHECK_EQ_UINT(event->tid, version == 2 ? EW_NO_ID : 12);
}

static void agree_file(const struct both *both, uint8_t version)
{
    const struct ew_event *event = &both->event;
    (void)version;
    CHECK_EQ_UINT(event->tid, (uint32_t)field_number(&both->fields, "TTID"));
    AGREE(event->u.io.irp, "IrpPtr");
    AGREE(event->u.io.offset, "Offset");
    AGREE(event->u.io.file_object, "FileObject");
    AGREE(event->u.io.bytes, "IoSize");
}

static void agree_image(const struct both *both, uint8_t version)
{
    const struct ew_event *event = &both->event;
    AGREE(event->u.image.base, version ? "ImageBase" : "BaseAddress");
    AGREE(event->u.image.bytes, version ? "ImageSize" : "ModuleSize");
    if (version >= 1)
        AGREE(event->pid, "ProcessId");
    else
        CHECK_EQ_UINT(event->pid, 11);
    if (version >= 2) {
        AGREE(event->u.image.checksum, "ImageChecksum");
        AGREE(event->u.image.timestamp, "TimeDateStamp");
    }
}

static void agree_net(const struct both *both, uint8_t version)
{
    (void)version;
    AGREE(both->event.u.net.bytes, "size");
    if (field_named(&both->fields, "PID"))
        AGREE(both->event.pid, "PID");
    else
        CHECK_EQ_UINT(both->event.pid, 11);
}

static void agree_sample(const struct both *both, uint8_t version)
{
    AGREE(both->event.u.sample.ip, "InstructionPointer");
    AGREE(both->event.tid, "ThreadId");
    AGREE(both->event.u.sample.count, "Count");
    if (version < 2)
        return;
    AGREE(both->event.u.sample.in_dpc, "ExecutingDPC");
    AGREE(both->event.u.sample.in_isr, "ExecutingISR");
}

static void agree_interrupt(const struct both *both, uint8_t version)
{
    (void)version;
    AGREE(both->event.u.interrupt.began_raw, "InitialTime");
    AGREE(both->event.u.interrupt.routine, "Routine");
}

static void agree_interval(const struct both *both, uint8_t version)
{
    (void)version;
    AGREE(both->event.u.interval.interval_100ns, "NewInterval");
    AGREE(both->event.u.interval.profile_source, "Source");
}

static void agree_fault(const struct both *both, uint8_t version)
{
    (void)version;
    AGREE(both->event.u.fault.address, "VirtualAddress");
    AGREE(both->event.u.fault.program_counter, "ProgramCounter");
}

static void agree_hard_fault(const struct both *both, uint8_t version)
{
    (void)version;
    AGREE(both->event.u.fault.address, "VirtualAddress");
    AGREE(both->event.u.fault.began_raw, "InitialTime");
    AGREE(both->event.u.fault.bytes, "ByteCount");
    AGREE(both->event.tid, "TThreadId");
}

static void agree_alloc(const struct both *both, uint8_t version)
{
    (void)version;
    AGREE(both->event.u.alloc.base, "BaseAddress");
    AGREE(both->event.u.alloc.bytes, "RegionSize");
    AGREE(both->event.u.alloc.flags, "Flags");
    AGREE(both->event.pid, "ProcessId");
}

static void agree_counters(const struct both *both, uint8_t version)
{
    (void)version;
    AGREE(both->event.pid, "ProcessId");
    AGREE(both->event.u.counters.fault_count, "PageFaultCount");
    AGREE(both->event.u.counters.handle_count, "HandleCount");
    AGREE(both->event.u.counters.peak_virtual_bytes, "PeakVirtualSize");
    AGREE(both->event.u.counters.peak_working_set_bytes, "PeakWorkingSetSize");
    AGREE(both->event.u.counters.virtual_bytes, "VirtualSize");
    AGREE(both->event.u.counters.working_set_bytes, "WorkingSetSize");
    AGREE(both->event.u.counters.pagefile_bytes, "PagefileUsage");
    AGREE(both->event.u.counters.pool_paged_bytes, "QuotaPagedPoolUsage");
    AGREE(both->event.u.counters.pool_nonpaged_bytes, "QuotaNonPagedPoolUsage");
    AGREE(both->event.u.counters.private_bytes, "PrivatePageCount");
}

static void agree_ready(const struct both *both, uint8_t version)
{
    (void)version;
    AGREE(both->event.tid, "TThreadId");
    CHECK_EQ_UINT(both->event.u.ready.reason, (uint8_t)field_number(&both->fields, "AdjustReason"));
    AGREE(both->event.u.ready.flags, "Flag");
}

static void agree_flush(const struct both *both, uint8_t version)
{
    AGREE(both->event.u.io.irp, "Irp");
    AGREE(both->event.u.io.disk, "DiskNumber");
    AGREE(both->event.u.io.response_raw, "HighResResponseTime");
    if (version >= 3)
        AGREE(both->event.tid, "IssuingThreadId");
}

static void agree_init(const struct both *both, uint8_t version)
{
    AGREE(both->event.u.io.irp, "Irp");
    if (version >= 3)
        AGREE(both->event.tid, "IssuingThreadId");
    else
        CHECK_EQ_UINT(both->event.tid, 12);
}

static const struct {
    uint8_t group, opcode, first_version, last_version;
    uint8_t kind;
    void (*agree)(const struct both *both, uint8_t version);
    const char *remark;
} agreed[] = {
    {5, 36, 1, 5, EW_EVENT_SWITCH, agree_switch, "switch"},
    {5, 50, 2, 2, EW_EVENT_READY, agree_ready, "ready"},
    {5, 1, 0, 4, EW_EVENT_THREAD_START, agree_thread, "thread start"},
    {5, 2, 0, 4, EW_EVENT_THREAD_END, agree_thread, "thread end"},
    {5, 3, 0, 4, EW_EVENT_THREAD_THERE, agree_thread, "thread there"},
    {5, 4, 0, 4, EW_EVENT_THREAD_STILL, agree_thread, "thread still"},
    {15, 46, 1, 2, EW_EVENT_SAMPLE, agree_sample, "sample"},
    {15, 68, 2, 2, EW_EVENT_INTERRUPT, agree_interrupt, "DPC"},
    {15, 69, 2, 2, EW_EVENT_INTERRUPT, agree_interrupt, "timer DPC"},
    {15, 67, 1, 2, EW_EVENT_INTERRUPT, agree_interrupt, "ISR"},
    {15, 50, 2, 2, EW_EVENT_INTERRUPT, agree_interrupt, "MSI"},
    {15, 72, 2, 3, EW_EVENT_SAMPLE_INTERVAL, agree_interval, "interval"},
    {15, 73, 2, 3, EW_EVENT_SAMPLE_INTERVAL, agree_interval, "interval at the start"},
    {2, 10, 2, 2, EW_EVENT_FAULT, agree_fault, "transition fault"},
    {2, 14, 2, 2, EW_EVENT_FAULT, agree_fault, "hard fault as it begins"},
    {2, 32, 2, 2, EW_EVENT_HARD_FAULT, agree_hard_fault, "hard fault"},
    {2, 98, 2, 2, EW_EVENT_VIRTUAL_ALLOC, agree_alloc, "alloc"},
    {2, 99, 2, 2, EW_EVENT_VIRTUAL_FREE, agree_alloc, "free"},
    {1, 10, 0, 4, EW_EVENT_DISK_READ, agree_disk, "disk read"},
    {1, 11, 0, 4, EW_EVENT_DISK_WRITE, agree_disk, "disk write"},
    {1, 55, 3, 3, EW_EVENT_DISK_READ, agree_disk, "optical read"},
    {1, 12, 2, 3, EW_EVENT_DISK_INIT, agree_init, "disk begin"},
    {1, 14, 2, 3, EW_EVENT_DISK_FLUSH, agree_flush, "disk flush"},
    {4, 67, 2, 3, EW_EVENT_FILE_READ, agree_file, "file read"},
    {4, 68, 2, 3, EW_EVENT_FILE_WRITE, agree_file, "file write"},
    {6, 10, 0, 2, EW_EVENT_NET_SEND, agree_net, "TCP send"},
    {6, 11, 0, 2, EW_EVENT_NET_RECEIVE, agree_net, "TCP receive"},
    {6, 26, 2, 2, EW_EVENT_NET_SEND, agree_net, "TCP 6 send"},
    {6, 27, 2, 2, EW_EVENT_NET_RECEIVE, agree_net, "TCP 6 receive"},
    {8, 10, 0, 2, EW_EVENT_NET_SEND, agree_net, "UDP send"},
    {8, 27, 2, 2, EW_EVENT_NET_RECEIVE, agree_net, "UDP 6 receive"},
    {20, 2, 0, 3, EW_EVENT_IMAGE_UNLOAD, agree_image, "image unload"},
    {20, 3, 0, 3, EW_EVENT_IMAGE_THERE, agree_image, "image there"},
    {20, 4, 0, 3, EW_EVENT_IMAGE_STILL, agree_image, "image still"},
    {3, 10, 0, 3, EW_EVENT_IMAGE_LOAD, agree_image, "image load, in the group of processes"},
    {3, 32, 2, 2, EW_EVENT_PROCESS_COUNTERS, agree_counters, "counters"},
    {3, 33, 2, 2, EW_EVENT_PROCESS_COUNTERS, agree_counters, "counters at the end"},
};

static void check_agreement(size_t row, uint8_t version, uint8_t pointer_size)
{
    static struct payload payload;
    payload.pointer_size = pointer_size;
    fill(&payload, 240, (uint32_t)(row * 7 + version));
    struct ew_record record =
        kernel_record(&payload, agreed[row].group, agreed[row].opcode, version);
    struct both both = decode_both(&record);
    test_row(agreed[row].remark);
    CHECK(both.typed);
    CHECK_EQ_INT(both.named, 1);
    CHECK_EQ_INT(both.event.kind, agreed[row].kind);
    CHECK_EQ_UINT(both.event.t_ns, 1000);
    CHECK_EQ_UINT(both.event.cpu, 3);
    CHECK_EQ_UINT(both.event.version, version);
    CHECK(!both.event.from_manifest);
    agreed[row].agree(&both, version);
    ew_fields_done(&both.fields);
    /* If a payload is too short for one decoder it is too short for the other, except for strings
     * and fields that only the tables name. */
    for (uint32_t size = 0; size < 240; size++) {
        uint8_t *bytes = malloc(size ? size : 1);
        CHECK(bytes != NULL);
        memcpy(bytes, payload.bytes, size);
        record.payload = bytes;
        record.payload_size = size;
        both = decode_both(&record);
        free(bytes);
        test_row(agreed[row].remark);
        CHECK(both.typed || both.named == -1);
        ew_fields_done(&both.fields);
    }
}

TEST(typed_and_named_agree_for_every_version_and_pointer_size)
{
    for (size_t row = 0; row < sizeof agreed / sizeof *agreed; row++)
        for (uint8_t version = agreed[row].first_version; version <= agreed[row].last_version;
             version++)
            for (uint8_t pointer_size = 4; pointer_size <= 8; pointer_size += 4)
                check_agreement(row, version, pointer_size);
}

/* ------------------------------------------------------------------- processes */

static void write_process(struct payload *payload, uint8_t version)
{
    payload->size = 0;
    if (version == 0) {
        put_pointer(payload, 3676);
        put_pointer(payload, 3508);
    } else {
        put_pointer(payload, 0xffffb480);
        put(payload, 3676, 4);
        put(payload, 3508, 4);
        put(payload, 1, 4);
        put(payload, 259, 4);
    }
    if (version >= 3)
        put_pointer(payload, 0x187000);
    if (version >= 4)
        put(payload, 2, 4);
    put_sid(payload);
    put_ansi(payload, "test.exe");
    if (version >= 2)
        put_wide(payload, "test.exe --all");
    if (version >= 4) {
        put_wide(payload, "package");
        put_wide(payload, "app");
    }
    if (version >= 5)
        put(payload, 132000000000000000u, 8);
}

static void check_process(const struct ew_event *event, uint8_t version)
{
    CHECK_EQ_UINT(event->pid, 3676);
    CHECK_EQ_UINT(event->tid, EW_NO_ID);
    CHECK_EQ_UINT(event->u.process.parent_pid, 3508);
    CHECK_EQ_UINT(event->u.process.session_id, version ? 1 : EW_NO_ID);
    CHECK_EQ_INT(event->u.process.exit_status, version ? 259 : 0);
    CHECK_EQ_UINT(event->u.process.key, version ? 0xffffb480 : 0);
    CHECK_EQ_UINT(event->u.process.flags, version >= 4 ? 2 : 0);
    CHECK_EQ_UINT(event->u.process.image.len, 8);
    CHECK(!event->u.process.image.wide);
    CHECK_EQ_MEM(event->u.process.image.bytes, "test.exe", 8);
    CHECK_EQ_UINT(event->u.process.command_line.len, version >= 2 ? 28 : 0);
    CHECK_EQ_UINT(event->u.process.exit_filetime,
                  version >= 5 && event->kind == EW_EVENT_PROCESS_DEFUNCT ? 132000000000000000u
                                                                          : 0);
}

TEST(processes_of_every_version_and_pointer_size)
{
    static const uint8_t opcodes[] = {1, 2, 3, 4, 39};
    static const uint8_t kinds[] = {EW_EVENT_PROCESS_START, EW_EVENT_PROCESS_END,
                                    EW_EVENT_PROCESS_THERE, EW_EVENT_PROCESS_STILL,
                                    EW_EVENT_PROCESS_DEFUNCT};
    static struct payload payload;
    for (uint8_t version = 0; version <= 6; version++)
        for (uint8_t pointer_size = 4; pointer_size <= 8; pointer_size += 4)
            for (unsigned i = 0; i < sizeof opcodes; i++) {
                struct ew_event event;
                payload.pointer_size = pointer_size;
                write_process(&payload, version);
                struct ew_record record = kernel_record(&payload, 3, opcodes[i], version);
                CHECK(ew_decode_event(&record, &event));
                CHECK_EQ_INT(event.kind, kinds[i]);
                check_process(&event, version);
                record.payload_size = pointer_size + 6u;
                CHECK(!ew_decode_event(&record, &event));
            }
}

static const uint8_t process_class_guid[16] = {0xd0, 0xa8, 0x6f, 0x3d, 0x05, 0xfe, 0xd0, 0x11,
                                               0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c};

TEST(a_class_by_its_guid_is_the_same_class)
{
    static struct payload payload;
    for (uint8_t version = 0; version <= 4; version++)
        for (uint8_t pointer_size = 4; pointer_size <= 8; pointer_size += 4) {
            struct ew_event event;
            payload.pointer_size = pointer_size;
            write_process(&payload, version);
            struct ew_record record = kernel_record(&payload, 0, 1, version);
            record.kind = EW_RECORD_CLASSIC;
            record.provider = process_class_guid;
            CHECK(ew_decode_event(&record, &event));
            CHECK_EQ_INT(event.kind, EW_EVENT_PROCESS_START);
            check_process(&event, version);
            if (version == 0)
                continue; /* without a 32-bit field the two sizes are indistinguishable */
            record.pointer_size = 4; /* as a 32-bit program rewrites it */
            CHECK(ew_decode_event(&record, &event));
            check_process(&event, version);
        }
}

TEST(lost_events_are_reported)
{
    static const uint8_t lost_guid[16] = {0xe0, 0x9a, 0x39, 0x6a, 0xc6, 0x4b, 0xe9, 0x4d,
                                          0x87, 0x0b, 0x36, 0x57, 0xf8, 0x94, 0x7e, 0x7e};
    static struct payload payload = {.pointer_size = 8};
    struct ew_event event;
    struct ew_record record = kernel_record(&payload, 0, 33, 0);
    record.kind = EW_RECORD_CLASSIC;
    record.provider = lost_guid;
    CHECK(ew_decode_event(&record, &event));
    CHECK_EQ_INT(event.kind, EW_EVENT_LOST);
    CHECK_EQ_UINT(event.u.lost.what, 33);
}

TEST(a_name_given_to_a_thread)
{
    static struct payload payload = {.pointer_size = 8};
    struct ew_event event;
    payload.size = 0;
    put(&payload, 5, 4);
    put(&payload, 6, 4);
    put_wide(&payload, "io");
    struct ew_record record = kernel_record(&payload, 5, 72, 2);
    CHECK(ew_decode_event(&record, &event));
    CHECK_EQ_INT(event.kind, EW_EVENT_THREAD_NAME);
    CHECK_EQ_UINT(event.pid, 5);
    CHECK_EQ_UINT(event.tid, 6);
    CHECK_EQ_UINT(event.u.thread.name.len, 4);
    CHECK(event.u.thread.name.wide);
}

/* The header's process is used only if the header refers to the same thread. */
TEST(a_thread_in_the_payload_does_not_take_another_threads_process)
{
    static struct payload payload = {.pointer_size = 8};
    struct ew_event event;
    payload.size = 0;
    put(&payload, 0, 24);
    payload.size = 32;
    put(&payload, 12, 4);
    put(&payload, 4096, 4);
    struct ew_record record = kernel_record(&payload, 2, 32, 2);
    CHECK(ew_decode_event(&record, &event));
    CHECK_EQ_UINT(event.pid, 11);
    record.tid = 13;
    CHECK(ew_decode_event(&record, &event));
    CHECK_EQ_UINT(event.tid, 12);
    CHECK_EQ_UINT(event.pid, EW_NO_ID);
}

TEST(events_without_accounting_are_other)
{
    static const uint8_t others[][2] = {{15, 66}, {15, 70}, {15, 95}, {15, 51}, {3, 11},  {5, 37},
                                        {4, 36},  {9, 10},  {24, 32}, {2, 128}, {11, 10}, {0, 0},
                                        {20, 33}, {99, 1},  {6, 12},  {1, 34}};
    static struct payload payload = {.pointer_size = 8};
    payload.size = 64;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct ew_event event;
        struct ew_record record = kernel_record(&payload, others[i][0], others[i][1], 2);
        CHECK(ew_decode_event(&record, &event));
        CHECK_EQ_INT(event.kind, EW_EVENT_OTHER);
    }
    struct ew_event event;
    struct ew_record record = kernel_record(&payload, 5, 36, 2);
    record.kind = EW_RECORD_MESSAGE;
    CHECK(ew_decode_event(&record, &event));
    CHECK_EQ_INT(event.kind, EW_EVENT_OTHER);
}

/* ----------------------------------------------------------------- working sets */

static void check_working_sets(uint8_t pointer_size, uint8_t version, unsigned counts)
{
    static struct payload payload;
    struct ew_event event;
    struct ew_working_set set;
    payload.size = 0;
    payload.pointer_size = pointer_size;
    put(&payload, 3, 4);
    for (uint32_t n = 0; n < 3; n++) {
        put(&payload, 100 + n, 4);
        for (uint32_t i = 0; i < counts; i++)
            put_pointer(&payload, 10 * n + i + 1);
    }
    struct ew_record record = kernel_record(&payload, 2, 125, version);
    CHECK(ew_decode_event(&record, &event));
    CHECK_EQ_INT(event.kind, EW_EVENT_WORKING_SETS);
    for (uint32_t n = 0; n < 3; n++) {
        CHECK(ew_decode_working_set(&record, n, &set));
        CHECK_EQ_UINT(set.pid, 100 + n);
        CHECK_EQ_UINT(set.working_set_bytes, 4096 * (10 * n + 1));
        CHECK_EQ_UINT(set.commit_bytes, 4096 * (10 * n + 2));
        CHECK_EQ_UINT(set.virtual_bytes, 4096 * (10 * n + 3));
        CHECK_EQ_UINT(set.private_working_set_bytes, 4096 * (10 * n + 4));
    }
    CHECK(!ew_decode_working_set(&record, 3, &set));
    record.payload_size--;
    if (version != 1) /* a truncated one is identified by its version alone */
        CHECK(!ew_decode_working_set(&record, 2, &set));
    memset(payload.bytes, 0xff, 4);
    CHECK(!ew_decode_working_set(&record, UINT32_MAX - 1, &set));
    record.payload_size = 3;
    CHECK(!ew_decode_working_set(&record, 0, &set));
    CHECK(!ew_decode_event(&record, &event));
}

TEST(working_sets_by_version_and_by_length)
{
    for (uint8_t pointer_size = 4; pointer_size <= 8; pointer_size += 4) {
        check_working_sets(pointer_size, 0, 4);
        check_working_sets(pointer_size, 2, 8);
        check_working_sets(pointer_size, 1, 8); /* the length identifies the layout */
    }
}
