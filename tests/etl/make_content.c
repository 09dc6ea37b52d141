/* SPDX-License-Identifier: MIT */
/* Small recordings written by hand, each with one feature that decoders must handle. */
#include <string.h>

#include <etwatch/etwatch.h>

#include "make_hand.h"

/* 0b8e5f3a-6c1d-4e2f-9a7b-112233445566: an unregistered provider */
static const uint8_t provider[16] = {0x3a, 0x5f, 0x8e, 0x0b, 0x1d, 0x6c, 0x2f, 0x4e,
                                     0x9a, 0x7b, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66};

/* ------------------------------------------------------------------ TraceLogging */

static void put_tracelogging(struct hand *h, const char *provider_name)
{
    static struct etl_payload traits;
    etl_tlg_end(&h->schema);
    etl_tlg_provider(&traits, provider_name);
    etl_clear(&h->extended);
    etl_extended(&h->extended, 0xC, traits.bytes, traits.size, true);
    etl_extended(&h->extended, 0xB, h->schema.bytes, h->schema.size, false);
    hand_put(h, (struct ew_etl_event){.header_type = h->pointer_size == 4 ? 18 : 19,
                                      .provider = provider,
                                      .channel = 11,
                                      .level = 5,
                                      .extended = h->extended.bytes,
                                      .extended_size = h->extended.size});
}

static void put_scalars(struct hand *h)
{
    static const uint8_t guid[16] = {0x78, 0x56, 0x34, 0x12, 0xbc, 0x9a, 0xf0, 0xde,
                                     1,    2,    3,    4,    5,    6,    7,    8};
    static const uint8_t sid[] = {1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0};
    static const struct {
        const char *name;
        unsigned in_type, size;
        uint64_t value;
    } fields[] = {
        {"int8", 3, 1, 0xFE},         {"uint8", 4, 1, 200},
        {"int16", 5, 2, 0xFFFE},      {"uint16", 6, 2, 60000},
        {"int32", 7, 4, 0xFFFFFFFE},  {"uint32", 8, 4, 4000000000u},
        {"int64", 9, 8, UINT64_MAX},  {"uint64", 10, 8, 10000000000000000000u},
        {"float", 11, 4, 0x3FC00000}, {"double", 12, 8, 0x400921FB54442D18},
        {"bool32", 13, 4, 1},         {"filetime", 17, 8, 134116992000000000},
        {"hex32", 20, 4, 0xDEADBEEF}, {"hex64", 21, 8, 0x123456789ABCDEF0},
    };
    etl_tlg_begin(&h->schema, "Scalars");
    etl_clear(&h->payload);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        etl_tlg_field(&h->schema, fields[i].name, fields[i].in_type, 0);
        for (unsigned k = 0; k < fields[i].size; k++)
            etl_u8(&h->payload, (unsigned)(fields[i].value >> 8 * k) & 0xFF);
    }
    etl_tlg_field(&h->schema, "guid", 15, 0);
    etl_bytes(&h->payload, guid, 16);
    etl_tlg_field(&h->schema, "sid", 19, 0);
    etl_bytes(&h->payload, sid, sizeof sid);
    etl_tlg_field(&h->schema, "pointer", 16, 0);
    etl_pointer(&h->payload, h->pointer_size, 0xFFFF8001);
    etl_tlg_field(&h->schema, "binary", 14, 0);
    etl_u16(&h->payload, 3);
    etl_bytes(&h->payload, "\x01\x02\x03", 3);
    put_tracelogging(h, "Etwatch.Test");
}

static void put_strings(struct hand *h)
{
    etl_tlg_begin(&h->schema, "Strings");
    etl_clear(&h->payload);
    etl_tlg_field(&h->schema, "wide", 1, 0);
    etl_wide(&h->payload, "gr\xc3\xbc\xc3\x9f dich \xf0\x9f\x98\x80");
    etl_tlg_field(&h->schema, "narrow", 2, 0);
    etl_ansi(&h->payload, "plain \"text\"");
    etl_tlg_field(&h->schema, "utf8", 2, 35);
    etl_ansi(&h->payload, "\xc3\xa4\xc3\xb6");
    etl_tlg_field(&h->schema, "counted wide", 22, 0);
    etl_u16(&h->payload, 4);
    etl_u16(&h->payload, 'h');
    etl_u16(&h->payload, 'i');
    etl_tlg_field(&h->schema, "counted narrow", 23, 0);
    etl_u16(&h->payload, 2);
    etl_bytes(&h->payload, "yo", 2);
    etl_tlg_field(&h->schema, "json", 2, 12);
    etl_ansi(&h->payload, "{\"a\": 1}");
    put_tracelogging(h, "Etwatch.Test");
}

