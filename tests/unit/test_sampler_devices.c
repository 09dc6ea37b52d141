/* SPDX-License-Identifier: MIT */
/* How readings of sensors become samples. Intervals of 10 ms. */
#include "sampler_kit.h"

#define OPEN EW_READING_OPEN
#define SPAN EW_READING_SPAN
#define GPU ETWATCH_M_gpu_ns
#define ENERGY ETWATCH_M_energy_uj
#define MEMORY ETWATCH_M_gpu_memory_bytes

static struct ew_device_use gpu_use(uint32_t pid, uint64_t from_ns, uint64_t t_ns, uint64_t gpu_ns)
{
    struct ew_device_use use = {.from_ns = from_ns, .t_ns = t_ns};
    use.process.pid = pid;
    use.process.has = ETWATCH_DEVICE_PROCESS_GPU_TIME | ETWATCH_DEVICE_PROCESS_MEMORY;
    use.process.gpu_ns = gpu_ns;
    use.process.memory_bytes = 4096;
    return use;
}

static void run(uint32_t pid, double from_ms, double to_ms, uint64_t cpu_before_ns)
{
    struct ew_reading r =
        kit_values(SPAN, pid, pid, MS(to_ms), cpu_before_ns + (MS(to_ms) - MS(from_ms)), 0);
    kit_read(OPEN, pid, pid, MS(from_ms), cpu_before_ns, 0);
    r.ran_from_ns = MS(from_ms);
    r.ran_from_cpu_ns = cpu_before_ns;
    kit_reading(r);
}

static uint64_t sum_of(uint32_t pid, uint32_t metric)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < kit.count; i++) {
        const struct etwatch_sample *s = &kit.object[i].s;
        if (s->type == ETWATCH_TYPE_SAMPLE && s->pid == pid && etwatch_sample_has(s, metric))
            sum += metric == GPU ? s->gpu_ns : s->energy_uj;
    }
    return sum;
}

TEST(gpu_time_is_distributed_over_the_intervals_of_its_reading)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    run(1, 1, 2, 0);
    struct ew_device_use use = gpu_use(1, MS(0), MS(40), 20 * NS_PER_MS);
    CHECK(ew_sampler_device(kit.sampler, &use));
    (void)kit_cut(MS(40));
    CHECK_EQ_STR(kit_story(), "S1 s1 s1 s1 s1");
    for (size_t i = 0; i < 4; i++) {
        const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, i);
        CHECK(kit_has(s, GPU));
        CHECK_EQ_UINT(s->gpu_ns, 5 * NS_PER_MS);
        CHECK_NEAR(s->gpu_percent, 50, 1e-9);
        CHECK(kit_has(s, MEMORY));
        CHECK_EQ_UINT(s->gpu_memory_bytes, 4096);
        /* It only used the GPU there: its CPU time is known to be 0. */
        CHECK(kit_has(s, ETWATCH_M_cpu_ns));
        CHECK_EQ_UINT(s->cpu_ns, i == 0 ? NS_PER_MS : 0);
    }
    kit_close();
}

TEST(an_interval_without_a_reading_of_the_sensor_is_unknown_and_not_zero)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    run(1, 1, 2, 0);
    run(1, 11, 12, NS_PER_MS);
    struct ew_device_use use = gpu_use(1, MS(0), MS(10), 0);
    CHECK(ew_sampler_device(kit.sampler, &use));
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "S1 s1 s1");
    CHECK(kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0), GPU));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->gpu_ns, 0);
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1), GPU));
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1), ETWATCH_M_gpu_percent));
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1), MEMORY));
    kit_close();
}

