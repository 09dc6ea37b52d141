/* SPDX-License-Identifier: MIT */
/*
 * GPU time and presents from events of DxgKrnl, DXGI and Direct3D 9: their payloads, what each
 * process did, its parts in the intervals, and when it is an estimate or unknown.
 */
#include "tally_kit.h"

#include "decode/decode.h"

enum { ADAPTER = 0xA0, DEVICE = 0xD0, OTHER_DEVICE = 0xD8, CONTEXT = 0xC0, COPY = 0xC8 };
enum { OTHER_CONTEXT = 0xE0, QUEUE = 0xB0, WAIT_TYPE = 4 };

static struct ew_event ev_gpu(enum ew_event_kind kind, uint64_t t_ns)
{
    struct ew_event e = kit_event(kind, t_ns, NO, NO);
    e.from_manifest = true;
    e.u.gpu.pid = NO;
    return e;
}

static struct ew_event ev_device(uint64_t t_ns, uint64_t device, uint32_t pid)
{
    struct ew_event e = ev_gpu(EW_EVENT_GPU_DEVICE, t_ns);
    e.u.gpu.device = device;
    e.u.gpu.adapter = ADAPTER;
    e.u.gpu.pid = pid;
    return e;
}

static struct ew_event ev_context(uint64_t t_ns, uint64_t device, uint64_t context, uint32_t node)
{
    struct ew_event e = ev_gpu(EW_EVENT_GPU_CONTEXT, t_ns);
    e.u.gpu.device = device;
    e.u.gpu.context = context;
    e.u.gpu.node = node;
    return e;
}

static struct ew_event ev_packet(enum ew_event_kind kind, uint64_t t_ns, uint64_t context,
                                 uint32_t sequence)
{
    struct ew_event e = ev_gpu(kind, t_ns);
    e.u.gpu.context = context;
    e.u.gpu.sequence = sequence;
    return e;
}

static struct ew_event ev_submit(uint64_t t_ns, uint64_t context, uint32_t sequence, uint32_t pid)
{
    struct ew_event e = ev_packet(EW_EVENT_GPU_SUBMIT, t_ns, context, sequence);
    e.u.gpu.pid = pid;
    return e;
}

static struct ew_event ev_present(uint64_t t_ns, uint32_t pid, uint32_t tid)
{
    struct ew_event e = kit_event(EW_EVENT_PRESENT, t_ns, pid, tid);
    e.from_manifest = true;
    return e;
}

#define GIVEN(t, context, n) ev_packet(EW_EVENT_GPU_PACKET, US(t), (context), (n))
#define ENDED(t, context, n) ev_packet(EW_EVENT_GPU_PACKET_END, US(t), (context), (n))
#define SUBMITTED_END(t, context, n) ev_packet(EW_EVENT_GPU_SUBMIT_END, US(t), (context), (n))

/* Two processes with a context each on engine 0, and one of the first on engine 1. */
static void describe(void (*put)(void *to, struct ew_event event), void *to)
{
    put(to, ev_process(EW_EVENT_PROCESS_THERE, US(0), 100, 4, "alpha.exe"));
    put(to, ev_thread(EW_EVENT_THREAD_THERE, US(0), 100, 104));
    put(to, ev_process(EW_EVENT_PROCESS_THERE, US(0), 200, 4, "beta.exe"));
    put(to, ev_thread(EW_EVENT_THREAD_THERE, US(0), 200, 204));
    put(to, ev_device(US(1), DEVICE, 100));
    put(to, ev_device(US(1), OTHER_DEVICE, 200));
    put(to, ev_context(US(2), DEVICE, CONTEXT, 0));
    put(to, ev_context(US(2), DEVICE, COPY, 1));
    put(to, ev_context(US(2), OTHER_DEVICE, OTHER_CONTEXT, 0));
}

static void put_tally(void *to, struct ew_event event)
{
    feed(to, event);
}

static void put_pipe(void *to, struct ew_event event)
{
    pipe_feed(to, event);
}

static struct ew_tally *open_described(void)
{
    struct ew_tally *tally = tally_open(tally_config());
    describe(put_tally, tally);
    return tally;
}

static void check_gpu(const struct ew_tally *tally, uint32_t pid, uint64_t us, bool estimated)
{
    take_totals(tally, false);
    const struct ew_total *total = total_of(pid);
    CHECK((total->flags & EW_TOTAL_GPU) != 0);
    CHECK_EQ_UINT(total->gpu_ns, us * 1000);
    CHECK_EQ_INT((total->flags & EW_TOTAL_GPU_ESTIMATED) != 0, estimated);
}