static void put_nested(struct hand *h)
{
    etl_tlg_begin(&h->schema, "Nested");
    etl_clear(&h->payload);
    etl_tlg_array(&h->schema, "three", 8, 3);
    for (uint32_t i = 1; i <= 3; i++)
        etl_u32(&h->payload, i);
    etl_tlg_field(&h->schema, "counted", 6 | 0x40, 0);
    etl_u16(&h->payload, 2);
    etl_u16(&h->payload, 7);
    etl_u16(&h->payload, 8);
    etl_tlg_struct(&h->schema, "outer", 3);
    etl_tlg_field(&h->schema, "a", 8, 0);
    etl_u32(&h->payload, 11);
    etl_tlg_struct(&h->schema, "inner", 1);
    etl_tlg_field(&h->schema, "b", 2, 0);
    etl_ansi(&h->payload, "deep");
    etl_tlg_field(&h->schema, "c", 4, 0);
    etl_u8(&h->payload, 12);
    etl_tlg_field(&h->schema, "after", 13, 0);
    etl_u32(&h->payload, 0);
    put_tracelogging(h, "Etwatch.Test");
}

static int make_tracelogging(const struct make_options *o, struct make_output *output)
{
    static struct hand h;
    int rc = hand_begin(&h, o, output);
    if (rc < 0)
        return rc;
    put_scalars(&h);
    put_strings(&h);
    put_nested(&h);
    etl_tlg_begin(&h.schema, "Empty");
    etl_clear(&h.payload);
    put_tracelogging(&h, "Etwatch.Test");
    return hand_end(&h, 0, 0);
}

/* ------------------------------------------------------------------- EventSource */

static const char manifest[] =
    "<instrumentationManifest xmlns=\"http://schemas.microsoft.com/win/2004/08/events\">\r\n"
    " <instrumentation xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" "
    "xmlns:win=\"http://manifests.microsoft.com/win/2004/08/windows/events\">\r\n"
    "  <events xmlns=\"http://schemas.microsoft.com/win/2004/08/events\">\r\n"
    "<provider name=\"Etwatch-Test-Source\" guid=\"{0b8e5f3a-6c1d-4e2f-9a7b-112233445566}\" "
    "resourceFileName=\"Etwatch-Test-Source\" messageFileName=\"Etwatch-Test-Source\" "
    "symbol=\"EtwatchTestSource\">\r\n"
    " <tasks>\r\n"
    "  <task name=\"Request\" message=\"$(string.task_Request)\" value=\"1\"/>\r\n"
    "  <task name=\"EventSourceMessage\" message=\"$(string.task_Message)\" value=\"65534\"/>\r\n"
    " </tasks>\r\n"
    " <opcodes>\r\n </opcodes>\r\n"
    " <maps>\r\n"
    "  <valueMap name=\"Kind\">\r\n"
    "   <map value=\"0x0\" message=\"$(string.map_None)\"/>\r\n"
    "   <map value=\"0x1\" message=\"$(string.map_Fast)\"/>\r\n"
    "  </valueMap>\r\n"
    " </maps>\r\n"
    " <events>\r\n"
    "  <event value=\"1\" version=\"0\" level=\"win:Informational\" symbol=\"RequestStart\" "
    "task=\"Request\" opcode=\"win:Start\" template=\"RequestStartArgs\"/>\r\n"
    "  <event value=\"2\" version=\"0\" level=\"win:Informational\" symbol=\"RequestStop\" "
    "task=\"Request\" opcode=\"win:Stop\"/>\r\n"
    " </events>\r\n"
    " <templates>\r\n"
    "  <template tid=\"RequestStartArgs\">\r\n"
    "   <data name=\"id\" inType=\"win:Int32\"/>\r\n"
    "   <data name=\"url\" inType=\"win:UnicodeString\"/>\r\n"
    "   <data name=\"kind\" inType=\"win:UInt32\" map=\"Kind\"/>\r\n"
    "   <data name=\"share\" inType=\"win:Double\"/>\r\n"
    "   <data name=\"activity\" inType=\"win:GUID\"/>\r\n"
    "   <data name=\"ok\" inType=\"win:Boolean\"/>\r\n"
    "   <data name=\"big\" inType=\"win:UInt64\"/>\r\n"
    "   <data name=\"bytesSize\" inType=\"win:UInt32\"/>\r\n"
    "   <data name=\"bytes\" inType=\"win:Binary\" length=\"bytesSize\"/>\r\n"
    "  </template>\r\n"
    " </templates>\r\n"
    "</provider>\r\n</events>\r\n</instrumentation>\r\n"
    "<localization>\r\n <resources culture=\"en-US\">\r\n  <stringTable>\r\n"
    "   <string id=\"task_Request\" value=\"Request\"/>\r\n"
    "   <string id=\"task_Message\" value=\"EventSourceMessage\"/>\r\n"
    "   <string id=\"map_None\" value=\"None\"/>\r\n"
    "   <string id=\"map_Fast\" value=\"Fast\"/>\r\n"
    "  </stringTable>\r\n </resources>\r\n</localization>\r\n</instrumentationManifest>\r\n";

