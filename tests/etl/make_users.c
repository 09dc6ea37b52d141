/* SPDX-License-Identifier: MIT */
/* A recording with what the users' consumers look for: processes, threads, CPU samples, faults,
 * allocations, disk, the GPU's queue, and a provider with a layout that only Windows knows. */
#include "make_hand.h"

enum { PARENT = 4000, PARENT_THREAD = 4004, CHILD = 5000, CHILD_THREAD = 5004, ROUNDS = 5 };

static const uint8_t unknown_provider[16] = {0xe7, 1, 2, 3, 4, 5, 6, 7}; /* of the emulator */
static const uint8_t dxgkrnl[16] = {0x5a, 0xc4, 0x2e, 0x80, 0x99, 0x1e, 0x83, 0x4b,
                                    0x99, 0x20, 0x87, 0xc9, 0x82, 0x77, 0xba, 0x9d};
static const uint8_t kernel_process[16] = {0xd6, 0x2c, 0xfb, 0x22, 0x7b, 0x0e, 0x2b, 0x42,
                                           0xa0, 0xc7, 0x2f, 0xad, 0x1f, 0xd0, 0xe7, 0x16};

static void put_process(struct hand *h, unsigned opcode, uint32_t pid, uint32_t parent_pid,
                        int32_t status, const char *image, const char *command_line)
{
    struct etl_process x = {.key = pid,
                            .pid = pid,
                            .parent_pid = parent_pid,
                            .session_id = 1,
                            .exit_status = status,
                            .image = image,
                            .command_line = command_line,
                            .package = "",
                            .application = ""};
    etl_process(&h->payload, 4, 8, &x);
    hand_put_kernel(h, 8, 0x0300u | opcode, 4);
}

static void put_thread(struct hand *h, unsigned opcode, uint32_t pid, uint32_t tid)
{
    struct etl_thread x = {
        .pid = pid, .tid = tid, .win32_start = 0x7FF600001000, .base_priority = 8};
    etl_thread(&h->payload, 3, 8, &x);
    hand_put_kernel(h, 8, 0x0500u | opcode, 3);
}

static void put_switch(struct hand *h, uint32_t from, uint32_t to)
{
    struct etl_switch s = {.new_tid = to, .old_tid = from, .state = 5, .wait_reason = 6};
    etl_switch(&h->payload, 4, &s);
    hand_put_kernel(h, 8, 0x0524, 4);
}

static void put_memory(struct hand *h, uint32_t number)
{
    etl_fault(&h->payload, 8, 0x10000000 + number * 4096, 0x7FF600002000);
    hand_put_kernel(h, 8, 0x020B, 2); /* demand zero */
    struct etl_hard_fault hard = {h->now, 8192, 0x20000000, 0xFFFFA001, CHILD_THREAD, 4096};
    etl_hard_fault(&h->payload, 8, &hard);
    hand_put_kernel(h, 8, 0x0220, 2);
    etl_virtual(&h->payload, 8, 0x30000000 + number * 0x10000, 0x10000, CHILD, 0x1000);
    hand_put_kernel(h, 8, 0x0262, 2);
    etl_virtual(&h->payload, 8, 0x30000000 + number * 0x10000, 0x10000, CHILD, 0x8000);
    hand_put_kernel(h, 8, 0x0263, 2);
}

static void put_packet(struct hand *h, uint32_t number)
{
    for (unsigned stop = 0; stop < 2; stop++) {
        etl_clear(&h->payload);
        etl_u64(&h->payload, 0xFFFFC001);
        etl_u32(&h->payload, 0);
        etl_u32(&h->payload, 100 + number);
        if (stop) {
            etl_u32(&h->payload, 0);
        } else {
            etl_u64(&h->payload, 4096);
            etl_u32(&h->payload, 1);
            etl_u32(&h->payload, 1);
            etl_u32(&h->payload, 1);
            etl_u64(&h->payload, 0xFFFFC002);
        }
        hand_put(h, (struct ew_etl_event){.header_type = 19,
                                          .provider = dxgkrnl,
                                          .id = stop ? 180 : 178,
                                          .opcode = stop ? 2 : 1,
                                          .level = 4,
                                          .keyword = 1});
        h->now += 20000; /* 2 ms in the queue */
    }
}