/* -------------------------------------------------------------------------- payloads */

static const uint8_t dxgkrnl[16] = {0x5a, 0xc4, 0x2e, 0x80, 0x99, 0x1e, 0x83, 0x4b,
                                    0x99, 0x20, 0x87, 0xc9, 0x82, 0x77, 0xba, 0x9d};
static const uint8_t dxgi[16] = {0x36, 0xc0, 0x11, 0xca, 0x02, 0x01, 0x2d, 0x4a,
                                 0xa6, 0xad, 0xf0, 0x3c, 0xfe, 0xd5, 0xd3, 0xc9};
static const uint8_t d3d9[16] = {0x0a, 0xca, 0x3a, 0x78, 0x0e, 0x79, 0x7f, 0x4d,
                                 0x84, 0x51, 0xaa, 0x85, 0x05, 0x11, 0xc6, 0xb9};

/* sizes: a digit per field, p for a pointer; the n-th field has the value n + 1. */
static size_t fill(uint8_t *bytes, const char *sizes, uint32_t p)
{
    size_t at = 0;
    for (size_t i = 0; sizes[i] != '\0'; i++) {
        size_t size = sizes[i] == 'p' ? p : (size_t)(sizes[i] - '0');
        memset(bytes + at, 0, size);
        bytes[at] = (uint8_t)(i + 1);
        at += size;
    }
    return at;
}

static bool decode(const uint8_t provider[16], uint16_t id, const uint8_t *bytes, size_t size,
                   uint32_t p, struct ew_event *ret_event)
{
    const struct ew_record record = {.kind = EW_RECORD_MANIFEST,
                                     .provider = provider,
                                     .id = id,
                                     .version = 1,
                                     .pointer_size = (uint8_t)p,
                                     .payload = bytes,
                                     .payload_size = (uint32_t)size,
                                     .pid = 77,
                                     .tid = 78};
    return ew_decode_event(&record, ret_event);
}

TEST(payloads_of_the_graphics_kernel_are_decoded)
{
    static const struct {
        uint16_t id;
        const char *sizes;
        uint8_t kind;
        uint64_t adapter, device, context, queue;
        uint32_t pid, node, sequence;
    } rows[] = {
        {27, "pp4p", EW_EVENT_GPU_DEVICE, 2, 4, 0, 0, 1, 0, 0},
        {29, "pp4p", EW_EVENT_GPU_DEVICE, 2, 4, 0, 0, 1, 0, 0},
        {30, "p44444444p", EW_EVENT_GPU_CONTEXT, 0, 1, 10, 0, 77, 2, 0},
        {32, "p44444444p", EW_EVENT_GPU_CONTEXT, 0, 1, 10, 0, NO, 2, 0},
        {31, "p44444444p", EW_EVENT_GPU_CONTEXT_END, 0, 1, 10, 0, NO, 2, 0},
        {422, "ppp", EW_EVENT_GPU_QUEUE, 0, 0, 1, 3, NO, 0, 0},
        {424, "ppp", EW_EVENT_GPU_QUEUE, 0, 0, 1, 3, NO, 0, 0},
        {175, "pp484", EW_EVENT_GPU_PACKET, 0, 0, 1, 0, NO, 0, 5},
        {176, "p484", EW_EVENT_GPU_PACKET_END, 0, 0, 1, 0, NO, 0, 4},
        {177, "p484", EW_EVENT_GPU_PACKET_END, 0, 0, 1, 0, NO, 0, 4},
        {178, "p44", EW_EVENT_GPU_SUBMIT, 0, 0, 1, 0, 77, 0, 3},
        {180, "p44", EW_EVENT_GPU_SUBMIT_END, 0, 0, 1, 0, NO, 0, 3},
    };
    uint8_t bytes[128];
    struct ew_event event;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].sizes);
        for (uint32_t p = 4; p <= 8; p += 4) {
            size_t size = fill(bytes, rows[i].sizes, p);
            CHECK(decode(dxgkrnl, rows[i].id, bytes, size, p, &event));
            CHECK_EQ_UINT(event.kind, rows[i].kind);
            CHECK_EQ_UINT(event.u.gpu.adapter, rows[i].adapter);
            CHECK_EQ_UINT(event.u.gpu.device, rows[i].device);
            CHECK_EQ_UINT(event.u.gpu.context, rows[i].context);
            CHECK_EQ_UINT(event.u.gpu.queue, rows[i].queue);
            CHECK_EQ_UINT(event.u.gpu.pid, rows[i].pid);
            CHECK_EQ_UINT(event.u.gpu.node, rows[i].node);
            CHECK_EQ_UINT(event.u.gpu.sequence, rows[i].sequence);
            CHECK(!decode(dxgkrnl, rows[i].id, bytes, size - 1, p, &event));
        }
    }
}

