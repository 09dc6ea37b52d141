/* SPDX-License-Identifier: MIT */
/*
 * The work of threads: which thread faults, I/O and network bytes belong to; gauges, images,
 * limits.
 */
#include "tally_kit.h"

static void rundown(struct ew_tally *tally)
{
    feed(tally, ev_process(EW_EVENT_PROCESS_THERE, US(0), 100, 4, "alpha.exe"));
    feed(tally, ev_thread(EW_EVENT_THREAD_THERE, US(0), 100, 104));
    feed(tally, ev_process(EW_EVENT_PROCESS_THERE, US(0), 200, 100, "beta.exe"));
    feed(tally, ev_thread(EW_EVENT_THREAD_THERE, US(0), 200, 204));
}

TEST(a_fault_without_ids_belongs_to_the_running_thread)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_fault(US(1), 0, NO, NO, 11)); /* no running thread is known */
    feed(tally, ev_switch(US(2), 0, 0, 104, WAITING));
    feed(tally, ev_fault(US(3), 0, NO, NO, 11));
    feed(tally, ev_fault(US(4), 0, NO, 204, 10));
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_faults_minor], 1);
    CHECK_EQ_UINT(total_of(200)->counter[EW_C_faults_minor], 1);
    CHECK_EQ_UINT(system_of(tally).unattributed, 1);
    ew_tally_free(tally);
}

TEST(a_hard_fault_is_counted_once)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_fault(US(3), 0, NO, 104, 14)); /* the class of all faults logs it as well */
    struct ew_event hard = kit_event(EW_EVENT_HARD_FAULT, US(4), NO, 104);
    feed(tally, hard);
    feed(tally, ev_fault(US(5), 0, NO, 104, 12));
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_faults_major], 1);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_faults_minor], 1);
    ew_tally_free(tally);
}

TEST(a_header_with_both_ids_assigns_the_thread_to_its_process)
{
    struct ew_tally *tally = tally_open(tally_config());
    struct ew_event fault = ev_fault(US(1), 0, 300, 304, 11);
    struct ew_record record = {.pid = 300, .tid = 304};
    CHECK_EQ_INT(ew_tally_event(tally, &record, &fault, NULL), 0);
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(300)->counter[EW_C_faults_minor], 1);
    ew_tally_free(tally);
}

static struct ew_event by_manifest(struct ew_event event)
{
    event.from_manifest = true;
    return event;
}

TEST(an_event_logged_by_class_and_manifest_provider_counts_once)
{
    struct ew_tally *tally = tally_open(tally_config());
    feed(tally, by_manifest(ev_process(EW_EVENT_PROCESS_START, US(0), 100, 4, "alpha.exe")));
    feed(tally, by_manifest(ev_thread(EW_EVENT_THREAD_START, US(0), 100, 104)));
    feed(tally, by_manifest(ev_net(EW_EVENT_NET_SEND, US(1), 100, NO, 5)));
    feed(tally, ev_io(EW_EVENT_FILE_READ, US(2), 104, 0x10, 10));
    feed(tally, by_manifest(ev_io(EW_EVENT_FILE_READ, US(2), 104, 0x10, 10)));
    feed(tally, ev_process(EW_EVENT_PROCESS_START, US(3), 200, 100, "beta.exe"));
    feed(tally, by_manifest(ev_process(EW_EVENT_PROCESS_START, US(3), 200, 100, "beta.exe")));
    feed(tally, ev_process(EW_EVENT_PROCESS_END, US(4), 200, 100, "beta.exe"));
    feed(tally, by_manifest(ev_process(EW_EVENT_PROCESS_END, US(4), 200, 100, "beta.exe")));
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_net_sent_bytes], 5);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_io_read_bytes], 10);
    uint32_t betas = 0;
    for (size_t i = 0; i < kit_totals.count; i++)
        betas += kit_totals.total[i].pid == 200;
    CHECK_EQ_UINT(betas, 1);
    ew_tally_free(tally);
}

TEST(files_count_bytes_and_operations)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_io(EW_EVENT_FILE_READ, US(1), 104, 0x10, 4096));
    feed(tally, ev_io(EW_EVENT_FILE_READ, US(2), 104, 0x10, 100));
    feed(tally, ev_io(EW_EVENT_FILE_WRITE, US(3), 204, 0x10, 7));
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_io_read_bytes], 4196);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_io_read_ops], 2);
    CHECK_EQ_UINT(total_of(200)->counter[EW_C_io_write_bytes], 7);
    CHECK_EQ_UINT(total_of(200)->counter[EW_C_io_write_ops], 1);
    CHECK_EQ_UINT(total_of(200)->counter[EW_C_io_read_ops], 0);
    ew_tally_free(tally);
}