static void put_unknown(struct hand *h, uint32_t number)
{
    etl_clear(&h->payload);
    etl_u32(&h->payload, number);
    etl_wide(&h->payload, "job");
    hand_put(h, (struct ew_etl_event){.header_type = 19,
                                      .provider = unknown_provider,
                                      .id = 7,
                                      .version = 1,
                                      .level = 4,
                                      .opcode = 1,
                                      .keyword = 0x20});
}

/* ProcessStart of Microsoft-Windows-Kernel-Process, version 0. */
static void put_manifest_start(struct hand *h)
{
    etl_clear(&h->payload);
    etl_u32(&h->payload, CHILD);
    etl_u64(&h->payload, 134116992000000000);
    etl_u32(&h->payload, PARENT);
    etl_u32(&h->payload, 1);
    etl_wide(&h->payload, "\\Device\\HarddiskVolume3\\child.exe");
    hand_put(h, (struct ew_etl_event){.header_type = 19,
                                      .provider = kernel_process,
                                      .id = 1,
                                      .opcode = 1,
                                      .task = 1,
                                      .level = 4,
                                      .keyword = 0x10});
}

static void put_round(struct hand *h, uint32_t number)
{
    struct etl_disk disk = {0, 0x43, 4096, 8192, 0xFFFFA001, 0xFFFFB001, 500, CHILD_THREAD};
    put_switch(h, 0, CHILD_THREAD);
    for (unsigned i = 0; i < 4; i++) {
        etl_sample(&h->payload, 2, 8, 0x7FF600003000, CHILD_THREAD, 1, 0);
        hand_put_kernel(h, 8, 0x0F2E, 2);
        h->now += 9000;
    }
    put_memory(h, number);
    etl_disk(&h->payload, 3, 8, &disk);
    hand_put_kernel(h, 8, 0x010A, 3);
    hand_put_kernel(h, 8, 0x010B, 3);
    put_packet(h, number);
    put_unknown(h, number);
    put_switch(h, CHILD_THREAD, 0);
    h->now += 100000;
}

/* interval_100ns: of the CPU samples; 0: the recording does not have it. */
static int make_recording(const struct make_options *o, struct make_output *output,
                          uint32_t interval_100ns)
{
    static struct hand h;
    struct etl_image image = {
        0x7FF600000000, 0x20000, 0x400000, CHILD, 1, 2, "\\Device\\HarddiskVolume3\\child.exe"};
    int rc = hand_begin(&h, o, output);
    if (rc < 0)
        return rc;
    put_process(&h, 3, PARENT, 400, 259, "parent.exe", "parent.exe");
    put_thread(&h, 3, PARENT, PARENT_THREAD);
    put_process(&h, 1, CHILD, PARENT, 259, "child.exe", "child.exe --fast");
    put_manifest_start(&h);
    put_thread(&h, 1, CHILD, CHILD_THREAD);
    h.pid = CHILD;
    h.tid = CHILD_THREAD;
    etl_image(&h.payload, 3, 8, &image);
    hand_put_kernel(&h, 8, 0x030A, 3);
    if (interval_100ns != 0) {
        etl_sample_interval(&h.payload, 3, 0, interval_100ns, 10000);
        hand_put_kernel(&h, 8, 0x0F49, 3);
    }
    for (uint32_t i = 0; i < ROUNDS; i++)
        put_round(&h, i);
    put_thread(&h, 2, CHILD, CHILD_THREAD);
    put_process(&h, 2, CHILD, PARENT, 3, "child.exe", "child.exe --fast");
    return hand_end(&h, 0, 0);
}

static int make_consumers(const struct make_options *o, struct make_output *output)
{
    return make_recording(o, output, 0);
}

static int make_consumers_2ms(const struct make_options *o, struct make_output *output)
{
    return make_recording(o, output, 20000);
}

const struct make_kind make_user_kinds[] = {
    {"consumers", "what the users' consumers look for, and a provider unknown to etwatch",
     make_consumers},
    {"consumers_2ms", "the same, with CPU samples every 2 ms", make_consumers_2ms},
    {NULL, NULL, NULL},
};