TEST(presents_are_decoded_but_not_their_tests)
{
    uint8_t bytes[16] = {0};
    struct ew_event event;
    CHECK(decode(dxgi, 42, bytes, 12, 8, &event));
    CHECK_EQ_UINT(event.kind, EW_EVENT_PRESENT);
    CHECK(decode(dxgi, 55, bytes, 12, 8, &event));
    CHECK_EQ_UINT(event.kind, EW_EVENT_PRESENT);
    CHECK(decode(d3d9, 1, bytes, 12, 8, &event));
    CHECK_EQ_UINT(event.kind, EW_EVENT_PRESENT);
    CHECK(decode(dxgi, 43, bytes, 12, 8, &event));
    CHECK_EQ_UINT(event.kind, EW_EVENT_OTHER);
    bytes[8] = 1; /* DXGI_PRESENT_TEST */
    CHECK(decode(dxgi, 42, bytes, 12, 8, &event));
    CHECK_EQ_UINT(event.kind, EW_EVENT_OTHER);
    CHECK(!decode(dxgi, 42, bytes, 11, 8, &event));
}

/* ---------------------------------------------------------------------------- totals */

TEST(an_engine_works_on_one_packet_after_the_other)
{
    struct ew_tally *tally = open_described();
    feed(tally, GIVEN(100, CONTEXT, 1));       /* runs 100 to 400 */
    feed(tally, GIVEN(200, OTHER_CONTEXT, 9)); /* waits, runs 400 to 450 */
    feed(tally, GIVEN(300, CONTEXT, 2));       /* waits, runs 450 to 600 */
    feed(tally, ENDED(400, CONTEXT, 1));
    feed(tally, ENDED(450, OTHER_CONTEXT, 9));
    feed(tally, ENDED(600, CONTEXT, 2));
    feed(tally, GIVEN(1000, CONTEXT, 3)); /* after idle time */
    feed(tally, ENDED(1100, CONTEXT, 3));
    ew_tally_finish(tally, US(2000), NULL);
    check_gpu(tally, 100, 300 + 150 + 100, false);
    check_gpu(tally, 200, 50, false);
    ew_tally_free(tally);
}

TEST(engines_work_at_the_same_time)
{
    struct ew_tally *tally = open_described();
    feed(tally, GIVEN(100, CONTEXT, 1));
    feed(tally, GIVEN(150, COPY, 1));
    feed(tally, ENDED(300, CONTEXT, 1));
    feed(tally, ENDED(350, COPY, 1));
    ew_tally_finish(tally, US(2000), NULL);
    check_gpu(tally, 100, 200 + 200, false);
    check_gpu(tally, 200, 0, false); /* it did nothing, which is known */
    ew_tally_free(tally);
}

TEST(both_ends_of_a_packet_count_once)
{
    struct ew_tally *tally = open_described();
    feed(tally, GIVEN(100, CONTEXT, 1));
    feed(tally, GIVEN(110, OTHER_CONTEXT, 1));
    feed(tally, ENDED(300, CONTEXT, 1)); /* the interrupt, */
    feed(tally, ENDED(310, CONTEXT, 1)); /* then the scheduler */
    feed(tally, ENDED(400, OTHER_CONTEXT, 1));
    ew_tally_finish(tally, US(2000), NULL);
    check_gpu(tally, 100, 200, false);
    check_gpu(tally, 200, 100, false);
    ew_tally_free(tally);
}

TEST(notifications_without_a_number_are_no_work)
{
    struct ew_tally *tally = open_described();
    feed(tally, GIVEN(100, CONTEXT, 0));
    feed(tally, ENDED(300, CONTEXT, 0));
    feed(tally, GIVEN(400, CONTEXT, 1));
    feed(tally, ENDED(500, CONTEXT, 1));
    ew_tally_finish(tally, US(2000), NULL);
    check_gpu(tally, 100, 100, false);
    ew_tally_free(tally);
}

TEST(work_that_runs_at_the_end_counts_up_to_it)
{
    struct ew_tally *tally = open_described();
    feed(tally, GIVEN(100, CONTEXT, 1));
    ew_tally_finish(tally, US(700), NULL);
    check_gpu(tally, 100, 600, false);
    ew_tally_free(tally);
}