TEST(a_disk_transfer_belongs_to_the_thread_that_issued_it)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally,
         ev_io(EW_EVENT_DISK_READ, US(1), 104, 0x1000, 512)); /* version 3 names the thread */
    feed(tally, ev_io(EW_EVENT_DISK_INIT, US(2), 204, 0x2000, 0));
    feed(tally, ev_io(EW_EVENT_DISK_READ, US(3), NO, 0x2000, 1024)); /* version 2 does not */
    feed(tally, ev_io(EW_EVENT_DISK_WRITE, US(4), NO, 0x3000, 99));
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_disk_read_bytes], 512);
    CHECK_EQ_UINT(total_of(200)->counter[EW_C_disk_read_bytes], 1024);
    CHECK_EQ_UINT(system_of(tally).unattributed, 1);
    ew_tally_free(tally);
}

TEST(a_transfer_that_ends_after_its_thread_belongs_to_the_process)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_io(EW_EVENT_DISK_INIT, US(2), 104, 0x2000, 0));
    feed(tally, ev_thread(EW_EVENT_THREAD_END, US(3), 100, 104));
    feed(tally, ev_thread(EW_EVENT_THREAD_START, US(4), 200, 104)); /* the ID is reused */
    feed(tally, ev_io(EW_EVENT_DISK_WRITE, US(5), 104, 0x2000, 4096));
    take_totals(tally, true);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_disk_write_bytes], 4096);
    CHECK_EQ_UINT(total_of(200)->counter[EW_C_disk_write_bytes], 0);
    CHECK_EQ_UINT(total_nth(100, 100, 0)->counter[EW_C_disk_write_bytes], 4096);
    ew_tally_free(tally);
}

TEST(network_bytes_belong_to_the_process_in_the_event)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_net(EW_EVENT_NET_SEND, US(1), 100, 104, 10)); /* in its own thread */
    feed(tally,
         ev_net(EW_EVENT_NET_RECEIVE, US(2), 100, 204, 20)); /* in the thread of another process */
    feed(tally, ev_net(EW_EVENT_NET_RECEIVE, US(3), 100, NO, 40));
    take_totals(tally, true);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_net_sent_bytes], 10);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_net_received_bytes], 60);
    CHECK_EQ_UINT(total_nth(100, 104, 0)->counter[EW_C_net_sent_bytes], 10);
    CHECK_EQ_UINT(total_nth(100, 100, 0)->counter[EW_C_net_received_bytes], 60);
    CHECK_EQ_UINT(total_of(200)->counter[EW_C_net_received_bytes], 0);
    CHECK_EQ_UINT(total_of(100)->thread_count, 1);
    ew_tally_free(tally);
}

TEST(memory_is_reported_from_working_sets_and_at_the_end)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    kit_sets[0] = (struct ew_working_set){.pid = 100,
                                          .working_set_bytes = 8192,
                                          .private_working_set_bytes = 2048,
                                          .commit_bytes = 4096,
                                          .virtual_bytes = 65536};
    kit_set_count = 1;
    feed(tally, kit_event(EW_EVENT_WORKING_SETS, US(1), NO, NO));
    struct ew_event counters = kit_event(EW_EVENT_PROCESS_COUNTERS, US(2), 200, NO);
    counters.u.counters.peak_working_set_bytes = 1 << 20;
    counters.u.counters.working_set_bytes = 1 << 19;
    counters.u.counters.handle_count = 33;
    feed(tally, counters);
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(100)->gauge[EW_G_rss_bytes], 8192);
    CHECK_EQ_UINT(total_of(100)->gauge[EW_G_private_bytes], 4096);
    CHECK_EQ_UINT(total_of(100)->gauge[EW_G_rss_private_bytes], 2048);
    CHECK_EQ_UINT(total_of(100)->gauge_has & EW_HAS_G(rss_peak_bytes), 0);
    CHECK_EQ_UINT(total_of(200)->gauge[EW_G_rss_peak_bytes], 1 << 20);
    CHECK_EQ_UINT(total_of(200)->gauge[EW_G_handles], 33);
    ew_tally_free(tally);
}

