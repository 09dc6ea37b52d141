/* SPDX-License-Identifier: MIT */
/* The queue of a reader: order, loss, and the strings stored with the samples. */
#include "monitor/monitor.h"

#include <string.h>

#include "test.h"

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

TEST(a_copy_contains_each_string_once)
{
    struct ew_queue queue;
    struct etwatch_sample got[8];
    char texts[64];
    size_t used = 0;
    CHECK_EQ_INT(ew_queue_init(&queue, 4), 0);
    put(&queue, 1, "one", "/a");
    put(&queue, 2, "two", NULL);
    put(&queue, 3, "one", "/a");
    CHECK_EQ_INT(ew_queue_copy(&queue, got, 8, texts, sizeof texts, &used), 3);
    CHECK_EQ_UINT(used, sizeof "one" + sizeof "two" + sizeof "root" + sizeof "/a");
    put(&queue, 4, "else", "/b"); /* the queue reuses its memory; the copy has its own */
    CHECK_EQ_STR(got[0].name, "one");
    CHECK_EQ_STR(got[1].name, "two");
    CHECK_EQ_STR(got[2].user, "root");
    CHECK(got[0].name == got[2].name && got[0].cgroup == got[2].cgroup);
    CHECK(got[1].cgroup == NULL && got[1].thread_name == NULL && got[1].cmdline == NULL);
    CHECK(got[0].name >= texts && got[0].name < texts + used);
    ew_queue_done(&queue);
}

TEST(samples_without_room_for_their_strings_are_left_for_the_next_copy)
{
    struct ew_queue queue;
    struct etwatch_sample got[8];
    char texts[12];
    size_t used = 0;
    CHECK_EQ_INT(ew_queue_init(&queue, 4), 0);
    put(&queue, 1, "one", NULL);
    put(&queue, 2, "another", NULL);
    put(&queue, 3, "the longest of names", NULL);
    CHECK_EQ_INT(ew_queue_copy(&queue, got, 8, texts, sizeof texts, &used), 1);
    CHECK_EQ_UINT(got[0].pid, 1);
    CHECK_EQ_INT(ew_queue_copy(&queue, got, 8, texts, sizeof texts, &used), 1);
    CHECK_EQ_UINT(got[0].pid, 2);
    CHECK(got[0].user == NULL); /* 13 bytes of strings, room for 12: unknown, not truncated */
    CHECK_EQ_INT(ew_queue_copy(&queue, got, 8, texts, sizeof texts, &used), 1);
    CHECK_EQ_UINT(got[0].pid, 3);
    CHECK(got[0].name == NULL);
    CHECK_EQ_INT(ew_queue_copy(&queue, got, 8, texts, sizeof texts, &used), 0);
    CHECK_EQ_UINT(used, 0);
    ew_queue_done(&queue);
}

TEST(the_oldest_are_dropped_first_however_the_queue_is_read)
{
    struct ew_queue queue;
    struct etwatch_sample got[8];
    char texts[256];
    size_t used = 0;
    CHECK_EQ_INT(ew_queue_init(&queue, 4), 0);
    for (uint32_t pid = 1; pid <= 6; pid++)
        put(&queue, pid, "x", NULL);
    CHECK_EQ_UINT(queue.dropped, 2);
    CHECK_EQ_INT(ew_queue_take(&queue, got, 1), 1);
    CHECK_EQ_UINT(got[0].pid, 3);
    CHECK_EQ_INT(ew_queue_copy(&queue, got, 2, texts, sizeof texts, &used), 2);
    CHECK_EQ_UINT(got[1].pid, 5);
    put(&queue, 7, "y", NULL);
    CHECK_EQ_INT(ew_queue_take(&queue, got, 8), 2);
    CHECK_EQ_UINT(got[0].pid, 6);
    CHECK_EQ_STR(got[1].name, "y");
    ew_queue_done(&queue);
}

TEST(a_long_name_is_truncated_and_terminated)
{
    struct ew_queue queue;
    struct etwatch_sample got[1];
    char name[200];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    CHECK_EQ_INT(ew_queue_init(&queue, 1), 0);
    put(&queue, 1, name, NULL);
    CHECK_EQ_INT(ew_queue_take(&queue, got, 1), 1);
    CHECK_EQ_UINT(strlen(got[0].name), EW_QUEUE_NAME_SIZE - 1);
    ew_queue_done(&queue);
}
