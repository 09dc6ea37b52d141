/* SPDX-License-Identifier: MIT */
/* Recordings of the kinds that were once read wrongly: each has one feature that led to a false
 * value. */
#include "make_hand.h"

#include <stdlib.h>
#include <string.h>

enum { OWNER = 5000, OWNER_THREAD = 5004, OTHER = 4000 };

static const uint8_t kernel_network[16] = {0x49, 0x2a, 0xd4, 0x7d, 0x29, 0x53, 0x32, 0x48,
                                           0x8d, 0xfd, 0x43, 0xd9, 0x79, 0x15, 0x3a, 0x88};

static void put_process(struct hand *h, unsigned opcode, uint32_t pid, const char *image)
{
    struct etl_process x = {.key = pid,
                            .pid = pid,
                            .parent_pid = 400,
                            .exit_status = opcode == 2 ? 0 : 259,
                            .image = image,
                            .command_line = "",
                            .package = "",
                            .application = ""};
    struct etl_thread t = {.pid = pid, .tid = pid + 4, .base_priority = 8};
    if (opcode == 2) {
        etl_thread(&h->payload, 3, 8, &t);
        hand_put_kernel(h, 8, 0x0502, 3);
    }
    etl_process(&h->payload, 4, 8, &x);
    hand_put_kernel(h, 8, 0x0300u | opcode, 4);
    if (opcode != 2) {
        etl_thread(&h->payload, 3, 8, &t);
        hand_put_kernel(h, 8, 0x0500u | opcode, 3);
    }
}

static void put_switch(struct hand *h, uint32_t from, uint32_t to)
{
    struct etl_switch s = {.new_tid = to, .old_tid = from, .state = 5};
    etl_switch(&h->payload, 4, &s);
    hand_put_kernel(h, 8, 0x0524, 4);
}

/* ---------------------------------------------------------------------- owners */

/* The payload names process 5000; the headers and the running thread are those of process 4000. */
static int make_owners(const struct make_options *o, struct make_output *output)
{
    static struct hand h;
    static const uint8_t tcp[] = {12, 13, 14, 15, 16, 18, 28, 29, 31, 34};
    static const uint16_t network[] = {12, 13, 14, 15, 18, 29};
    struct etl_net net = {.pid = OWNER, .bytes = 99, .remote_port = 80, .local_port = 5000};
    struct etl_disk disk = {0, 0x43, 4096, 8192, 0xFFFFA001, 0xFFFFB010, 500, 0};
    int rc = hand_begin(&h, o, output);
    if (rc < 0)
        return rc;
    put_process(&h, 3, OTHER, "other.exe");
    put_process(&h, 3, OWNER, "owner.exe");
    put_switch(&h, 0, OWNER_THREAD);
    etl_disk_init(&h.payload, 2, 8, disk.irp, 0);
    h.pid = OWNER;
    h.tid = OWNER_THREAD;
    hand_put_kernel(&h, 8, 0x010C, 2);
    h.pid = OTHER;
    h.tid = OTHER + 4;
    put_switch(&h, OWNER_THREAD, OTHER + 4);
    for (size_t i = 0; i < sizeof tcp; i++) {
        etl_tcp(&h.payload, 8, tcp[i], &net);
        hand_put_kernel(&h, 8, 0x0600u | tcp[i], 2);
    }
    for (size_t i = 0; i < sizeof network / sizeof network[0]; i++) {
        etl_tcp(&h.payload, 8, network[i], &net);
        hand_put(&h,
                 (struct ew_etl_event){
                     .header_type = 19, .provider = kernel_network, .id = network[i], .level = 4});
    }
    etl_disk(&h.payload, 2, 8, &disk); /* Windows 7: the irp names the issuer */
    hand_put_kernel(&h, 8, 0x010A, 2);
    disk.irp = 0xFFFFB020; /* its start was not recorded: unknown */
    etl_disk(&h.payload, 2, 8, &disk);
    hand_put_kernel(&h, 8, 0x010B, 2);
    return hand_end(&h, 0, 0);
}

/* -------------------------------------------------------------------- counters */

/* Two processes exit; the counters of the second are cleared already. */
static int make_cleared(const struct make_options *o, struct make_output *output)
{
    static struct hand h;
    struct etl_counters full = {.pid = OWNER,
                                .fault_count = 9,
                                .handle_count = 3,
                                .peak_working_set = 8192,
                                .working_set = 4096,
                                .virtual_bytes = 65536,
                                .private_bytes = 4096};
    struct etl_counters cleared = {.pid = OTHER};
    int rc = hand_begin(&h, o, output);
    if (rc < 0)
        return rc;
    put_process(&h, 1, OTHER, "cleared.exe");
    put_process(&h, 1, OWNER, "full.exe");
    etl_counters(&h.payload, 8, &full);
    hand_put_kernel(&h, 8, 0x0320, 2);
    etl_counters(&h.payload, 8, &cleared);
    hand_put_kernel(&h, 8, 0x0320, 2);
    put_process(&h, 2, OWNER, "full.exe");
    put_process(&h, 2, OTHER, "cleared.exe");
    return hand_end(&h, 0, 0);
}

/* ---------------------------------------------------------------------- states */

/* The id of an image is decoded; the next one lacks its end; of a kernel event only the name is
 * known; of another one, and of an event of an unknown provider, nothing. */