TEST(faults_in_the_final_counts_replace_those_not_recorded)
{
    struct ew_tally *tally = tally_open(tally_config());
    feed(tally, ev_process(EW_EVENT_PROCESS_START, US(0), 100, 4, "alpha.exe"));
    feed(tally, ev_thread(EW_EVENT_THREAD_START, US(0), 100, 104));
    feed(tally, kit_event(EW_EVENT_HARD_FAULT, US(1), NO, 104));
    struct ew_event counters = kit_event(EW_EVENT_PROCESS_COUNTERS, US(2), 100, NO);
    counters.u.counters.fault_count = 50;
    feed(tally, counters);
    take_totals(tally, false);
    CHECK((total_of(100)->counter_has & EW_HAS_C(faults_minor)) != 0);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_faults_minor], 49);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_faults_major], 1);
    ew_tally_free(tally);
}

static int keep_image(void *ctx, const struct ew_tally_image *image)
{
    struct ew_tally_image *to = ctx;
    while (to->path != NULL)
        to++;
    *to = *image;
    return 0;
}

TEST(images_are_kept_on_request)
{
    struct ew_tally_config config = tally_config();
    config.images = true;
    struct ew_tally *tally = tally_open(config);
    rundown(tally);
    struct ew_event image = kit_event(EW_EVENT_IMAGE_THERE, US(1), 100, NO);
    image.u.image.base = 0x10000;
    image.u.image.bytes = 0x2000;
    image.u.image.path = kit_text("\\Device\\a.dll");
    feed(tally, image);
    image.kind = EW_EVENT_IMAGE_LOAD;
    image.t_ns = US(2);
    image.u.image.base = 0x90000;
    image.u.image.path = kit_text("\\Device\\b.dll");
    feed(tally, image);
    image.kind = EW_EVENT_IMAGE_UNLOAD;
    image.t_ns = US(3);
    feed(tally, image);
    image.kind = EW_EVENT_IMAGE_STILL;
    image.t_ns = US(4);
    image.u.image.base = 0x10000;
    feed(tally, image);
    struct ew_tally_image got[8] = {0};
    CHECK_EQ_INT(ew_tally_images(tally, keep_image, got), 0);
    CHECK_EQ_STR(got[0].path, "\\Device\\a.dll");
    CHECK_EQ_UINT(got[0].load_ns, 0);
    CHECK_EQ_UINT(got[0].unload_ns, 0);
    CHECK_EQ_STR(got[1].path, "\\Device\\b.dll");
    CHECK_EQ_UINT(got[1].load_ns, US(2));
    CHECK_EQ_UINT(got[1].unload_ns, US(3));
    CHECK(got[2].path == NULL);
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(100)->image_count, 2);
    ew_tally_free(tally);
}

TEST(names_are_the_last_path_component_in_utf8)
{
    struct ew_tally *tally = tally_open(tally_config());
    struct ew_event start = ev_process(EW_EVENT_PROCESS_START, US(0), 100, 4, "");
    static const uint8_t wide[] = {'\\', 0, 'd', 0, '\\', 0, 0xe9, 0, '.', 0, 'x', 0};
    start.u.process.image = (struct ew_event_text){.bytes = wide, .len = sizeof wide, .wide = true};
    start.u.process.command_line = kit_text("x --y");
    feed(tally, start);
    feed(tally, ev_process(EW_EVENT_PROCESS_START, US(1), 104, 4,
                           "b\xff"
                           "d.exe"));
    take_totals(tally, false);
    CHECK_EQ_STR(total_of(100)->name, "\xc3\xa9.x");
    CHECK_EQ_STR(total_of(100)->command_line, "x --y");
    CHECK_EQ_STR(total_of(104)->name, "b?d.exe");
    ew_tally_free(tally);
}

