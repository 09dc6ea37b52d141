/* SPDX-License-Identifier: MIT */
/* Where intervals begin and end, with changes of length and at the limits of 64 bits. */
#include <etwatch/etwatch.h>

#include "sampler/internal.h"
#include "test.h"

#define MS UINT64_C(1000000)

TEST(an_interval_contains_its_start_and_not_its_end)
{
    struct ew_ticks t;
    ew_ticks_init(&t, 1000 * MS, 10 * MS);
    CHECK_EQ_UINT(ew_ticks_index(&t, 1000 * MS), 0);
    CHECK_EQ_UINT(ew_ticks_index(&t, 1010 * MS - 1), 0);
    CHECK_EQ_UINT(ew_ticks_index(&t, 1010 * MS), 1);
    CHECK_EQ_UINT(ew_ticks_start(&t, 1), 1010 * MS);
    CHECK_EQ_UINT(ew_ticks_end(&t, 1), 1020 * MS);
}

TEST(times_before_the_epoch_belong_to_the_first_interval)
{
    struct ew_ticks t;
    ew_ticks_init(&t, 1000 * MS, 10 * MS);
    CHECK_EQ_UINT(ew_ticks_index(&t, 0), 0);
    CHECK_EQ_UINT(ew_ticks_index(&t, 999 * MS), 0);
}

TEST(numbering_continues_when_the_length_changes)
{
    struct ew_ticks t;
    ew_ticks_init(&t, 0, 10 * MS);
    CHECK_EQ_INT(ew_ticks_change(&t, 50 * MS, 20 * MS), 0);
    CHECK_EQ_INT(ew_ticks_change(&t, 90 * MS, 5 * MS), 0);
    static const struct {
        uint64_t t_ms, index;
    } rows[] = {{0, 0}, {49, 4}, {50, 5}, {69, 5}, {70, 6}, {89, 6}, {90, 7}, {94, 7}, {95, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_EQ_UINT(ew_ticks_index(&t, rows[i].t_ms * MS), rows[i].index);
    CHECK_EQ_UINT(ew_ticks_end(&t, 4), 50 * MS);
    CHECK_EQ_UINT(ew_ticks_end(&t, 5), 70 * MS);
    CHECK_EQ_UINT(ew_ticks_end(&t, 6), 90 * MS);
    CHECK_EQ_UINT(ew_ticks_end(&t, 7), 95 * MS);
}

TEST(a_change_at_the_same_time_replaces_the_earlier_one)
{
    struct ew_ticks t;
    ew_ticks_init(&t, 0, 10 * MS);
    CHECK_EQ_INT(ew_ticks_change(&t, 50 * MS, 20 * MS), 0);
    CHECK_EQ_INT(ew_ticks_change(&t, 50 * MS, 40 * MS), 0);
    CHECK_EQ_UINT(ew_ticks_end(&t, 5), 90 * MS);
}

TEST(a_change_must_be_at_an_interval_end)
{
    struct ew_ticks t;
    ew_ticks_init(&t, 0, 10 * MS);
    CHECK_EQ_INT(ew_ticks_change(&t, 55 * MS, 20 * MS), ETWATCH_EINVAL);
    CHECK_EQ_INT(ew_ticks_change(&t, 50 * MS, 20 * MS), 0);
    CHECK_EQ_INT(ew_ticks_change(&t, 60 * MS, 20 * MS), ETWATCH_EINVAL);
    CHECK_EQ_INT(ew_ticks_change(&t, 40 * MS, 20 * MS), ETWATCH_EINVAL);
}

TEST(changes_are_limited_until_their_time_has_passed)
{
    struct ew_ticks t;
    ew_ticks_init(&t, 0, 10 * MS);
    for (uint64_t i = 1; i < EW_TICKS_CHANGES; i++)
        CHECK_EQ_INT(ew_ticks_change(&t, i * 10 * MS, 10 * MS), 0);
    uint64_t next = EW_TICKS_CHANGES * 10 * MS;
    CHECK_EQ_INT(ew_ticks_change(&t, next, 10 * MS), ETWATCH_ELIMIT);
    ew_ticks_forget(&t, 3);
    CHECK_EQ_INT(ew_ticks_change(&t, next, 30 * MS), 0);
    CHECK_EQ_UINT(ew_ticks_start(&t, 3), 30 * MS);
    CHECK_EQ_UINT(ew_ticks_end(&t, EW_TICKS_CHANGES), next + 30 * MS);
}

/* From 1000 Hz to 0.1 Hz at the end of 64 bits of nanoseconds (584 years). */
TEST(nothing_overflows_at_the_end_of_the_time_range)
{
    static const uint64_t lengths[] = {EW_INTERVAL_MIN_NS, 3333333, EW_INTERVAL_MAX_NS};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct ew_ticks t;
        ew_ticks_init(&t, 12345, lengths[i]);
        uint64_t last = ew_ticks_index(&t, UINT64_MAX - 1);
        CHECK_EQ_UINT(last, (UINT64_MAX - 1 - 12345) / lengths[i]);
        CHECK_EQ_UINT(ew_ticks_start(&t, last), 12345 + last * lengths[i]);
        CHECK_EQ_UINT(ew_ticks_end(&t, last), UINT64_MAX);
    }
}

TEST(the_cached_interval_gives_the_same_results)
{
    struct ew_ticks t;
    ew_ticks_init(&t, 7, 3 * MS);
    CHECK_EQ_INT(ew_ticks_change(&t, 7 + 300 * MS, 7 * MS), 0);
    uint64_t seed = 3;
    for (int i = 0; i < 10000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t t_ns = (seed >> 30) % (600 * MS);
        uint64_t index = ew_ticks_index(&t, t_ns);
        CHECK(t_ns < ew_ticks_end(&t, index));
        CHECK(t_ns >= ew_ticks_start(&t, index) || t_ns < 7);
        CHECK_EQ_UINT(ew_ticks_index(&t, t_ns), index);
    }
}