static int make_states(const struct make_options *o, struct make_output *output)
{
    enum { RSDS = 36 };
    static const uint8_t image_id[16] = {0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f,
                                         0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde};
    static const uint8_t unknown[16] = {0x77, 1, 2, 3};
    static struct hand h;
    int rc = hand_begin(&h, o, output);
    if (rc < 0)
        return rc;
    for (unsigned whole = 2; whole-- > 0;) {
        etl_clear(&h.payload);
        etl_u64(&h.payload, 0x7FF600000000);
        etl_u32(&h.payload, OWNER);
        for (unsigned i = 0; i < 5 && whole; i++)
            etl_u32(&h.payload, 0x11111111u * (i + 1));
        etl_ansi(&h.payload, whole ? "owner.pdb" : NULL);
        hand_put(&h,
                 (struct ew_etl_event){.header_type = 20, .provider = image_id, .opcode = RSDS});
    }
    hand_put_kernel(&h, 8, 0x0B25, 2);
    hand_put_kernel(&h, 8, 0x0C3F, 2);
    hand_put(&h, (struct ew_etl_event){.header_type = 19, .provider = unknown, .id = 9});
    return hand_end(&h, 0, 0);
}

/* ----------------------------------------------------------------------- clock */

/* The wall clock is set back by an hour after the first process has started. */
static int make_set_back(const struct make_options *o, struct make_output *output)
{
    enum { CLOCK_WALL = 2 };
    const uint64_t second = 10000000, start = UINT64_C(134116992000000000); /* 2026-01-01 */
    static struct hand h;
    struct etl_process x = {.key = OWNER,
                            .pid = OWNER,
                            .parent_pid = 400,
                            .exit_status = 259,
                            .image = "owner.exe",
                            .command_line = "",
                            .package = "",
                            .application = ""};
    struct ew_etl_writer_config config = make_config(o, output);
    config.buffer_bytes = o->buffer_bytes ? o->buffer_bytes : 16384;
    config.cpu_count = 2;
    config.clock = CLOCK_WALL;
    config.start_raw = start;
    config.start_filetime = (int64_t)start;
    h = (struct hand){.now = start + second, .pid = OTHER, .tid = OTHER + 4};
    int rc = ew_etl_writer_new(&config, &h.writer);
    if (rc < 0)
        return rc;
    etl_process(&h.payload, 4, 8, &x);
    hand_put_kernel(&h, 8, 0x0301, 4);
    for (unsigned i = 0; i < 3 && h.error == 0; i++) {
        struct ew_etl_event ready = {.header_type = 4,
                                     .group = 5,
                                     .opcode = 50,
                                     .version = 2,
                                     .cpu = 1,
                                     .t_raw = start - 3600 * second + i * second,
                                     .pid = OWNER,
                                     .tid = OWNER_THREAD,
                                     .payload = "12345678",
                                     .payload_size = 8};
        h.error = ew_etl_write(h.writer, &ready);
    }
    h.now = start + 5 * second;
    return hand_end(&h, 0, 0);
}

/* ------------------------------------------------------------------------ files */

/* Whole buffers of a recording in memory; the caller frees it. */
static int in_memory(const struct make_options *o, struct etl_memory *memory)
{
    struct make_options small = *o;
    small.buffer_bytes = 8192;
    return make_memory(&small, o->compress, 4000, memory);
}

static int put_memory(struct make_output *output, struct etl_memory *memory, int rc)
{
    if (rc == 0)
        rc = make_put(output, memory->bytes, memory->size);
    etl_memory_free(memory);
    return rc;
}

/* A buffer in the middle is all zero, as after a crash of the file system. */
static int make_zeroed(const struct make_options *o, struct make_output *output)
{
    enum { SIZE_AT = 0 };
    struct etl_memory memory = {0};
    int rc = in_memory(o, &memory);
    uint32_t size;
    if (rc < 0)
        return rc;
    memcpy(&size, memory.bytes + SIZE_AT, sizeof size);
    size_t middle = memory.size / size / 2 * size;
    memset(memory.bytes + middle, 0, size);
    return put_memory(output, &memory, rc);
}

/* A buffer in the middle is not in the file. */
static int make_cut(const struct make_options *o, struct make_output *output)
{
    struct etl_memory memory = {0};
    int rc = in_memory(o, &memory);
    uint32_t size;
    if (rc < 0)
        return rc;
    memcpy(&size, memory.bytes, sizeof size);
    size_t middle = memory.size / size / 2 * size, behind = middle + size;
    memmove(memory.bytes + middle, memory.bytes + behind, memory.size - behind);
    memory.size -= size;
    return put_memory(output, &memory, rc);
}

/* Another recording follows in the same file. */
static int make_appended(const struct make_options *o, struct make_output *output)
{
    struct etl_memory memory = {0}, more = {0};
    struct make_options other = *o;
    int rc = in_memory(o, &memory);
    other.seed = o->seed + 1;
    if (rc == 0)
        rc = put_memory(output, &memory, in_memory(&other, &more));
    return put_memory(output, &more, rc);
}

const struct make_kind make_wrong_kinds[] = {
    {"owners", "the payload names another process than the header", make_owners},
    {"cleared-counters", "a process exits with counters that are cleared", make_cleared},
    {"states", "events that are decoded, partly known and unknown", make_states},
    {"clock-set-back", "the wall clock is set back by an hour", make_set_back},
    {"damaged-zeroed", "a buffer in the middle is all zero", make_zeroed},
    {"damaged-cut", "a buffer in the middle is not in the file", make_cut},
    {"damaged-appended", "another recording follows in the same file", make_appended},
    {NULL, NULL, NULL},
};