TEST(exited_processes_beyond_the_limit_are_summed_in_the_rest)
{
    struct ew_tally_config config = tally_config();
    config.max_processes = 4;
    struct ew_tally *tally = tally_open(config);
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t pid = 1000 + 8 * i, tid = pid + 4;
        feed(tally, ev_process(EW_EVENT_PROCESS_START, US(100 * i), pid, 4, "p.exe"));
        feed(tally, ev_thread(EW_EVENT_THREAD_START, US(100 * i + 1), pid, tid));
        feed(tally, ev_switch(US(100 * i + 10), 0, 0, tid, WAITING));
        feed(tally, ev_thread(EW_EVENT_THREAD_END, US(100 * i + 20), pid, tid));
        feed(tally, ev_process(EW_EVENT_PROCESS_END, US(100 * i + 21), pid, 4, "p.exe"));
        feed(tally, ev_switch(US(100 * i + 30), 0, tid, 0, TERMINATED));
    }
    ew_tally_finish(tally, US(10000), NULL);
    take_totals(tally, false);
    CHECK_EQ_UINT(kit_totals.count, 1 + 4 + 1);
    const struct ew_total *rest = total_of(NO);
    CHECK((rest->flags & EW_TOTAL_REST) != 0);
    CHECK_EQ_UINT(rest->process_count, 96);
    CHECK_EQ_UINT(cpu_us(rest), 96 * 20);
    CHECK_EQ_UINT(system_of(tally).busy_ns, 100 * 20000);
    CHECK_EQ_UINT(system_of(tally).refused, 0);
    ew_tally_free(tally);
}

/* One process after the other, each without its last switch. */
TEST(lost_last_switches_do_not_keep_processes_for_ever)
{
    struct ew_tally_config config = tally_config();
    config.max_processes = 20;
    struct ew_tally *tally = tally_open(config);
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t pid = 1000 + 8 * i, tid = pid + 4;
        uint64_t t = UINT64_C(1000000) * i;
        feed(tally, ev_process(EW_EVENT_PROCESS_START, US(t), pid, 4, "p.exe"));
        feed(tally, ev_thread(EW_EVENT_THREAD_START, US(t + 1), pid, tid));
        feed(tally, ev_switch(US(t + 10), 0, 0, tid, WAITING));
        feed(tally, ev_thread(EW_EVENT_THREAD_END, US(t + 20), pid, tid));
        feed(tally, ev_process(EW_EVENT_PROCESS_END, US(t + 21), pid, 4, "p.exe"));
        ew_tally_loss(tally, 0, US(t + 30), 1, NULL);
    }
    ew_tally_finish(tally, US(200000000), NULL);
    take_totals(tally, false);
    CHECK_EQ_UINT(system_of(tally).refused, 0);
    CHECK_EQ_UINT(total_of(NO)->process_count, 180);
    CHECK_EQ_UINT(system_of(tally).busy_ns, 200 * 11000);
    ew_tally_free(tally);
}

TEST(short_threads_need_no_memory)
{
    struct ew_tally_config config = tally_config();
    config.max_threads = 64;
    struct ew_tally *tally = tally_open(config);
    feed(tally, ev_process(EW_EVENT_PROCESS_START, US(0), 100, 4, "p.exe"));
    for (uint32_t i = 0; i < 10000; i++) {
        uint32_t tid = 4000 + 4 * (i % 5000);
        feed(tally, ev_thread(EW_EVENT_THREAD_START, US(30 * i + 1), 100, tid));
        feed(tally, ev_switch(US(30 * i + 10), 0, 0, tid, WAITING));
        feed(tally, ev_thread(EW_EVENT_THREAD_END, US(30 * i + 15), 100, tid));
        feed(tally, ev_switch(US(30 * i + 20), 0, tid, 0, TERMINATED));
    }
    take_totals(tally, true);
    CHECK_EQ_UINT(cpu_us(total_of(100)), 100000);
    CHECK_EQ_UINT(total_of(100)->thread_count, 10000);
    CHECK_EQ_UINT(system_of(tally).refused, 0);
    ew_tally_free(tally);
}

TEST(threads_beyond_the_limit_are_counted_and_their_time_is_not_attributed)
{
    struct ew_tally_config config = tally_config();
    config.max_threads = 2;
    struct ew_tally *tally = tally_open(config);
    rundown(tally);
    feed(tally, ev_switch(US(0), 0, 0, 304, WAITING));
    feed(tally, ev_switch(US(10), 0, 304, 104, WAITING));
    ew_tally_finish(tally, US(30), NULL);
    struct ew_tally_system s = system_of(tally);
    CHECK(s.refused > 0);
    CHECK_EQ_UINT(s.busy_ns, 20000);
    CHECK_EQ_UINT(s.unknown_ns, 10000);
    ew_tally_free(tally);
}