static void put_request(struct hand *h, uint32_t number)
{
    static const uint8_t guid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    etl_clear(&h->payload);
    etl_u32(&h->payload, number);
    etl_wide(&h->payload, "https://example.org/\xc3\xa4?q=1");
    etl_u32(&h->payload, number % 2);
    etl_u64(&h->payload, 0x3FE0000000000000);
    etl_bytes(&h->payload, guid, 16);
    etl_u32(&h->payload, 1);
    etl_u64(&h->payload, 12345678901234567890u);
    etl_u32(&h->payload, 4);
    etl_bytes(&h->payload, "\xde\xad\xbe\xef", 4);
    hand_put(h, (struct ew_etl_event){.header_type = 19,
                                      .provider = provider,
                                      .id = 1,
                                      .level = 4,
                                      .opcode = 1,
                                      .task = 1,
                                      .keyword = 0x0000F00000000000});
}

static int make_eventsource(const struct make_options *o, struct make_output *output)
{
    static struct hand h;
    int rc = hand_begin(&h, o, output);
    if (rc < 0)
        return rc;
    put_request(&h, 1); /* before the manifest, as in practice */
    size_t size = sizeof manifest - 1, half = size / 2;
    for (unsigned i = 0; i < 2; i++) {
        etl_manifest_chunk(&h.payload, i, 2, manifest + i * half, i ? size - half : half);
        hand_put(&h, (struct ew_etl_event){.header_type = 19,
                                           .provider = provider,
                                           .id = 0xFFFE,
                                           .version = 1,
                                           .opcode = 0xFE,
                                           .task = 0xFFFE});
    }
    put_request(&h, 2);
    etl_clear(&h.payload);
    hand_put(
        &h,
        (struct ew_etl_event){
            .header_type = 19, .provider = provider, .id = 2, .level = 4, .opcode = 2, .task = 1});
    return hand_end(&h, 0, 0);
}

/* ---------------------------------------------------------------- event metadata */

static int make_metadata(const struct make_options *o, struct make_output *output)
{
    static struct hand h;
    int rc = hand_begin(&h, o, output);
    if (rc < 0)
        return rc;
    static const struct etl_property properties[] = {
        {"Count", 8, 0, 1, 4, 0}, {"Text", 1, 0, 1, 0, 0}, {"Address", 21, 0, 1, 8, 0}};
    struct etl_event_info info = {.provider = provider,
                                  .id = 7,
                                  .version = 1,
                                  .level = 4,
                                  .task = 3,
                                  .provider_name = "Etwatch-Test-Metadata",
                                  .task_name = "Work",
                                  .opcode_name = "Info",
                                  .properties = properties,
                                  .property_count = 3};
    for (uint32_t i = 0; i < 3; i++) {
        etl_clear(&h.payload);
        etl_u32(&h.payload, 100 + i);
        etl_wide(&h.payload, "text");
        etl_u64(&h.payload, 0x7FF600001000 + i);
        hand_put(&h, (struct ew_etl_event){.header_type = 19,
                                           .provider = provider,
                                           .id = 7,
                                           .version = 1,
                                           .level = 4,
                                           .task = 3});
        if (i == 1) {
            etl_event_info(&h.payload, &info);
            hand_put(&h, (struct ew_etl_event){
                             .header_type = 20, .provider = etl_ktc_metadata, .opcode = 32});
        }
    }
    return hand_end(&h, 0, 0);
}

/* ----------------------------------------------------------------------- headers */