TEST(work_that_ends_out_of_order_is_an_estimate)
{
    struct ew_tally *tally = open_described();
    feed(tally, GIVEN(100, CONTEXT, 1));
    feed(tally, GIVEN(110, OTHER_CONTEXT, 5));
    feed(tally, ENDED(200, OTHER_CONTEXT, 5));
    feed(tally, ENDED(300, CONTEXT, 1));
    ew_tally_finish(tally, US(2000), NULL);
    check_gpu(tally, 100, 200, true);
    ew_tally_free(tally);
}

TEST(a_packet_that_never_ends_does_not_run_for_ever)
{
    struct ew_tally *tally = open_described();
    feed(tally, GIVEN(100, CONTEXT, 1));
    feed(tally, ENDED(300, CONTEXT, 1));
    feed(tally, GIVEN(400, CONTEXT, 2));
    ew_tally_finish(tally, US(60000000), NULL);
    check_gpu(tally, 100, 200, true);
    ew_tally_free(tally);
}

TEST(submissions_stand_in_for_packets_and_are_estimates)
{
    struct ew_tally *tally = open_described();
    struct ew_event wait = ev_submit(US(50), CONTEXT, 7, 100);
    wait.u.gpu.packet_type = WAIT_TYPE; /* for another GPU or process: no work */
    feed(tally, wait);
    feed(tally, ev_submit(US(100), CONTEXT, 1, 100));
    feed(tally, SUBMITTED_END(350, CONTEXT, 1));
    ew_tally_finish(tally, US(2000), NULL);
    check_gpu(tally, 100, 250, true);
    ew_tally_free(tally);
}

TEST(where_packets_are_recorded_submissions_do_not_count)
{
    struct ew_tally *tally = open_described();
    feed(tally, ev_submit(US(100), CONTEXT, 1, 100));
    feed(tally, GIVEN(150, CONTEXT, 1));
    feed(tally, ENDED(250, CONTEXT, 1));
    feed(tally, SUBMITTED_END(300, CONTEXT, 1));
    feed(tally, ev_submit(US(400), CONTEXT, 2, 100));
    feed(tally, SUBMITTED_END(500, CONTEXT, 2));
    ew_tally_finish(tally, US(2000), NULL);
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(100)->gpu_ns, 100000);
    ew_tally_free(tally);
}

TEST(hardware_queues_count_by_their_submissions)
{
    struct ew_tally *tally = open_described();
    struct ew_event queue = ev_gpu(EW_EVENT_GPU_QUEUE, US(3));
    queue.u.gpu.context = CONTEXT;
    queue.u.gpu.queue = QUEUE;
    feed(tally, queue);
    feed(tally, GIVEN(10, COPY, 1));
    feed(tally, ENDED(20, COPY, 1));
    feed(tally, ev_submit(US(100), QUEUE, 1, 100));
    feed(tally, SUBMITTED_END(400, QUEUE, 1));
    ew_tally_finish(tally, US(2000), NULL);
    check_gpu(tally, 100, 310, true);
    ew_tally_free(tally);
}

TEST(a_context_without_description_belongs_to_the_process_that_submits)
{
    struct ew_tally *tally = open_described();
    feed(tally, ev_submit(US(100), 0x999, 1, 200));
    feed(tally, GIVEN(150, 0x999, 1));
    feed(tally, ENDED(250, 0x999, 1));
    ew_tally_finish(tally, US(2000), NULL);
    check_gpu(tally, 200, 100, true);
    ew_tally_free(tally);
}

/* Then a process without any GPU time may have done it: unknown, not 0. */
TEST(work_of_an_unknown_process_makes_zeros_unknown)
{
    struct ew_tally *tally = open_described();
    feed(tally, GIVEN(100, 0x999, 1));
    feed(tally, ENDED(250, 0x999, 1));
    feed(tally, GIVEN(300, CONTEXT, 1));
    feed(tally, ENDED(400, CONTEXT, 1));
    ew_tally_finish(tally, US(2000), NULL);
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(100)->gpu_ns, 100000);
    CHECK((total_of(200)->flags & EW_TOTAL_GPU) == 0);
    CHECK(system_of(tally).unattributed > 0);
    ew_tally_free(tally);
}