TEST(ids_of_any_size_are_distinguished)
{
    struct ew_tally *tally = tally_open(tally_config());
    static const uint32_t tids[] = {104, 105, 106, 1u << 26, (1u << 26) + 4, 0xfffffff0u, 7};
    feed(tally, ev_process(EW_EVENT_PROCESS_THERE, US(0), 100, 4, "alpha.exe"));
    uint32_t before = 0;
    for (uint32_t i = 0; i < 7; i++) {
        feed(tally, ev_thread(EW_EVENT_THREAD_THERE, US(10 * i), 100, tids[i]));
        feed(tally, ev_switch(US(10 * i + i), 0, before, tids[i], WAITING));
        before = tids[i];
    }
    ew_tally_finish(tally, US(80), NULL);
    take_totals(tally, true);
    for (uint32_t i = 0; i < 6; i++)
        CHECK_EQ_UINT(cpu_us(total_nth(100, tids[i], 0)), 11);
    ew_tally_free(tally);
}

TEST(the_process_of_an_event_can_be_queried)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_switch(US(1), 1, 0, 204, WAITING));
    uint32_t pid = NO, tid = NO;
    CHECK_EQ_STR(ew_tally_identify(tally, 1, &pid, &tid), "beta.exe");
    CHECK_EQ_UINT(pid, 200);
    CHECK_EQ_UINT(tid, 204);
    pid = NO, tid = 104;
    CHECK_EQ_STR(ew_tally_identify(tally, 1, &pid, &tid), "alpha.exe");
    CHECK_EQ_UINT(pid, 100);
    pid = NO, tid = NO;
    CHECK(ew_tally_identify(tally, 7, &pid, &tid) == NULL);
    CHECK_EQ_UINT(pid, NO);
    pid = 77, tid = 104;
    CHECK(ew_tally_identify(tally, 7, &pid, &tid) == NULL);
    ew_tally_free(tally);
}

/* Facts learned in a first pass are known from the beginning. */
TEST(a_first_pass_learns_the_preexisting_processes)
{
    struct ew_tally *tally = tally_open(tally_config());
    struct ew_event events[] = {
        ev_switch(US(0), 0, 0, 304, WAITING),
        ev_switch(US(10), 0, 304, 404, WAITING),
        ev_thread(EW_EVENT_THREAD_START, US(12), 300, 308),
        ev_thread(EW_EVENT_THREAD_STILL, US(20), 300, 304),
        ev_thread(EW_EVENT_THREAD_END, US(21), 400, 404),
        ev_process(EW_EVENT_PROCESS_STILL, US(22), 300, 4, "late.exe"),
        ev_process(EW_EVENT_PROCESS_START, US(23), 500, 4, "new.exe"),
        ev_process(EW_EVENT_PROCESS_END, US(24), 500, 4, "new.exe"),
        ev_process(EW_EVENT_PROCESS_START, US(25), 400, 4, "second.exe"),
        ev_process(EW_EVENT_PROCESS_STILL, US(26), 400, 4, "second.exe"),
        ev_process(EW_EVENT_PROCESS_STILL, US(27), 600, 4, "quiet.exe"),
    };
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        ew_tally_learn(tally, &events[i]);
    feed(tally, events[0]);
    uint32_t pid = NO, tid = 304;
    CHECK_EQ_STR(ew_tally_identify(tally, 0, &pid, &tid), "late.exe");
    CHECK_EQ_UINT(pid, 300);
    pid = 600;
    CHECK_EQ_STR(ew_tally_identify(tally, 0, &pid, &tid), "quiet.exe");
    pid = NO, tid = 404;
    CHECK(ew_tally_identify(tally, 0, &pid, &tid) ==
          NULL); /* the name belongs to the later process */
    CHECK_EQ_UINT(pid, 400);
    pid = NO, tid = 308;
    CHECK(ew_tally_identify(tally, 0, &pid, &tid) == NULL);
    CHECK_EQ_UINT(pid, NO);
    for (size_t i = 1; i < sizeof events / sizeof events[0]; i++)
        feed(tally, events[i]);
    take_totals(tally, false);
    CHECK_EQ_UINT(cpu_us(total_of(300)), 10);
    CHECK_EQ_UINT(total_of(300)->thread_count, 2);
    CHECK_EQ_UINT(total_of(500)->start_ns, US(23));
    CHECK_EQ_UINT(total_nth(400, 0, 0)->start_ns, 0);
    CHECK_EQ_UINT(total_nth(400, 0, 1)->start_ns, US(25));
    CHECK_EQ_UINT(kit_totals.count, 1 + 5);
    ew_tally_free(tally);
}