/* The driver hung from 0 to 500 ms; the intervals up to 490 ms were delivered without it. */
TEST(after_a_hang_no_interval_gets_the_activity_of_others_but_the_total_does)
{
    struct etwatch_sample totals;
    kit_open(kit_config());
    kit_seen(1, "a");
    run(1, 1, 2, 0);
    (void)kit_cut(MS(490));
    struct ew_device_use use = gpu_use(1, MS(0), MS(500), 250 * NS_PER_MS);
    CHECK(ew_sampler_device(kit.sampler, &use));
    (void)kit_cut(MS(500));
    CHECK_EQ_UINT(sum_of(1, GPU), 5 * NS_PER_MS);
    CHECK_EQ_INT(ew_sampler_snapshot(kit.sampler, 1, &totals, NULL, 0), 0);
    CHECK(etwatch_sample_has(&totals, GPU));
    CHECK_EQ_UINT(totals.gpu_ns, 250 * NS_PER_MS);
    kit_close();
}

/* A sensor reads a moment before the end of an interval: nothing is lost by that. */
TEST(a_reading_that_began_shortly_before_the_last_cut_counts_completely)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    run(1, 1, 2, 0);
    (void)kit_cut(MS(10));
    struct ew_device_use use = gpu_use(1, MS(9), MS(19), 4 * NS_PER_MS);
    CHECK(ew_sampler_device(kit.sampler, &use));
    (void)kit_cut(MS(20));
    CHECK_EQ_UINT(sum_of(1, GPU), 4 * NS_PER_MS);
    kit_close();
}

TEST(a_process_that_is_not_watched_is_ignored)
{
    kit_open(kit_config());
    struct ew_device_use use = gpu_use(77, MS(0), MS(10), 5);
    CHECK(!ew_sampler_device(kit.sampler, &use));
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "");
    kit_close();
}

TEST(energy_is_shared_in_proportion_to_cpu_time)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_seen(2, "b");
    run(1, 1, 4, 0); /* 3 ms */
    run(2, 4, 5, 0); /* 1 ms */
    /* The machine was busy for 8 ms, half of it by others. */
    const struct ew_energy_use use = {MS(0), MS(10), 8000, 8 * NS_PER_MS};
    CHECK_EQ_UINT(ew_sampler_energy(kit.sampler, &use), 4000);
    (void)kit_cut(MS(10));
    CHECK_EQ_UINT(sum_of(1, ENERGY), 3000);
    CHECK_EQ_UINT(sum_of(2, ENERGY), 1000);
    kit_close();
}

TEST(attributed_energy_is_exactly_what_the_samples_sum_up_to)
{
    uint64_t attributed = 0;
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_seen(2, "b");
    kit_seen(3, "c");
    for (int i = 0; i < 20; i++) {
        double at = i * 7.0;
        run(1, at + 0.1, at + 1.7, (uint64_t)i * 1600000);
        run(2, at + 2, at + 2.3, (uint64_t)i * 300000);
        run(3, at + 3, at + 3.1, (uint64_t)i * 100000);
    }
    for (int i = 0; i < 14; i++) {
        const struct ew_energy_use use = {MS(i * 10), MS(i * 10 + 10), 99991, 1};
        attributed += ew_sampler_energy(kit.sampler, &use);
    }
    (void)kit_cut(MS(140));
    CHECK(attributed > 13 * 99991);
    CHECK_EQ_UINT(sum_of(1, ENERGY) + sum_of(2, ENERGY) + sum_of(3, ENERGY), attributed);
    kit_close();
}

static uint64_t random_below(uint64_t *state, uint64_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (*state >> 11) % below;
}

/* Meters that are read at times of their own, processes that run at random, samples that are
 * delivered meanwhile: what is attributed is what the samples have, never more than the meter's. */
