/* SPDX-License-Identifier: MIT */
/* The tables of known providers: that each is well formed, and what some of them decode. */
#include "decode/decoder.h"
#include "decode/manifests.h"
#include "decode_kit.h"

#define KERNEL_PROCESS "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716"
#define KERNEL_FILE "edd08927-9cc4-4e65-b970-c2560fb5c289"
#define KERNEL_NETWORK "7dd42a49-5329-4832-8dfd-43d979153a88"
#define KERNEL_MEMORY "d1d93ef7-e1f2-4f45-9943-03d245fe6c00"
#define DOTNET "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4"
#define DXGKRNL "802ec45a-1e99-4b83-9920-87c98277ba9d"
#define DXGI "ca11c036-0102-4a2d-a6ad-f03cfed5d3c9"

TEST(every_table_compiles)
{
    struct ew_store store;
    unsigned events = 0;
    ew_store_init(&store);
    for (unsigned i = 0; ew_tables(i); i++) {
        const struct ew_table_provider *table = ew_tables(i);
        CHECK(i < EW_TABLE_PROVIDERS_MAX);
        for (const struct ew_table_event *e = table->events; e && e->name; e++) {
            char row[256];
            snprintf(row, sizeof row, "%s %u v%u %s", table->name, e->id, e->version, e->name);
            test_row(row);
            const struct ew_schema *schema = ew_manifest_table_compile(&store, table, e);
            CHECK(schema != NULL);
            CHECK_EQ_STR(schema->event, e->name);
            events++;
        }
    }
    CHECK(events > 300);
    CHECK_EQ_UINT(store.refused, 0);
    ew_store_done(&store);
}

TEST(tables_are_in_order_and_providers_differ)
{
    for (unsigned i = 0; ew_tables(i); i++) {
        const struct ew_table_provider *table = ew_tables(i);
        uint8_t guid[16], other[16];
        test_row(table->name);
        CHECK(ew_guid_parse(table->guid, strlen(table->guid), guid));
        for (unsigned k = 0; k < i; k++) {
            CHECK(ew_guid_parse(ew_tables(k)->guid, strlen(ew_tables(k)->guid), other));
            CHECK(memcmp(guid, other, 16) != 0);
        }
        for (const struct ew_table_event *e = table->events; e && e->name && e[1].name; e++)
            CHECK(e->id < e[1].id || (e->id == e[1].id && e->version < e[1].version));
    }
}

TEST(a_wrong_notation_is_refused)
{
    static const char *const rows[] = {"a",      ":u4",    "a:u5",   "a:u4[b]",  "a:u4[",
                                       "a:u4]",  "a{b:u4", "a:u4}",  "a:u4=Map", "a:w(b)",
                                       "a:u4[1", "a[2]",   "a:u4 ,", "a{b:u4}}"};
    static const struct ew_table_provider table = {.guid = KERNEL_PROCESS, .name = "x"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_table_event e = {1, 0, "x", rows[i]};
        struct ew_store store;
        test_row(rows[i]);
        ew_store_init(&store);
        CHECK(ew_manifest_table_compile(&store, &table, &e) == NULL);
        ew_store_done(&store);
    }
}

struct row {
    const char *guid;
    uint16_t id;
    uint8_t version, pointer_size;
    const char *payload;
    size_t size;
    const char *names, *fields;
};

static void check_rows(const struct row *rows, size_t count)
{
    struct ew_decoder *decoder;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    for (size_t i = 0; i < count; i++) {
        static struct made_record made;
        bool ok;
        test_row(rows[i].names);
        make_record(&made, rows[i].guid, rows[i].id, rows[i].version, rows[i].payload,
                    rows[i].size);
        made.record.pointer_size = rows[i].pointer_size;
        CHECK_EQ_STR(names(decoder, &made.record), rows[i].names);
        CHECK_EQ_STR(decode(decoder, &made.record, &ok), rows[i].fields);
        CHECK(ok);
    }
    ew_decoder_free(decoder);
}

#define BYTES(text) text, sizeof(text) - 1

