/* SPDX-License-Identifier: MIT */
/*
 * A recording of a game and a compositor on one GPU, with a known answer. Sixty frames of 16 ms;
 * in each (times in microseconds):
 *
 *      0  the game presents (DXGI)                      200  its work is given to the engine
 *    100  it submits its work                           300  that of the compositor, which waits
 *   6200  the game's work has ended: 6,000              7200  the compositor's has: 1,000
 *
 * A test of a present, a wait packet and a notification without a number are in each frame too and
 * count nothing. graphics-submissions has no packets and no contexts: only the game's submissions,
 * of 6,250 each.
 */
#include "make_hand.h"

enum {
    GAME = 5000,
    GAME_THREAD = 5004,
    COMPOSITOR = 6000,
    COMPOSITOR_THREAD = 6004,
    FRAMES = 60,
    FRAME_US = 16000,
    TICKS_PER_US = 10,
    ADAPTER = 0xA000,
    GAME_DEVICE = 0xD000,
    COMPOSITOR_DEVICE = 0xD100,
    GAME_CONTEXT = 0xC000,
    COMPOSITOR_CONTEXT = 0xC100,
};

static const uint8_t dxgkrnl[16] = {0x5a, 0xc4, 0x2e, 0x80, 0x99, 0x1e, 0x83, 0x4b,
                                    0x99, 0x20, 0x87, 0xc9, 0x82, 0x77, 0xba, 0x9d};
static const uint8_t dxgi[16] = {0x36, 0xc0, 0x11, 0xca, 0x02, 0x01, 0x2d, 0x4a,
                                 0xa6, 0xad, 0xf0, 0x3c, 0xfe, 0xd5, 0xd3, 0xc9};

/* hand_put moves the time on by 1,000 ticks. */
static void put_at(struct hand *h, uint64_t base, uint64_t us, const uint8_t *provider, uint16_t id,
                   uint8_t version, uint32_t pid, uint32_t tid)
{
    h->now = base + us * TICKS_PER_US - 1000;
    h->pid = pid;
    h->tid = tid;
    hand_put(h, (struct ew_etl_event){.header_type = 19,
                                      .provider = provider,
                                      .id = id,
                                      .version = version,
                                      .level = 4,
                                      .keyword = 1});
}

static void put_process(struct hand *h, uint32_t pid, uint32_t tid, const char *name)
{
    struct etl_process process = {.key = pid,
                                  .pid = pid,
                                  .parent_pid = 4,
                                  .session_id = 1,
                                  .exit_status = 259,
                                  .image = name,
                                  .command_line = name,
                                  .package = "",
                                  .application = ""};
    struct etl_thread thread = {.pid = pid, .tid = tid, .base_priority = 8};
    etl_process(&h->payload, 4, 8, &process);
    hand_put_kernel(h, 8, 0x0303, 4);
    etl_thread(&h->payload, 3, 8, &thread);
    hand_put_kernel(h, 8, 0x0503, 3);
}

static void put_objects(struct hand *h, uint64_t base, uint32_t pid, uint64_t device,
                        uint64_t context)
{
    etl_clear(&h->payload);
    etl_u64(&h->payload, pid);
    etl_u64(&h->payload, ADAPTER);
    etl_u32(&h->payload, 0);
    etl_u64(&h->payload, device);
    put_at(h, base, 110, dxgkrnl, 29, 2, 4, 8);
    etl_clear(&h->payload);
    etl_u64(&h->payload, device);
    for (unsigned i = 0; i < 8; i++)
        etl_u32(&h->payload, 0); /* node 0 */
    etl_u64(&h->payload, context);
    put_at(h, base, 120, dxgkrnl, 32, 0, 4, 8);
}

static void put_present(struct hand *h, uint64_t base, uint64_t us, uint32_t flags)
{
    etl_clear(&h->payload);
    etl_u64(&h->payload, 0x51);
    etl_u32(&h->payload, flags);
    etl_u32(&h->payload, 1);
    put_at(h, base, us, dxgi, 42, 0, GAME, GAME_THREAD);
}

static void put_submission(struct hand *h, uint64_t base, uint64_t us, uint32_t type,
                           uint32_t sequence, bool end)
{
    etl_clear(&h->payload);
    etl_u64(&h->payload, GAME_CONTEXT);
    etl_u32(&h->payload, type);
    etl_u32(&h->payload, sequence);
    put_at(h, base, us, dxgkrnl, end ? 180 : 178, 1, end ? 4 : GAME, end ? 8 : GAME_THREAD);
}

static void put_packet(struct hand *h, uint64_t base, uint64_t us, uint64_t context,
                       uint32_t sequence, uint16_t id)
{
    etl_clear(&h->payload);
    etl_u64(&h->payload, context);
    if (id == 175)
        etl_u64(&h->payload, context);
    etl_u32(&h->payload, 0);
    etl_u64(&h->payload, sequence);
    etl_u32(&h->payload, sequence);
    put_at(h, base, us, dxgkrnl, id, id == 176 ? 0 : 1, 4, 8);
}

static void put_frame(struct hand *h, uint64_t base, uint32_t number, bool packets)
{
    put_present(h, base, 0, 0);
    put_present(h, base, 50, 1);
    put_submission(h, base, 100, 0, number, false);
    if (packets) {
        put_submission(h, base, 150, 4, 1000 + number, false);
        put_packet(h, base, 200, GAME_CONTEXT, number, 175);
        put_packet(h, base, 250, GAME_CONTEXT, 0, 175);
        put_packet(h, base, 300, COMPOSITOR_CONTEXT, number, 175);
        put_packet(h, base, 6200, GAME_CONTEXT, number, 177);
        put_packet(h, base, 6300, GAME_CONTEXT, number, 176);
    }
    put_submission(h, base, 6350, 0, number, true);
    if (packets) {
        put_packet(h, base, 7200, COMPOSITOR_CONTEXT, number, 177);
        put_packet(h, base, 7250, COMPOSITOR_CONTEXT, number, 176);
    }
}

static int make(const struct make_options *o, struct make_output *output, bool packets)
{
    static struct hand h;
    int rc = hand_begin(&h, o, output);
    if (rc < 0)
        return rc;
    put_process(&h, GAME, GAME_THREAD, "game.exe");
    put_process(&h, COMPOSITOR, COMPOSITOR_THREAD, "dwm.exe");
    uint64_t base = h.now + 10000;
    if (packets) {
        put_objects(&h, base, GAME, GAME_DEVICE, GAME_CONTEXT);
        put_objects(&h, base + 1000, COMPOSITOR, COMPOSITOR_DEVICE, COMPOSITOR_CONTEXT);
    }
    for (uint32_t i = 0; i < FRAMES; i++)
        put_frame(&h, base + (1 + i) * (uint64_t)FRAME_US * TICKS_PER_US, 1 + i, packets);
    return hand_end(&h, 0, 0);
}

static int make_graphics(const struct make_options *o, struct make_output *output)
{
    return make(o, output, true);
}

static int make_submissions(const struct make_options *o, struct make_output *output)
{
    return make(o, output, false);
}

const struct make_kind make_graphics_kinds[] = {
    {"graphics", "a game and a compositor on one GPU: packets and presents", make_graphics},
    {"graphics-submissions", "the game without packets and contexts", make_submissions},
    {NULL, NULL, NULL},
};
