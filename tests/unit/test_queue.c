/* SPDX-License-Identifier: MIT */
/* The queue of a reader: order, loss, and the strings stored with the samples. */
#include "monitor/monitor.h"

#include <string.h>

#include "test.h"

enum { ROW = sizeof(struct etwatch_sample) };

static struct etwatch_sample sample_of(uint32_t pid, const char *name, const char *cgroup)
{
    return (struct etwatch_sample){.size = sizeof(struct etwatch_sample),
                                   .type = ETWATCH_TYPE_SAMPLE,
                                   .pid = pid,
                                   .name = name,
                                   .user = "root",
                                   .cgroup = cgroup};
}

static void put(struct ew_queue *queue, uint32_t pid, const char *name, const char *cgroup)
{
    struct etwatch_sample sample = sample_of(pid, name, cgroup);
    ew_queue_put(queue, &sample);
}

static const struct etwatch_sample *at(const struct ew_items *items, size_t i)
{
    return (const void *)((const char *)items->items + i * items->stride);
}

TEST(a_copy_contains_each_string_once)
{
    struct ew_queue queue;
    struct ew_items got;
    _Alignas(8) char buffer[8 * ROW];
    size_t used = 0;
    CHECK_EQ_INT(ew_queue_init(&queue, 4), 0);
    put(&queue, 1, "one", "/a");
    put(&queue, 2, "two", NULL);
    put(&queue, 3, "one", "/a");
    CHECK_EQ_INT(ew_queue_copy(&queue, buffer, sizeof buffer, 8, &got, &used), 3);
    CHECK_EQ_UINT(got.count, 3);
    CHECK_EQ_UINT(got.stride, ROW);
    CHECK(got.items == (void *)buffer);
    CHECK_EQ_UINT(used, 3 * ROW + sizeof "one" + sizeof "two" + sizeof "root" + sizeof "/a");
    put(&queue, 4, "else", "/b"); /* the queue reuses its memory; the copy has its own */
    CHECK_EQ_STR(at(&got, 0)->name, "one");
    CHECK_EQ_STR(at(&got, 1)->name, "two");
    CHECK_EQ_STR(at(&got, 2)->user, "root");
    CHECK_EQ_STR(at(&got, 2)->cgroup, "/a");
    CHECK(at(&got, 0)->name == at(&got, 2)->name && at(&got, 0)->cgroup == at(&got, 2)->cgroup);
    CHECK(at(&got, 1)->cgroup == NULL && at(&got, 1)->thread_name == NULL);
    CHECK(at(&got, 0)->name >= buffer + 3 * ROW && at(&got, 0)->name < buffer + used);
    ew_queue_done(&queue);
}

TEST(samples_that_do_not_fit_are_left_for_the_next_copy)
{
    struct ew_queue queue;
    struct ew_items got;
    _Alignas(8) char buffer[2 * ROW + 12];
    size_t used = 0;
    CHECK_EQ_INT(ew_queue_init(&queue, 8), 0);
    put(&queue, 1, "one", NULL);
    put(&queue, 2, "another", NULL);
    put(&queue, 3, "six", NULL);
    put(&queue, 4, "the longest of names", NULL);
    /* One row has room for more strings than two. */
    CHECK_EQ_INT(ew_queue_copy(&queue, buffer, sizeof buffer, 8, &got, &used), 1);
    CHECK_EQ_UINT(at(&got, 0)->pid, 1);
    CHECK_EQ_INT(ew_queue_copy(&queue, buffer, sizeof buffer, 8, &got, &used), 1);
    CHECK_EQ_UINT(at(&got, 0)->pid, 2);
    CHECK_EQ_STR(at(&got, 0)->user, "root");
    /* A row that fits, with strings that do not: unknown, not truncated. */
    CHECK_EQ_INT(ew_queue_copy(&queue, buffer, ROW + 8, 8, &got, &used), 1);
    CHECK_EQ_UINT(at(&got, 0)->pid, 3);
    CHECK(at(&got, 0)->name == NULL && at(&got, 0)->user == NULL);
    /* Not even a row: nothing is taken. */
    CHECK_EQ_INT(ew_queue_copy(&queue, buffer, ROW - 1, 8, &got, &used), 0);
    CHECK_EQ_UINT(used, 0);
    CHECK_EQ_INT(ew_queue_copy(&queue, buffer, sizeof buffer, 8, &got, &used), 1);
    CHECK_EQ_UINT(at(&got, 0)->pid, 4);
    CHECK_EQ_STR(at(&got, 0)->name, "the longest of names");
    CHECK_EQ_INT(ew_queue_copy(&queue, buffer, sizeof buffer, 8, &got, &used), 0);
    CHECK_EQ_UINT(used, 0);
    ew_queue_done(&queue);
}

/* Whatever the size of the buffer, no byte beyond it is written. */
TEST(a_copy_stays_within_its_buffer)
{
    struct ew_queue queue;
    struct ew_items got;
    static _Alignas(8) char buffer[4 * ROW + 64];
    size_t used = 0;
    CHECK_EQ_INT(ew_queue_init(&queue, 8), 0);
    for (size_t size = 0; size < sizeof buffer - 16; size += 7) {
        for (uint32_t pid = 1; pid <= 5; pid++)
            put(&queue, pid, "some name of a process", "/a/cgroup");
        memset(buffer, 0x5a, sizeof buffer);
        uint32_t next = 1;
        int count = ew_queue_copy(&queue, buffer, size, 8, &got, &used);
        CHECK(used <= size);
        for (size_t i = size; i < sizeof buffer; i++)
            CHECK_EQ_INT(buffer[i], 0x5a);
        for (int i = 0; i < count; i++)
            CHECK_EQ_UINT(at(&got, (size_t)i)->pid, next++);
        CHECK(ew_queue_take(&queue, 8, &got) == 5 - count);
        for (size_t i = 0; i < got.count; i++)
            CHECK_EQ_UINT(at(&got, i)->pid, next++);
    }
    ew_queue_done(&queue);
}

TEST(the_oldest_are_dropped_first_however_the_queue_is_read)
{
    struct ew_queue queue;
    struct ew_items got;
    _Alignas(8) char buffer[4 * ROW];
    size_t used = 0;
    CHECK_EQ_INT(ew_queue_init(&queue, 4), 0);
    for (uint32_t pid = 1; pid <= 6; pid++)
        put(&queue, pid, "x", NULL);
    CHECK_EQ_UINT(queue.dropped, 2);
    CHECK_EQ_INT(ew_queue_take(&queue, 1, &got), 1);
    CHECK_EQ_UINT(at(&got, 0)->pid, 3);
    CHECK_EQ_INT(ew_queue_copy(&queue, buffer, sizeof buffer, 2, &got, &used), 2);
    CHECK_EQ_UINT(at(&got, 1)->pid, 5);
    put(&queue, 7, "y", NULL);
    CHECK_EQ_INT(ew_queue_take(&queue, 8, &got), 2);
    CHECK_EQ_UINT(at(&got, 0)->pid, 6);
    CHECK_EQ_STR(at(&got, 1)->name, "y");
    ew_queue_done(&queue);
}

TEST(a_long_name_is_truncated_and_terminated)
{
    struct ew_queue queue;
    struct ew_items got;
    char name[200];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    CHECK_EQ_INT(ew_queue_init(&queue, 1), 0);
    put(&queue, 1, name, NULL);
    CHECK_EQ_INT(ew_queue_take(&queue, 1, &got), 1);
    CHECK_EQ_UINT(strlen(at(&got, 0)->name), EW_QUEUE_NAME_SIZE - 1);
    ew_queue_done(&queue);
}