TEST(events_of_the_kernel_manifests_are_decoded)
{
    static const struct row rows[] = {
        {KERNEL_PROCESS, 1, 0, 8,
         BYTES("\x07\0\0\0\x01\0\0\0\0\0\0\0\x04\0\0\0\x02\0\0\0"
               "a\0\0\0"),
         "Microsoft-Windows-Kernel-Process/ProcessStart/Start",
         "ProcessID=7 CreateTime=ft1 ParentProcessID=4 SessionID=2 ImageName='a'"},
        {KERNEL_PROCESS, 1, 3, 8,
         BYTES(
             "\x07\0\0\0\x09\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x04\0\0\0\x08\0\0\0\0\0\0\0\x02\0\0\0"
             "\x03\0\0\0\x01\0\0\0\x00\0\0\0"
             "\x01\x01\0\0\0\0\0\x10\0\x20\0\0"
             "a\0\0\0\x0A\0\0\0\x0B\0\0\0p\0\0\0\0\0"),
         "Microsoft-Windows-Kernel-Process/ProcessStart/Start",
         "ProcessID=7 ProcessSequenceNumber=9 CreateTime=ft1 ParentProcessID=4 "
         "ParentProcessSequenceNumber=8 SessionID=2 Flags=3 ProcessTokenElevationType=1 "
         "ProcessTokenIsElevated=0 MandatoryLabel=#010100000000001000200000 ImageName='a' "
         "ImageChecksum=10 TimeDateStamp=11 PackageFullName='p' PackageRelativeAppId=''"},
        {KERNEL_PROCESS, 8, 0, 8, BYTES("\x07\0\0\0\x08\0\0\0\x0A\x0B"),
         "Microsoft-Windows-Kernel-Process/CpuPriorityChange",
         "ProcessID=7 ThreadID=8 OldPriority=10 NewPriority=11"},
        {KERNEL_FILE, 15, 1, 4,
         BYTES(
             "\x00\x10\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x08\0\0\0\x00\x02\0\0\x01\0\0\0"),
         "Microsoft-Windows-Kernel-File/Read",
         "ByteOffset=4096 Irp=0x1 FileObject=0x2 FileKey=0x3 IssuingThreadId=8 IOSize=512 "
         "IOFlags=0x1"},
        {KERNEL_NETWORK, 11, 0, 8,
         BYTES("\x07\0\0\0\x64\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08\x00\x50\x01\xBB\x00\0\0\0"
               "\x01\0\0\0\0\0\0\0"),
         "Microsoft-Windows-Kernel-Network/KERNEL_NETWORK_TASK_TCPIP/Datareceived.",
         "PID=7 size=100 daddr=#01020304 saddr=#05060708 dport=80 sport=443 seqnum=0 connid=0x1"},
        {KERNEL_MEMORY, 1, 1, 4,
         BYTES(
             "\x01\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05\0\0\0\x06\0\0\0\x07\0\0\0\x08\0\0\0"
             "\x09\0\0\0\x0A\0\0\0\x0B\0\0\0\x0C\0\0\0"),
         "Microsoft-Windows-Kernel-Memory/MemInfo",
         "PriorityLevels=1 ZeroPageCount=1 FreePageCount=2 ModifiedPageCount=3 "
         "ModifiedNoWritePageCount=4 BadPageCount=5 StandbyPageCounts=[6] RepurposedPageCounts=[7] "
         "ModifiedPageCountPageFile=8 PagedPoolPageCount=9 NonPagedPoolPageCount=10 "
         "MdlPageCount=11 "
         "CommitPageCount=12"},
    };
    check_rows(rows, sizeof rows / sizeof rows[0]);
}

TEST(events_of_dotnet_and_graphics_are_decoded)
{
    static const struct row rows[] = {
        {DOTNET, 1, 2, 8, BYTES("\x01\0\0\0\x02\0\0\0\x01\0\0\0\x00\0\0\0\x08\0\x05\0\0\0\0\0\0\0"),
         "Microsoft-Windows-DotNETRuntime/GC/Start",
         "Count=1 Depth=2 Reason=1:Induced Type=0:NonConcurrentGC ClrInstanceID=8 "
         "ClientSequenceNumber=5"},
        /* Arrays of structs with their layout in memory, including padding. */
        {DOTNET, 208, 0, 8,
         BYTES(
             "\x08\0\x01\0\x01\0\0\0\x02\0\0\0\x03\0\0\0PPPP\x04\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0"),
         "Microsoft-Windows-DotNETRuntime/GC/LOHCompact",
         "ClrInstanceID=8 Count=1 Values=[{TimePlan=1 TimeCompact=2 TimeRelocate=3 TotalRefs=4 "
         "ZeroRefs=5}]"},
        {DOTNET, 208, 0, 4, BYTES("\x08\0\x01\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05\0\0\0"),
         "Microsoft-Windows-DotNETRuntime/GC/LOHCompact",
         "ClrInstanceID=8 Count=1 Values=[{TimePlan=1 TimeCompact=2 TimeRelocate=3 TotalRefs=4 "
         "ZeroRefs=5}]"},
        {DOTNET, 82, 0, 4, BYTES("\x08\0\0\0\x02\0\0\0\x01\0\0\0\x02\0\0\0"),
         "Microsoft-Windows-DotNETRuntime/ClrStack/Walk",
         "ClrInstanceID=8 Reserved1=0 Reserved2=0 FrameCount=2 Stack=[0x1 0x2]"},
        {DXGI, 42, 0, 8, BYTES("\x01\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0"),
         "Microsoft-Windows-DXGI/Present/Start", "pIDXGISwapChain=0x1 Flags=0x2 SyncInterval=1"},
        {DXGKRNL, 178, 1, 8,
         BYTES("\x01\0\0\0\0\0\0\0\x03\0\0\0\x07\0\0\0\x00\x10\0\0\0\0\0\0\x00\0\0\0\x00\0\0\0"
               "\x01\0\0\0\x02\0\0\0\0\0\0\0"),
         "Microsoft-Windows-DxgKrnl/QueuePacket/Start",
         "hContext=0x1 PacketType=3:MMIOFLIP_COMMAND_BUFFER SubmitSequence=7 DmaBufferSize=4096 "
         "AllocationListSize=0 PatchLocationListSize=0 bPresent=true hDmaBuffer=0x2"},
        {DXGKRNL, 175, 1, 4,
         BYTES("\x01\0\0\0\x02\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\0\0\0\x07\0\0\0\x08\0\0\0"),
         "Microsoft-Windows-DxgKrnl/DmaPacket/Start",
         "hContext=0x1 hQueuePacketContext=0x2 PacketType=0:RENDER_COMMAND_BUFFER "
         "uliSubmissionId=5 "
         "ulQueueSubmitSequence=6 pDmaBuffer=0x7 QuantumStatus=8"},
    };
    check_rows(rows, sizeof rows / sizeof rows[0]);
}