static int make_headers(const struct make_options *o, struct make_output *output)
{
    static const uint8_t types[] = {1, 2, 3, 4, 10, 20, 11, 21, 16, 17, 18, 19, 15};
    static const uint32_t message_flags[] = {0x2B, 0x2F, 0x0A, 0x28, 0x00, 0x6B, 0xAA};
    static struct hand h;
    int rc = hand_begin(&h, o, output);
    if (rc < 0)
        return rc;
    etl_clear(&h.payload);
    etl_bytes(&h.payload, "0123456789abcdefghijklmn", 24);
    for (unsigned round = 0; round < 25; round++) {
        h.payload.size = round; /* every padding */
        for (size_t i = 0; i < sizeof types; i++) {
            hand_put(&h, (struct ew_etl_event){.header_type = types[i],
                                               .group = 0x30,
                                               .opcode = 77,
                                               .version = 2,
                                               .level = 4,
                                               .id = 9,
                                               .cpu = (uint16_t)(round % o->cpus),
                                               .provider = provider,
                                               .activity = provider,
                                               .message_flags = message_flags[round % 7],
                                               .kernel_ticks = 5,
                                               .user_ticks = 6});
        }
    }
    return hand_end(&h, 0, 0);
}

/* ---------------------------------------------------------------------- versions */

static void put_process_versions(struct hand *h, unsigned ptr)
{
    static const uint8_t sid[] = {1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0};
    static const uint8_t opcodes[] = {1, 2, 3, 4, 39};
    struct etl_process x = {.key = 0xFFFFA489DEADB000,
                            .directory = 0x1AD000,
                            .pid = 4321,
                            .parent_pid = 1234,
                            .session_id = 1,
                            .exit_status = 259,
                            .sid_size = sizeof sid,
                            .image = "program.exe",
                            .command_line = "program.exe --all",
                            .package = "Package",
                            .application = "App",
                            .exit_filetime = 134116992000000000};
    for (unsigned version = 0; version <= 5; version++) {
        for (size_t i = 0; i < sizeof opcodes; i++) {
            x.sid = i % 2 ? sid : NULL;
            etl_process(&h->payload, version, ptr, &x);
            hand_put_kernel(h, ptr, 0x0300u | opcodes[i], version);
        }
    }
    struct etl_counters counters = {.pid = 4321, .fault_count = 9, .peak_working_set = 8192};
    etl_counters(&h->payload, ptr, &counters);
    hand_put_kernel(h, ptr, 0x0320, 2);
}

static void put_thread_versions(struct hand *h, unsigned ptr)
{
    struct etl_thread x = {.pid = 4321,
                           .tid = 4325,
                           .stack_base = 0xFFFFF88003000000,
                           .start = 0x1000,
                           .win32_start = 0x2000,
                           .affinity = 3,
                           .base_priority = 8};
    struct etl_switch s = {4325, 4329, 8, 9, 0, 6, 1, 5, 2, 17};
    for (unsigned version = 0; version <= 4; version++) {
        for (unsigned opcode = 1; opcode <= 4; opcode++) {
            x.name = version == 4 ? "name" : NULL;
            etl_thread(&h->payload, version, ptr, &x);
            hand_put_kernel(h, ptr, 0x0500u | opcode, version);
        }
        if (version == 0)
            continue;
        etl_switch(&h->payload, version, &s);
        hand_put_kernel(h, ptr, 0x0524, version);
    }
    etl_ready(&h->payload, 4325, 1, 2, 1);
    hand_put_kernel(h, ptr, 0x0532, 2);
    etl_thread_name(&h->payload, 4321, 4325, "renamed");
    hand_put_kernel(h, ptr, 0x0548, 2);
}