TEST(attributed_energy_is_in_the_samples_whatever_the_order)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1, cpu_ns[4] = {0};
        uint64_t attributed = 0, in_samples = 0, read_ms = 0, cut_ms = 0;
        test_row("a random sequence");
        kit_open(kit_config());
        for (uint32_t pid = 1; pid <= 3; pid++)
            kit_seen(pid, "a");
        for (uint64_t ms = 2; ms < 200; ms += 2 + random_below(&random, 9)) {
            uint32_t pid = 1 + (uint32_t)random_below(&random, 3);
            double at = (double)ms;
            if (random_below(&random, 4) != 0) {
                run(pid, at, at + 1, cpu_ns[pid]);
                cpu_ns[pid] += NS_PER_MS;
            }
            if (random_below(&random, 3) == 0) {
                const struct ew_energy_use use = {MS(read_ms), MS(ms + 1),
                                                  random_below(&random, 1000003),
                                                  random_below(&random, 30 * NS_PER_MS)};
                uint64_t part_uj = ew_sampler_energy(kit.sampler, &use);
                CHECK(part_uj <= use.energy_uj);
                attributed += part_uj;
                read_ms = ms + 1;
            }
            if (random_below(&random, 5) == 0 && ms >= cut_ms + 10) {
                (void)kit_cut(MS(ms / 10 * 10));
                cut_ms = ms / 10 * 10;
                in_samples += sum_of(1, ENERGY) + sum_of(2, ENERGY) + sum_of(3, ENERGY);
            }
        }
        (void)kit_cut(MS(300));
        in_samples += sum_of(1, ENERGY) + sum_of(2, ENERGY) + sum_of(3, ENERGY);
        CHECK(attributed > 0);
        CHECK_EQ_UINT(in_samples, attributed);
        kit_close();
    }
}

TEST(time_of_the_encoder_and_the_decoder_is_apart)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    run(1, 1, 2, 0);
    struct ew_device_use use = gpu_use(1, MS(0), MS(20), 8 * NS_PER_MS);
    use.process.has |= ETWATCH_DEVICE_PROCESS_CODEC_TIME;
    use.process.encoder_ns = 6 * NS_PER_MS;
    use.process.decoder_ns = 2 * NS_PER_MS;
    CHECK(ew_sampler_device(kit.sampler, &use));
    (void)kit_cut(MS(20));
    const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1);
    CHECK(kit_has(s, ETWATCH_M_gpu_encoder_ns) && kit_has(s, ETWATCH_M_gpu_decoder_ns));
    CHECK_EQ_UINT(s->gpu_encoder_ns, 3 * NS_PER_MS);
    CHECK_EQ_UINT(s->gpu_decoder_ns, NS_PER_MS);
    CHECK_EQ_UINT(s->gpu_ns, 4 * NS_PER_MS);
    kit_close();
}

TEST(without_cpu_time_of_watched_processes_no_energy_is_attributed)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    const struct ew_energy_use use = {MS(0), MS(10), 8000, 8 * NS_PER_MS};
    CHECK_EQ_UINT(ew_sampler_energy(kit.sampler, &use), 0);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1");
    kit_close();
}

TEST(polling_puts_a_reading_into_the_current_round)
{
    struct ew_sampler_config config = kit_config();
    config.rounds = true;
    kit_open(config);
    kit_seen(1, "a");
    struct ew_reading r = kit_values(EW_READING_AT, 1, 0, MS(10), 4 * NS_PER_MS, 0);
    kit_reading(r);
    (void)kit_cut(MS(10));
    r = kit_values(EW_READING_AT, 1, 0, MS(20), 9 * NS_PER_MS, 0);
    kit_reading(r);
    struct ew_device_use gpu = gpu_use(1, MS(9), MS(19), 2 * NS_PER_MS);
    CHECK(ew_sampler_device(kit.sampler, &gpu));
    const struct ew_energy_use use = {MS(9), MS(19), 1000, 5 * NS_PER_MS};
    CHECK(ew_sampler_energy(kit.sampler, &use) >= 900);
    (void)kit_cut(MS(20));
    CHECK_EQ_UINT(sum_of(1, GPU), 2 * NS_PER_MS);
    CHECK(sum_of(1, ENERGY) >= 900);
    kit_close();
}
