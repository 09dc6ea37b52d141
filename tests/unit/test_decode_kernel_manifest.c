/* SPDX-License-Identifier: MIT */
/*
 * Typed events from the manifest providers that report the same facts as the kernel's classes: the
 * layouts of every version, written out, and truncated at every length.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"
#include "kernel_payload.h"

static const uint8_t kernel_process[16] = {0xd6, 0x2c, 0xfb, 0x22, 0x7b, 0x0e, 0x2b, 0x42,
                                           0xa0, 0xc7, 0x2f, 0xad, 0x1f, 0xd0, 0xe7, 0x16};
static const uint8_t kernel_memory[16] = {0xf7, 0x3e, 0xd9, 0xd1, 0xf2, 0xe1, 0x45, 0x4f,
                                          0x99, 0x43, 0x03, 0xd2, 0x45, 0xfe, 0x6c, 0x00};
static const uint8_t kernel_network[16] = {0x49, 0x2a, 0xd4, 0x7d, 0x29, 0x53, 0x32, 0x48,
                                           0x8d, 0xfd, 0x43, 0xd9, 0x79, 0x15, 0x3a, 0x88};
static const uint8_t kernel_disk[16] = {0x9a, 0xe6, 0xbd, 0xc7, 0xe0, 0xe1, 0x77, 0x41,
                                        0xb6, 0xef, 0x28, 0x3a, 0xd1, 0x52, 0x52, 0x71};
static const uint8_t kernel_file[16] = {0x27, 0x89, 0xd0, 0xed, 0xc4, 0x9c, 0x65, 0x4e,
                                        0xb9, 0x70, 0xc2, 0x56, 0x0f, 0xb5, 0xc2, 0x89};

static struct ew_record manifest_record(const struct payload *payload, const uint8_t *provider,
                                        uint16_t id, uint8_t version)
{
    struct ew_record record = kernel_record(payload, 4, 1, version);
    record.kind = EW_RECORD_MANIFEST;
    record.provider = provider;
    record.id = id;
    return record;
}

static struct ew_event decode_manifest(const struct payload *payload, const uint8_t *provider,
                                       uint16_t id, uint8_t version)
{
    struct ew_event event;
    struct ew_record record = manifest_record(payload, provider, id, version);
    CHECK(ew_decode_event(&record, &event));
    CHECK(event.from_manifest);
    for (uint32_t size = 0; size < payload->size; size++) {
        struct ew_event cut;
        uint8_t *bytes = malloc(size ? size : 1);
        CHECK(bytes != NULL);
        memcpy(bytes, payload->bytes, size);
        record.payload = bytes;
        record.payload_size = size;
        bool decoded = ew_decode_event(&record, &cut);
        free(bytes);
        CHECK(!decoded || cut.kind == event.kind);
    }
    return event;
}

static void write_start(struct payload *payload, uint8_t flagged, uint8_t sequenced,
                        uint8_t version)
{
    payload->size = 0;
    put(payload, 500, 4);
    if (version >= sequenced)
        put(payload, 77, 8);
    put(payload, 132000000000000000u, 8);
    put(payload, 400, 4);
    if (version >= sequenced)
        put(payload, 66, 8);
    put(payload, 1, 4);
    if (version >= flagged)
        put(payload, 0, 4);
    if (version >= sequenced) {
        put(payload, 2, 4);
        put(payload, 1, 4);
        static const uint8_t label[] = {1, 1, 0, 0, 0, 0, 0, 16, 0, 32, 0, 0};
        for (size_t i = 0; i < sizeof label; i++)
            put(payload, label[i], 1);
    }
    put_wide(payload, "\\x.exe");
}

TEST(processes_of_the_manifest_provider_are_decoded)
{
    static struct payload payload = {.pointer_size = 8};
    for (uint8_t version = 0; version <= 4; version++)
        for (unsigned rundown = 0; rundown <= 1; rundown++) {
            write_start(&payload, rundown ? 0 : 1, rundown ? 1 : 3, version);
            struct ew_event event =
                decode_manifest(&payload, kernel_process, rundown ? 15 : 1, version);
            CHECK_EQ_INT(event.kind, rundown ? EW_EVENT_PROCESS_THERE : EW_EVENT_PROCESS_START);
            CHECK_EQ_UINT(event.pid, 500);
            CHECK_EQ_UINT(event.u.process.parent_pid, 400);
            CHECK_EQ_UINT(event.u.process.session_id, 1);
            CHECK_EQ_UINT(event.u.process.start_filetime, 132000000000000000u);
            CHECK(event.u.process.image.wide);
            CHECK_EQ_UINT(event.u.process.image.len, 12);
            CHECK_EQ_MEM(event.u.process.image.bytes, "\\\0x\0.\0e\0x\0e", 12);
        }
    for (uint8_t version = 0; version <= 2; version++) {
        payload.size = 0;
        put(&payload, 500, 4);
        if (version >= 2)
            put(&payload, 77, 8);
        put(&payload, 132000000000000000u, 8);
        put(&payload, 132000000000000099u, 8);
        put(&payload, 0xffffffff, 4);
        put(&payload, 3, 4);
        put(&payload, 96, 4);
        put(&payload, 1, 8);
        put(&payload, 2, 8);
        if (version >= 1) {
            put(&payload, 9, 8);
            for (unsigned i = 0; i < 5; i++)
                put(&payload, i, 4);
        }
        put_ansi(&payload, "x.exe");
        struct ew_event event = decode_manifest(&payload, kernel_process, 2, version);
        CHECK_EQ_INT(event.kind, EW_EVENT_PROCESS_END);
        CHECK_EQ_UINT(event.pid, 500);
        CHECK_EQ_INT(event.u.process.exit_status, -1);
        CHECK_EQ_UINT(event.u.process.exit_filetime, 132000000000000099u);
        CHECK_EQ_UINT(event.u.process.image.len, 5);
        CHECK_EQ_MEM(event.u.process.image.bytes, "x.exe", 5);
    }
}

TEST(threads_and_images_of_the_manifest_provider_are_decoded)
{
    static struct payload payload;
    for (uint8_t pointer_size = 4; pointer_size <= 8; pointer_size += 4) {
        payload.size = 0;
        payload.pointer_size = pointer_size;
        put(&payload, 500, 4);
        put(&payload, 501, 4);
        for (unsigned i = 0; i < 7; i++)
            put_pointer(&payload, 1000 + i);
        struct ew_event event = decode_manifest(&payload, kernel_process, 3, 0);
        CHECK_EQ_INT(event.kind, EW_EVENT_THREAD_START);
        CHECK_EQ_UINT(event.pid, 500);
        CHECK_EQ_UINT(event.tid, 501);
        CHECK_EQ_UINT(event.u.thread.start_address, 1005);
        CHECK_EQ_INT(decode_manifest(&payload, kernel_process, 4, 1).kind, EW_EVENT_THREAD_END);
        payload.size = 0;
        put_pointer(&payload, 0x749f0000);
        put_pointer(&payload, 0x19000);
        put(&payload, 500, 4);
        put(&payload, 111, 4);
        put(&payload, 222, 4);
        put_pointer(&payload, 0);
        put_wide(&payload, "\\a.dll");
        event = decode_manifest(&payload, kernel_process, 5, 0);
        CHECK_EQ_INT(event.kind, EW_EVENT_IMAGE_LOAD);
        CHECK_EQ_UINT(event.pid, 500);
        CHECK_EQ_UINT(event.u.image.base, 0x749f0000);
        CHECK_EQ_UINT(event.u.image.bytes, 0x19000);
        CHECK_EQ_UINT(event.u.image.checksum, 111);
        CHECK_EQ_UINT(event.u.image.timestamp, 222);
        CHECK_EQ_UINT(event.u.image.path.len, 12);
        CHECK_EQ_INT(decode_manifest(&payload, kernel_process, 6, 0).kind, EW_EVENT_IMAGE_UNLOAD);
        CHECK_EQ_INT(decode_manifest(&payload, kernel_process, 7, 0).kind, EW_EVENT_OTHER);
    }
}

TEST(network_disk_and_files_of_the_manifest_providers_are_decoded)
{
    static const struct {
        uint16_t id;
        uint8_t kind;
        bool udp, v6;
    } net[] = {{10, EW_EVENT_NET_SEND, false, false}, {11, EW_EVENT_NET_RECEIVE, false, false},
               {26, EW_EVENT_NET_SEND, false, true},  {27, EW_EVENT_NET_RECEIVE, false, true},
               {42, EW_EVENT_NET_SEND, true, false},  {43, EW_EVENT_NET_RECEIVE, true, false},
               {58, EW_EVENT_NET_SEND, true, true},   {59, EW_EVENT_NET_RECEIVE, true, true}};
    static struct payload payload = {.pointer_size = 8};
    payload.size = 0;
    put(&payload, 500, 4);
    put(&payload, 1460, 4);
    put(&payload, 0, 24);
    for (size_t i = 0; i < sizeof net / sizeof *net; i++) {
        struct ew_event event = decode_manifest(&payload, kernel_network, net[i].id, 0);
        CHECK_EQ_INT(event.kind, net[i].kind);
        CHECK_EQ_UINT(event.pid, 500);
        CHECK_EQ_UINT(event.u.net.bytes, 1460);
        CHECK_EQ_INT(event.u.net.udp, net[i].udp);
        CHECK_EQ_INT(event.u.net.v6, net[i].v6);
    }
    fill(&payload, 48, 1);
    struct ew_event event = decode_manifest(&payload, kernel_disk, 11, 0);
    CHECK_EQ_INT(event.kind, EW_EVENT_DISK_WRITE);
    CHECK_EQ_UINT(event.tid, EW_NO_ID);
    CHECK_EQ_INT(decode_manifest(&payload, kernel_disk, 14, 0).kind, EW_EVENT_DISK_FLUSH);
    payload.size = 0;
    put(&payload, 4096, 8);
    put(&payload, 1, 8);
    put(&payload, 2, 8);
    put(&payload, 3, 8);
    put(&payload, 4, 4);
    put(&payload, 512, 4);
    put(&payload, 0, 8);
    event = decode_manifest(&payload, kernel_file, 15, 1);
    CHECK_EQ_INT(event.kind, EW_EVENT_FILE_READ);
    CHECK_EQ_UINT(event.tid, 4);
    CHECK_EQ_UINT(event.u.io.bytes, 512);
    CHECK_EQ_UINT(event.u.io.file_object, 2);
    CHECK_EQ_INT(decode_manifest(&payload, kernel_file, 16, 1).kind, EW_EVENT_FILE_WRITE);
    payload.size = 4;
    memset(payload.bytes, 0, 4);
    CHECK_EQ_INT(decode_manifest(&payload, kernel_memory, 2, 2).kind, EW_EVENT_WORKING_SETS);
    CHECK_EQ_INT(decode_manifest(&payload, kernel_memory, 1, 1).kind, EW_EVENT_OTHER);
}

TEST(other_events_and_other_providers_do_not_count)
{
    static const uint8_t nearly[16] = {0xd6, 0x2c, 0xfb, 0x22};
    static const uint8_t other[16] = {1, 2, 3};
    static struct payload payload = {.pointer_size = 8};
    struct ew_event event;
    fill(&payload, 64, 9);
    CHECK_EQ_INT(decode_manifest(&payload, kernel_network, 12, 0).kind, EW_EVENT_OTHER);
    CHECK_EQ_INT(decode_manifest(&payload, kernel_disk, 12, 0).kind, EW_EVENT_OTHER);
    CHECK_EQ_INT(decode_manifest(&payload, kernel_file, 12, 0).kind, EW_EVENT_OTHER);
    CHECK_EQ_INT(decode_manifest(&payload, nearly, 1, 0).kind, EW_EVENT_OTHER);
    CHECK_EQ_INT(decode_manifest(&payload, other, 1, 0).kind, EW_EVENT_OTHER);
    struct ew_record record = manifest_record(&payload, NULL, 1, 0);
    CHECK(ew_decode_event(&record, &event));
    CHECK_EQ_INT(event.kind, EW_EVENT_OTHER);
}