TEST(totals_can_be_computed_for_a_given_time)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_switch(US(0), 0, 0, 104, WAITING));
    feed(tally, ev_switch(US(0), 1, 4, 0, WAITING));
    ew_tally_charge_running(tally, US(25));
    take_totals(tally, false);
    CHECK_EQ_UINT(cpu_us(total_of(100)), 25);
    CHECK_EQ_UINT(cpu_us(total_of(0)), 25);
    feed(tally, ev_switch(US(40), 0, 104, 0, WAITING));
    take_totals(tally, false);
    CHECK_EQ_UINT(cpu_us(total_of(100)), 40);
    uint32_t pid = NO, tid = NO;
    CHECK_EQ_STR(ew_tally_identify(tally, 0, &pid, &tid), "Idle");
    CHECK_EQ_UINT(pid, 0);
    CHECK_EQ_UINT(tid, 0);
    ew_tally_free(tally);
}

TEST(a_thousand_processes_keep_their_names)
{
    struct ew_tally *tally = tally_open(tally_config());
    char name[32];
    for (uint32_t i = 1; i <= 1000; i++) {
        (void)snprintf(name, sizeof name, "p%u.exe", i);
        feed(tally, ev_process(EW_EVENT_PROCESS_START, US(i), 4 * i, 4, name));
        if (i % 3 == 0)
            feed(tally, ev_process(EW_EVENT_PROCESS_END, US(i), 4 * i, 4, ""));
    }
    for (uint32_t i = 1; i <= 1000; i++) {
        uint32_t pid = 4 * i, tid = NO;
        (void)snprintf(name, sizeof name, "p%u.exe", i);
        CHECK_EQ_STR(ew_tally_identify(tally, 0, &pid, &tid), name);
    }
    ew_tally_free(tally);
}

/* ---------------------------------------------------------------------- memory */

static int with_failures(void *ctx)
{
    (void)ctx;
    struct ew_tally_config config = tally_config();
    config.images = config.threads = true;
    struct ew_tally *tally;
    int r = ew_tally_new(&config, &tally);
    if (r < 0)
        return r;
    struct ew_event image = kit_event(EW_EVENT_IMAGE_LOAD, US(1), 100, NO);
    image.u.image.path = kit_text("a.dll");
    struct ew_event events[] = {
        ev_process(EW_EVENT_PROCESS_START, US(0), 100, 4, "alpha.exe"),
        ev_thread(EW_EVENT_THREAD_START, US(0), 100, 104),
        ev_thread(EW_EVENT_THREAD_START, US(0), 100, 3),
        image,
        ev_switch(US(2), 3, 0, 104, WAITING),
        ev_irq(US(3), US(4), 3, true),
        ev_io(EW_EVENT_DISK_INIT, US(5), 104, 0x1000, 0),
        ev_io(EW_EVENT_DISK_READ, US(6), 104, 0x1000, 10),
        ev_net(EW_EVENT_NET_SEND, US(7), 200, NO, 5),
        ev_thread(EW_EVENT_THREAD_END, US(8), 100, 3),
    };
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        int one = ew_tally_event(tally, NULL, &events[i], NULL);
        r = one < 0 ? one : r;
    }
    kit_totals.count = 0;
    int one = ew_tally_totals(tally, true, kit_on_total, &kit_totals);
    r = one < 0 ? one : r;
    ew_tally_free(tally);
    return r;
}

TEST(running_out_of_memory_is_reported_and_nothing_else_breaks)
{
    TORTURE(with_failures, NULL);
}

static struct ew_tally *busy_tally;

static void many_events(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; i < 1000; i++) {
        feed(busy_tally, ev_switch(US(10 + 2 * i), 0, i % 2 ? 104 : 204, i % 2 ? 204 : 104, READY));
        feed(busy_tally, ev_fault(US(11 + 2 * i), 0, NO, NO, 11));
    }
}

TEST(hot_events_do_not_allocate)
{
    busy_tally = tally_open(tally_config());
    rundown(busy_tally);
    feed(busy_tally, ev_switch(US(1), 0, 0, 104, WAITING));
    CHECK_EQ_UINT(test_count_allocations(many_events, NULL), 0);
    ew_tally_free(busy_tally);
}