TEST(without_events_of_a_gpu_its_time_is_unknown)
{
    struct ew_tally *tally = tally_open(tally_config());
    feed(tally, ev_process(EW_EVENT_PROCESS_THERE, US(0), 100, 4, "alpha.exe"));
    ew_tally_finish(tally, US(10), NULL);
    take_totals(tally, false);
    CHECK_EQ_UINT(
        total_of(100)->flags & (EW_TOTAL_GPU | EW_TOTAL_GPU_ESTIMATED | EW_TOTAL_PRESENTS), 0);
    ew_tally_free(tally);
}

TEST(a_context_ends_and_its_handle_is_used_again)
{
    struct ew_tally *tally = open_described();
    for (uint64_t i = 0; i < 20000; i++) { /* more than fit at once */
        struct ew_event end = ev_gpu(EW_EVENT_GPU_CONTEXT_END, US(10));
        end.u.gpu.context = 0x100000 + 16 * i;
        feed(tally, ev_context(US(5), DEVICE, 0x100000 + 16 * i, 0));
        feed(tally, end);
    }
    struct ew_event end = ev_gpu(EW_EVENT_GPU_CONTEXT_END, US(10));
    end.u.gpu.context = CONTEXT;
    feed(tally, end);
    feed(tally, ev_context(US(20), OTHER_DEVICE, CONTEXT, 0));
    feed(tally, GIVEN(100, CONTEXT, 1));
    feed(tally, ENDED(200, CONTEXT, 1));
    ew_tally_finish(tally, US(2000), NULL);
    check_gpu(tally, 200, 100, false);
    CHECK_EQ_UINT(system_of(tally).refused, 0);
    ew_tally_free(tally);
}

TEST(contexts_are_found_when_others_have_ended)
{
    struct ew_tally *tally = open_described();
    for (uint64_t i = 0; i < 16000; i++)
        feed(tally, ev_context(US(5), DEVICE, 0x100000 + 16 * i, 0));
    for (uint64_t i = 0; i < 16000; i += 2) {
        struct ew_event end = ev_gpu(EW_EVENT_GPU_CONTEXT_END, US(10));
        end.u.gpu.context = 0x100000 + 16 * i;
        feed(tally, end);
    }
    for (uint64_t i = 1; i < 16000; i += 2) {
        feed(tally, GIVEN(100 + 2 * i, 0x100000 + 16 * i, 1));
        feed(tally, ENDED(101 + 2 * i, 0x100000 + 16 * i, 1));
    }
    ew_tally_finish(tally, US(100000), NULL);
    check_gpu(tally, 100, 8000, false);
    ew_tally_free(tally);
}

TEST(more_contexts_than_there_is_room_for_are_counted_as_refused)
{
    struct ew_tally *tally = open_described();
    for (uint64_t i = 0; i < 20000; i++)
        feed(tally, ev_context(US(5), DEVICE, 0x100000 + 16 * i, 0));
    feed(tally, GIVEN(100, CONTEXT, 1));
    feed(tally, ENDED(200, CONTEXT, 1));
    ew_tally_finish(tally, US(2000), NULL);
    check_gpu(tally, 100, 100, true);
    CHECK(system_of(tally).refused > 0);
    ew_tally_free(tally);
}

TEST(after_a_loss_what_ran_is_unknown)
{
    struct ew_tally *tally = open_described();
    feed(tally, GIVEN(100, CONTEXT, 1));
    ew_tally_loss(tally, 0, US(300), 5, NULL);
    feed(tally, ENDED(900, CONTEXT, 1));
    feed(tally, GIVEN(1000, CONTEXT, 2));
    feed(tally, ENDED(1100, CONTEXT, 2));
    ew_tally_finish(tally, US(2000), NULL);
    check_gpu(tally, 100, 100, true);
    ew_tally_free(tally);
}

TEST(presents_are_counted_by_process)
{
    struct ew_tally *tally = open_described();
    for (uint64_t i = 0; i < 60; i++)
        feed(tally, ev_present(US(100 + i), 100, 104));
    feed(tally, ev_present(US(300), 200, 204));
    ew_tally_finish(tally, US(2000), NULL);
    take_totals(tally, false);
    CHECK((total_of(100)->flags & EW_TOTAL_PRESENTS) != 0);
    CHECK_EQ_UINT(total_of(100)->presents, 60);
    CHECK_EQ_UINT(total_of(200)->presents, 1);
    ew_tally_free(tally);
}

/* ------------------------------------------------------------------------- intervals */

static struct pipeline *open_pipe(uint32_t pid)
{
    struct pipeline *p = pipe_open(tally_config(), 1000, false);
    p->only_pid = pid;
    describe(put_pipe, p);
    return p;
}

