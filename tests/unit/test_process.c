/* SPDX-License-Identifier: MIT */
/* Queries about one process: the test process itself, for which the answers are known. */
#include <etwatch/process.h>

#include <stdlib.h>
#include <string.h>

#include "system.h"
#include "test.h"

#define ROOM 65536

static uint32_t self(void)
{
    return test_own_pid();
}

TEST(a_process_is_described_with_its_name_times_and_memory)
{
    struct etwatch_sample sample = {.size = sizeof sample};
    struct etwatch_process_id id;
    struct etwatch_error_info error = {.size = sizeof error};
    char name[64];
    CHECK_EQ_INT(etwatch_process_read(self(), 0, &sample, name, sizeof name, &id, &error), 0);
    CHECK_EQ_UINT(sample.pid, self());
    CHECK_EQ_UINT(sample.size, sizeof sample);
    CHECK_EQ_UINT(sample.type, ETWATCH_TYPE_SAMPLE);
    CHECK_CONTAINS(sample.name, "test_process");
    CHECK(etwatch_sample_has(&sample, ETWATCH_M_rss_bytes) && sample.rss_bytes > 0);
    CHECK(etwatch_sample_has(&sample, ETWATCH_M_threads) && sample.threads >= 1);
    CHECK(etwatch_sample_has(&sample, ETWATCH_M_cpu_user_ns));
    CHECK(etwatch_sample_has(&sample, ETWATCH_M_handles) && sample.handles > 0);
    CHECK_EQ_UINT(id.start_ns, sample.start_ns);
    CHECK(sample.start_ns <= sample.t_ns);
    CHECK_EQ_UINT(id.ppid, sample.ppid);
}

TEST(the_identity_of_a_process_does_not_change)
{
    struct etwatch_sample sample = {.size = sizeof sample};
    struct etwatch_process_id first, second;
    CHECK_EQ_INT(etwatch_process_read(self(), 0, &sample, NULL, 0, &first, NULL), 0);
    CHECK(sample.name == NULL);
    CHECK_EQ_INT(etwatch_process_read(self(), 0, &sample, NULL, 0, &second, NULL), 0);
    CHECK_NEAR((double)first.start_raw_ns, (double)second.start_raw_ns, 1e6);
}

TEST(a_name_is_truncated_to_the_buffer)
{
    struct etwatch_sample sample = {.size = sizeof sample};
    char name[5] = "zzzz";
    CHECK_EQ_INT(etwatch_process_read(self(), 0, &sample, name, sizeof name, NULL, NULL), 0);
    CHECK_EQ_STR(name, "test");
}

TEST(the_threads_of_a_process_are_listed_and_counted)
{
    struct etwatch_process_thread threads[64], none;
    int count = etwatch_process_threads(self(), threads, 64, NULL);
    CHECK(count >= 1 && count <= 64);
    CHECK(threads[0].tid != 0);
    CHECK(etwatch_metric_set_has(&threads[0].has, ETWATCH_M_cpu_user_ns));
    CHECK_EQ_INT(etwatch_process_threads(self(), &none, 0, NULL), count);
}

TEST(the_list_has_this_process_and_counts_what_does_not_fit)
{
    struct etwatch_process_id *ids = calloc(ROOM, sizeof *ids);
    CHECK(ids != NULL);
    int count = ids ? etwatch_process_list(ids, ROOM, NULL) : 0, found = 0;
    for (int i = 0; i < count && i < ROOM; i++)
        found += ids[i].pid == self();
    CHECK_EQ_INT(found, 1);
    CHECK(etwatch_process_list(NULL, 0, NULL) > 0);
    free(ids);
}

TEST(an_unknown_process_is_an_error_with_a_message)
{
    struct etwatch_sample sample = {.size = sizeof sample};
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_process_thread thread;
    CHECK_EQ_INT(etwatch_process_read(0xfffffff0u, 0, &sample, NULL, 0, NULL, &error),
                 ETWATCH_ENOENT);
    CHECK_CONTAINS(error.message, "4294967280");
    CHECK_EQ_INT(etwatch_process_threads(0xfffffff0u, &thread, 1, NULL), ETWATCH_ENOENT);
}

TEST(wrong_arguments_are_refused)
{
    struct etwatch_sample sample = {.size = sizeof sample}, no_size = {.size = 0};
    struct etwatch_error_info error = {.size = sizeof error};
    CHECK_EQ_INT(etwatch_process_read(0, 0, &sample, NULL, 0, NULL, &error), ETWATCH_EINVAL);
    CHECK(error.message[0] != '\0');
    CHECK_EQ_INT(etwatch_process_read(self(), 0, NULL, NULL, 0, NULL, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_process_read(self(), 0, &no_size, NULL, 0, NULL, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_process_read(self(), 2, &sample, NULL, 0, NULL, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_process_threads(self(), NULL, 1, NULL), ETWATCH_EINVAL);
}

static int read_self(void *ctx)
{
    struct etwatch_sample sample = {.size = sizeof sample};
    (void)ctx;
    return etwatch_process_read(self(), 0, &sample, NULL, 0, NULL, NULL);
}

TEST(a_failed_allocation_leaks_nothing)
{
    TORTURE(read_self, NULL);
}