static void put_io_versions(struct hand *h, unsigned ptr)
{
    struct etl_disk disk = {0, 0x43, 4096, 8192, 0xFFFFA001, 0xFFFFB001, 500, 4325};
    struct etl_file file = {4096, 0xFFFFB001, 0xFFFFA001, 0xFFFFC001, 4325, 512, 0};
    struct etl_image image = {0x10000000, 0x20000, 0x400000, 4321, 1, 2, "\\Device\\a.dll"};
    for (unsigned version = 0; version <= 3; version++) {
        etl_disk(&h->payload, version, ptr, &disk);
        hand_put_kernel(h, ptr, 0x010A, version);
        hand_put_kernel(h, ptr, 0x010B, version);
        if (version >= 2) {
            etl_disk_init(&h->payload, version, ptr, disk.irp, disk.tid);
            hand_put_kernel(h, ptr, 0x010C, version);
            etl_disk_flush(&h->payload, version, ptr, &disk);
            hand_put_kernel(h, ptr, 0x010E, version);
            etl_file(&h->payload, version, ptr, &file);
            hand_put_kernel(h, ptr, 0x0443, version);
            hand_put_kernel(h, ptr, 0x0444, version);
        }
        etl_image(&h->payload, version, ptr, &image);
        hand_put_kernel(h, ptr, 0x030A, version);
        hand_put_kernel(h, ptr, 0x1402, version);
    }
    etl_file_name(&h->payload, ptr, 0xFFFFA001, "\\Device\\file.txt");
    hand_put_kernel(h, ptr, 0x0424, 2);
}

static void put_rest_versions(struct hand *h, unsigned ptr)
{
    const uint64_t frames[] = {0xFFFF8001, 0x10001000, 0x10002000};
    struct etl_hard_fault hard = {h->now, 4096, 0x10003000, 0xFFFFA001, 4325, 4096};
    struct etl_working_set sets[] = {{4321, 10, 20, 30, 5}, {4, 1, 2, 3, 1}};
    struct etl_net net = {.pid = 4321, .bytes = 99, .remote_port = 80, .local_port = 5000};
    for (unsigned version = 1; version <= 2; version++) {
        etl_sample(&h->payload, version, ptr, 0x10001000, 4325, 1, 0);
        hand_put_kernel(h, ptr, 0x0F2E, version);
        etl_sample_interval(&h->payload, version + 1, 0, 10000, 10000);
        hand_put_kernel(h, ptr, 0x0F48, version + 1);
        etl_working_sets(&h->payload, version, ptr, sets, 2);
        hand_put_kernel(h, ptr, 0x027D, version);
    }
    etl_dpc(&h->payload, ptr, h->now, 0xFFFF9001);
    hand_put_kernel(h, ptr, 0x0F44, 2);
    etl_isr(&h->payload, ptr, h->now, 0xFFFF9002, 1, 0x81);
    hand_put_kernel(h, ptr, 0x0F43, 2);
    etl_fault(&h->payload, ptr, 0x10001000, 0x10002000);
    for (unsigned opcode = 10; opcode <= 15; opcode++)
        hand_put_kernel(h, ptr, 0x0200u | opcode, 2);
    etl_hard_fault(&h->payload, ptr, &hard);
    hand_put_kernel(h, ptr, 0x0220, 2);
    etl_virtual(&h->payload, ptr, 0x10000, 0x1000, 4321, 0x1000);
    hand_put_kernel(h, ptr, 0x0262, 2);
    etl_stack(&h->payload, ptr, h->now, 4321, 4325, frames, 3);
    hand_put_kernel(h, ptr, 0x1820, 2);
    etl_stack_key(&h->payload, ptr, h->now, 4321, 4325, 0xFFFFD001);
    hand_put_kernel(h, ptr, 0x1825, 2);
    etl_stack_definition(&h->payload, ptr, 0xFFFFD001, frames, 3);
    hand_put_kernel(h, ptr, 0x1824, 2);
    for (unsigned opcode = 10; opcode <= 27; opcode++) {
        if (opcode > 17 && opcode < 26)
            continue;
        etl_tcp(&h->payload, ptr, opcode, &net);
        hand_put_kernel(h, ptr, 0x0600u | opcode, 2);
        etl_udp(&h->payload, ptr, opcode, &net);
        hand_put_kernel(h, ptr, 0x0800u | opcode, 2);
    }
}

static int make_versions(const struct make_options *o, struct make_output *output)
{
    static struct hand h;
    int rc = hand_begin(&h, o, output);
    if (rc < 0)
        return rc;
    for (unsigned ptr = 4; ptr <= 8; ptr += 4) {
        put_process_versions(&h, ptr);
        put_thread_versions(&h, ptr);
        put_io_versions(&h, ptr);
        put_rest_versions(&h, ptr);
    }
    return hand_end(&h, 0, 0);
}

/* -------------------------------------------------------------------------- loss */