TEST(a_later_version_is_decoded_as_the_last_known)
{
    static struct made_record made;
    struct ew_decoder *decoder;
    bool ok;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    make_record(&made, DOTNET, 14, 9, "\x08\x00more", 6);
    CHECK_EQ_STR(decode(decoder, &made.record, &ok), "ClrInstanceID=8");
    CHECK(ok);
    make_record(&made, DOTNET, 14, 1, "\x08", 1);
    CHECK_EQ_STR(decode(decoder, &made.record, &ok), "payload=#08");
    CHECK(!ok);
    ew_decoder_free(decoder);
}

TEST(an_unknown_event_has_its_header_and_payload)
{
    static struct made_record made;
    struct ew_decoder *decoder;
    struct ew_event_names found;
    bool ok;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    make_record(&made, "00000000-0000-0000-0000-00000000abcd", 12, 0, "\x01\x02", 2);
    CHECK_EQ_STR(names(decoder, &made.record), "00000000-0000-0000-0000-00000000abcd/EventID(12)");
    CHECK_EQ_STR(decode(decoder, &made.record, &ok), "payload=#0102");
    CHECK(!ok);
    make_classic(&made, "00000000-0000-0000-0000-00000000abcd", 12, 0, "\x01\x02", 2);
    CHECK_EQ_STR(names(decoder, &made.record), "00000000-0000-0000-0000-00000000abcd/Opcode(12)");
    made.record.kind = EW_RECORD_MESSAGE;
    made.record.id = 33;
    CHECK_EQ_STR(names(decoder, &made.record), "00000000-0000-0000-0000-00000000abcd/Message(33)");
    ew_decoder_names(decoder, &made.record, &found);
    CHECK_EQ_UINT(found.origin, EW_SCHEMA_NONE);
    /* A known provider, an unknown event. */
    make_record(&made, DXGI, 9999, 0, "", 0);
    CHECK_EQ_STR(names(decoder, &made.record), "Microsoft-Windows-DXGI/EventID(9999)");
    CHECK_EQ_STR(decode(decoder, &made.record, &ok), "");
    CHECK(!ok);
    /* A message may have no provider at all. */
    made.record.provider = NULL;
    made.record.kind = EW_RECORD_MESSAGE;
    CHECK_EQ_STR(names(decoder, &made.record), "/Message(9999)");
    ew_decoder_free(decoder);
}

TEST(a_manifest_is_preferred_but_not_for_dotnet)
{
    static const char text[] =
        "<provider name='K' guid='" KERNEL_PROCESS "'><event value='1' task='Own' symbol='x'/>"
        "</provider><provider name='D' guid='" DOTNET "'><event value='1' task='Own'/></provider>";
    static struct made_record made;
    struct ew_decoder *decoder;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    make_record(&made, KERNEL_PROCESS, 1, 0, "", 0);
    CHECK_EQ_STR(names(decoder, &made.record),
                 "Microsoft-Windows-Kernel-Process/ProcessStart/Start");
    CHECK_EQ_INT(ew_decoder_learn_manifest(decoder, text, sizeof text - 1), 2);
    CHECK_EQ_STR(names(decoder, &made.record), "K/Own");
    make_record(&made, DOTNET, 1, 0, "", 0);
    CHECK_EQ_STR(names(decoder, &made.record), "Microsoft-Windows-DotNETRuntime/GC/Start");
    ew_decoder_free(decoder);
}
