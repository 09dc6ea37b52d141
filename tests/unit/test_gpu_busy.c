/* SPDX-License-Identifier: MIT */
/* The time in which a GPU was busy, from operations in any order. */
#include <string.h>

#include "gpu/busy.h"
#include "test.h"

static uint64_t pieces_ns;

static void on_piece(void *ctx, uint64_t from_ns, uint64_t to_ns)
{
    (void)ctx;
    CHECK(to_ns > from_ns);
    pieces_ns += to_ns - from_ns;
}

static void add(struct ew_gpu_busy_list *busy, uint64_t start_ns, uint64_t end_ns)
{
    const struct ew_gpu_interval added = {start_ns, end_ns, 0};
    ew_gpu_busy_add(busy, &added, on_piece, NULL);
}

/* Against one byte for each nanosecond. */
TEST(random_operations_count_each_time_once)
{
    enum { LENGTH = 5000 };
    for (uint64_t seed = 1; seed <= 20; seed++) {
        static unsigned char used[LENGTH];
        struct ew_gpu_busy_list busy = {.list = NULL};
        uint64_t random = seed, expected_ns = 0;
        memset(used, 0, sizeof used);
        pieces_ns = 0;
        for (int i = 0; i < 300; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            uint64_t start_ns = (random >> 33) % (LENGTH - 50);
            uint64_t end_ns = start_ns + (random >> 20) % 50;
            add(&busy, start_ns, end_ns);
            memset(used + start_ns, 1, end_ns - start_ns);
        }
        for (int i = 0; i < LENGTH; i++)
            expected_ns += used[i];
        CHECK_EQ_UINT(busy.busy_ns, expected_ns);
        CHECK_EQ_UINT(pieces_ns, expected_ns);
        for (uint32_t i = 1; i < busy.count; i++)
            CHECK(busy.list[i].start_ns > busy.list[i - 1].end_ns);
        ew_gpu_busy_done(&busy);
    }
}

/* A program may send operations from the last to the first, which move the whole list each time. */
TEST(the_work_between_two_calls_of_forget_is_bounded)
{
    enum { COUNT = 60000 };
    struct ew_gpu_busy_list busy = {.list = NULL};
    uint64_t start_ns = UINT64_C(10) * COUNT;
    pieces_ns = 0;
    for (uint32_t i = 0; i < COUNT; i++, start_ns -= 10)
        add(&busy, start_ns, start_ns + 4);
    CHECK(busy.late_ns > 0);
    CHECK_EQ_UINT(busy.busy_ns + busy.late_ns, 4 * COUNT);
    CHECK_EQ_UINT(pieces_ns, busy.busy_ns);
    uint64_t late_ns = busy.late_ns;
    ew_gpu_busy_forget(&busy, 0);
    add(&busy, start_ns, start_ns + 4);
    CHECK_EQ_UINT(busy.late_ns, late_ns);
    ew_gpu_busy_done(&busy);
}