static int make_lost(const struct make_options *o, struct make_output *output)
{
    static struct hand h;
    int rc = hand_begin(&h, o, output);
    if (rc < 0)
        return rc;
    struct etl_process x = {.key = 1,
                            .pid = 4000,
                            .exit_status = 259,
                            .image = "loser.exe",
                            .command_line = "",
                            .package = "",
                            .application = ""};
    etl_process(&h.payload, 4, 8, &x);
    hand_put_kernel(&h, 8, 0x0303, 4);
    struct etl_thread t = {.pid = 4000, .tid = 4004, .base_priority = 8};
    etl_thread(&h.payload, 3, 8, &t);
    hand_put_kernel(&h, 8, 0x0503, 3);
    for (unsigned i = 0; i < 10; i++) {
        struct etl_switch s = {
            .new_tid = i % 2 ? 0 : 4004, .old_tid = i % 2 ? 4004 : 0, .state = i % 2 ? 5 : 2};
        etl_switch(&h.payload, 4, &s);
        hand_put_kernel(&h, 8, 0x0524, 4);
        if (i == 4) {
            /* Five events and a buffer are missing here; both the flags and an event report that.
             */
            rc = ew_etl_writer_end_buffer(h.writer, 0, 2);
            if (rc == 0)
                rc = ew_etl_writer_end_buffer(h.writer, 0, 4);
            etl_clear(&h.payload);
            hand_put(&h, (struct ew_etl_event){
                             .header_type = 20, .provider = etl_rt_lost, .opcode = 32});
            hand_put(&h, (struct ew_etl_event){
                             .header_type = 20, .provider = etl_rt_lost, .opcode = 33});
        }
        h.error = h.error ? h.error : rc;
    }
    return hand_end(&h, 5, 1);
}

/* ----------------------------------------------------------------- command lines */

/* The same secret in every place where a command line can be: kernel events, decoded, cut and of an
 * unknown version; fields of other providers, as text, as bytes and as a list. */
static int make_cmdlines(const struct make_options *o, struct make_output *output)
{
    static const char line[] = "tool.exe --password hunter2secret --size 3";
    static struct hand h;
    int rc = hand_begin(&h, o, output);
    if (rc < 0)
        return rc;
    struct etl_process x = {.key = 1,
                            .pid = 4000,
                            .exit_status = 259,
                            .image = "tool.exe",
                            .command_line = line,
                            .package = "",
                            .application = ""};
    etl_process(&h.payload, 4, 8, &x);
    hand_put_kernel(&h, 8, 0x0303, 4);
    hand_put_kernel(&h, 8, 0x0301, 9);
    h.payload.size -= 30;
    hand_put_kernel(&h, 8, 0x0304, 4);
    struct etl_thread t = {.pid = 4000, .tid = 4004, .base_priority = 8};
    etl_thread(&h.payload, 3, 8, &t);
    hand_put_kernel(&h, 8, 0x0503, 3);
    for (unsigned i = 0; i < 10; i++) {
        struct etl_switch s = {
            .new_tid = i % 2 ? 0 : 4004, .old_tid = i % 2 ? 4004 : 0, .state = i % 2 ? 5 : 2};
        etl_switch(&h.payload, 4, &s);
        hand_put_kernel(&h, 8, 0x0524, 4);
    }
    etl_tlg_begin(&h.schema, "Started");
    etl_clear(&h.payload);
    etl_tlg_field(&h.schema, "Parent Command_Line", 1, 0);
    etl_wide(&h.payload, line);
    etl_tlg_field(&h.schema, "CmdLineBytes", 14, 0);
    etl_u16(&h.payload, sizeof line);
    etl_bytes(&h.payload, line, sizeof line);
    etl_tlg_array(&h.schema, "commandLine", 2, 2);
    etl_ansi(&h.payload, "--password");
    etl_ansi(&h.payload, "hunter2secret");
    etl_tlg_field(&h.schema, "after", 4, 0);
    etl_u8(&h.payload, 77);
    put_tracelogging(&h, "Company.Tools");
    return hand_end(&h, 0, 0);
}

const struct make_kind make_content_kinds[] = {
    {"tracelogging", "events with their schema: every type, arrays, structs", make_tracelogging},
    {"eventsource", "events with a manifest in the stream, in two chunks", make_eventsource},
    {"metadata", "events with KernelTraceControl metadata", make_metadata},
    {"headers", "every kind of event header, every padding", make_headers},
    {"versions", "every version of every kernel class, 32 and 64 bit", make_versions},
    {"cmdlines", "a command line with a secret wherever one can be", make_cmdlines},
    {"lost", "events and buffers lost, reported in three ways", make_lost},
    {NULL, NULL, NULL},
};