static uint64_t gpu_us(const struct pipeline *p, size_t n)
{
    CHECK(n < p->kept_count);
    CHECK(etwatch_sample_has(&p->kept[n], ETWATCH_M_gpu_ns));
    return p->kept[n].gpu_ns / 1000;
}

TEST(work_is_split_exactly_at_interval_ends)
{
    struct pipeline *p = open_pipe(100);
    pipe_feed(p, GIVEN(700, CONTEXT, 1));
    pipe_feed(p, ENDED(3200, CONTEXT, 1));
    pipe_feed(p, ev_present(US(3300), 100, 104));
    pipe_feed(p, ev_present(US(3400), 100, 104));
    pipe_finish(p, US(5000));
    CHECK_EQ_UINT(p->kept_count, 4);
    CHECK_EQ_UINT(gpu_us(p, 0), 300);
    CHECK_EQ_UINT(gpu_us(p, 1), 1000);
    CHECK_EQ_UINT(gpu_us(p, 2), 1000);
    CHECK_EQ_UINT(gpu_us(p, 3), 200);
    CHECK_NEAR(p->kept[1].gpu_percent, 100, 0.01);
    CHECK(etwatch_sample_has(&p->kept[3], ETWATCH_M_presents));
    CHECK_EQ_UINT(p->kept[3].presents, 2);
    CHECK(!etwatch_sample_has(&p->kept[0], ETWATCH_M_presents)); /* none was recorded so far */
    pipe_close(p);
}

TEST(an_interval_without_gpu_work_has_a_known_zero)
{
    struct pipeline *p = open_pipe(100);
    pipe_feed(p, GIVEN(100, CONTEXT, 1));
    pipe_feed(p, ENDED(200, CONTEXT, 1));
    pipe_feed(p, ev_switch(US(1100), 0, 0, 104, WAITING));
    pipe_feed(p, ev_switch(US(1200), 0, 104, 0, WAITING));
    pipe_finish(p, US(3000));
    CHECK_EQ_UINT(p->kept_count, 2);
    CHECK_EQ_UINT(gpu_us(p, 0), 100);
    CHECK_EQ_UINT(gpu_us(p, 1), 0);
    pipe_close(p);
}

TEST(work_up_to_the_exit_of_its_process_counts)
{
    struct pipeline *p = open_pipe(100);
    pipe_feed(p, GIVEN(1100, CONTEXT, 1));
    pipe_feed(p, ev_present(US(1200), 100, 104));
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_END, US(1600), 100, 4, "alpha.exe"));
    pipe_feed(p, ENDED(1900, CONTEXT, 1));
    pipe_finish(p, US(5000));
    CHECK(etwatch_sample_has(&p->exit, ETWATCH_M_gpu_ns));
    CHECK_EQ_UINT(p->exit.gpu_ns, 500000);
    CHECK_EQ_UINT(p->exit.presents, 1);
    pipe_close(p);
}

TEST(gpu_events_are_ignored_where_something_else_counts)
{
    struct ew_tally_config config = tally_config();
    config.ignore_gpu = true;
    struct ew_tally *tally = tally_open(config);
    describe(put_tally, tally);
    feed(tally, GIVEN(100, CONTEXT, 1));
    feed(tally, ENDED(200, CONTEXT, 1));
    ew_tally_finish(tally, US(300), NULL);
    take_totals(tally, false);
    CHECK((total_of(100)->flags & EW_TOTAL_GPU) == 0);
    ew_tally_free(tally);
}

static int torture_body(void *ctx)
{
    struct ew_tally_config config = tally_config();
    struct ew_tally *tally = NULL;
    (void)ctx;
    int rc = ew_tally_new(&config, &tally);
    const struct ew_event events[] = {
        ev_device(US(1), DEVICE, 100), ev_context(US(2), DEVICE, CONTEXT, 0),
        ev_submit(US(3), CONTEXT, 1, 100), GIVEN(4, CONTEXT, 1), ENDED(9, CONTEXT, 1)};
    for (size_t i = 0; i < sizeof events / sizeof events[0] && tally != NULL; i++) {
        struct ew_record record = {.t_ns = events[i].t_ns, .pid = NO, .tid = NO};
        int failed = ew_tally_event(tally, &record, &events[i], NULL);
        rc = rc == 0 ? failed : rc;
    }
    ew_tally_free(tally);
    return rc;
}

TEST(a_failed_allocation_is_reported)
{
    TORTURE(torture_body, NULL);
}
