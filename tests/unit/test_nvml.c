/* SPDX-License-Identifier: MIT */
/* The sensor of NVIDIA GPUs on the fake driver library, with a clock of the test. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "model/metric.h"
#include "sensor/sensor.h"
#include "test.h"

extern const struct ew_sensor_ops ew_sensor_nvml;

#define MS_NS UINT64_C(1000000)
#define SECOND_NS (1000 * MS_NS)

static struct {
    char folder[64], control[96], library[512];
    void *state;
    uint64_t now_ns;
    struct ew_sensor_batch batch;
    struct ew_error err;
    struct etwatch_metric_set ever; /* of the last run */
    uint64_t energy_uj;             /* sum of device 0 */
} run;

static void set_driver(const char *text)
{
    FILE *file = fopen(run.control, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ_INT(fclose(file), 0);
}

static void find_library(void)
{
    ssize_t len = readlink("/proc/self/exe", run.library, sizeof run.library - 40);
    CHECK(len > 0);
    run.library[len] = '\0';
    char *slash = strrchr(run.library, '/');
    CHECK(slash != NULL);
    (void)snprintf(slash, 40, "/libfakenvml.so");
    if (access(run.library, R_OK) != 0)
        SKIP("the fake driver was not built");
}

/* namespace: the target of self/ns/pid; NULL: none. */
static void make_folder(const char *namespace)
{
    char path[128];
    memset(&run, 0, sizeof run);
    find_library();
    (void)snprintf(run.folder, sizeof run.folder, "/tmp/etwatch-nvml-XXXXXX");
    CHECK(mkdtemp(run.folder) != NULL);
    (void)snprintf(run.control, sizeof run.control, "%s/control", run.folder);
    CHECK_EQ_INT(setenv("FAKE_NVML", run.control, 1), 0);
    static const char *const folders[] = {"self", "self/ns"};
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", run.folder, folders[i]);
        CHECK_EQ_INT(mkdir(path, 0700), 0);
    }
    (void)snprintf(path, sizeof path, "%s/self/ns/pid", run.folder);
    if (namespace != NULL)
        CHECK_EQ_INT(symlink(namespace, path), 0);
}

static int open_sensor(const char *text)
{
    const struct ew_sensor_config config = {
        .proc_root = run.folder,
        .sys_root = run.folder,
        .nvml_library = run.library,
        .gpu = true,
        .energy = true,
    };
    set_driver(text);
    run.now_ns = 100 * SECOND_NS;
    return ew_sensor_nvml.open(&config, &run.state, &run.err);
}

static void begin(const char *namespace, const char *text)
{
    make_folder(namespace);
    CHECK_EQ_INT(open_sensor(text), 0);
}

static int read_once(uint64_t after_ns)
{
    run.now_ns += after_ns;
    run.batch.device_count = run.batch.use_count = 0;
    run.batch.problem[0] = '\0';
    return ew_sensor_nvml.read(run.state, run.now_ns, &run.batch, &run.err);
}

/* Reads every 100 ms for so long. */
static void read_for(uint64_t ns)
{
    memset(&run.ever, 0, sizeof run.ever);
    for (uint64_t done_ns = 0; done_ns < ns; done_ns += 100 * MS_NS) {
        CHECK_EQ_INT(read_once(100 * MS_NS), 0);
        const struct ew_device_reading *device = run.batch.devices;
        if (run.batch.device_count == 0)
            continue;
        etwatch_metric_set_union(&run.ever, &device->has);
        if (etwatch_metric_set_has(&device->has, ETWATCH_D_energy_uj))
            run.energy_uj += device->energy_uj;
    }
}

static void end(void)
{
    static const char *const names[] = {"control", "self/ns/pid", "self/ns", "self", ""};
    ew_sensor_nvml.close(run.state);
    ew_free(run.batch.devices);
    ew_free(run.batch.uses);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s/%s", run.folder, names[i]);
        (void)remove(path);
    }
}

static const struct ew_device_use *use_of(uint32_t pid, uint32_t device)
{
    for (uint32_t i = 0; i < run.batch.use_count; i++)
        if (run.batch.uses[i].process.pid == pid && run.batch.uses[i].device == device)
            return &run.batch.uses[i];
    return NULL;
}

static bool has_energy(const struct ew_device_use *use)
{
    return (use->process.has & ETWATCH_DEVICE_PROCESS_ENERGY) != 0;
}

static const char host[] = "pid:[4026531836]";

/* ------------------------------------------------------------ what is unknown is no zero */

TEST(energy_is_attributed_by_the_use_of_each_process)
{
    begin(host, "util 40\npid 7 512 30\npid 8 100 10\n");
    read_for(2 * SECOND_NS);
    CHECK(run.batch.devices[0].by_uses);
    CHECK(has_energy(use_of(7, 0)) && has_energy(use_of(8, 0)));
    uint64_t above_uj = run.batch.devices[0].energy_uj - run.batch.devices[0].idle_energy_uj;
    uint64_t sum_uj = use_of(7, 0)->process.energy_uj + use_of(8, 0)->process.energy_uj;
    CHECK_EQ_UINT(sum_uj, above_uj);
    CHECK_NEAR(use_of(7, 0)->process.energy_uj, 3.0 * (double)use_of(8, 0)->process.energy_uj, 4);
    end();
}

TEST(energy_of_processes_in_a_container_is_unknown)
{
    begin("pid:[4026532999]", "util 40\npid 7 512 30\n");
    read_for(2 * SECOND_NS);
    CHECK(etwatch_metric_set_has(&run.ever, ETWATCH_D_energy_uj));
    CHECK(!run.batch.devices[0].by_uses);
    CHECK_EQ_UINT(run.batch.use_count, 0);
    CHECK_CONTAINS(run.batch.problem, "container");
    end();
}

TEST(energy_of_processes_is_unknown_if_the_driver_does_not_report_their_use)
{
    begin(host, "util 40\nuse 3\npid 7 512 30\npid 8 100 10\n");
    read_for(2 * SECOND_NS);
    CHECK(!run.batch.devices[0].by_uses);
    CHECK_EQ_UINT(use_of(7, 0)->process.has, ETWATCH_DEVICE_PROCESS_MEMORY);
    /* The only process of a GPU has all of its use. */
    set_driver("util 40\nuse 3\npid 7 512 30\n");
    read_for(SECOND_NS);
    CHECK(run.batch.devices[0].by_uses);
    CHECK(has_energy(use_of(7, 0)));
    set_driver("util 40\nuse 3\npid 7 512 30\npid 8 100 10\n");
    read_for(6 * SECOND_NS);
    CHECK(!run.batch.devices[0].by_uses);
    CHECK_EQ_UINT(use_of(7, 0)->process.has, ETWATCH_DEVICE_PROCESS_MEMORY);
    end();
}

TEST(impossible_use_of_a_process_is_unknown)
{
    begin(host, "util 40\npid 7 512 4000\npid 8 100 10\n");
    read_for(2 * SECOND_NS);
    CHECK(!run.batch.devices[0].by_uses);
    CHECK_EQ_UINT(use_of(7, 0)->process.has, ETWATCH_DEVICE_PROCESS_MEMORY);
    CHECK((use_of(8, 0)->process.has & ETWATCH_DEVICE_PROCESS_GPU_TIME) != 0);
    CHECK(!has_energy(use_of(8, 0)));
    end();
}

TEST(processes_have_the_time_of_encoder_and_decoder)
{
    begin(host, "util 40\ncodec 50 20\npid 7 512 30 0 50 0\npid 8 100 10 0 0 20\n");
    read_for(2 * SECOND_NS);
    const struct etwatch_device_process *one = &use_of(7, 0)->process;
    const struct etwatch_device_process *two = &use_of(8, 0)->process;
    CHECK((one->has & two->has & ETWATCH_DEVICE_PROCESS_CODEC_TIME) != 0);
    CHECK_EQ_UINT(one->encoder_ns, 50 * MS_NS);
    CHECK_EQ_UINT(one->decoder_ns, 0);
    CHECK_EQ_UINT(two->encoder_ns, 0);
    CHECK_EQ_UINT(two->decoder_ns, 20 * MS_NS);
    /* Alone it has what the GPU has. */
    set_driver("util 40\ncodec 30 10\npid 7 512 30\n");
    read_for(2 * SECOND_NS);
    CHECK_EQ_UINT(use_of(7, 0)->process.encoder_ns, 30 * MS_NS);
    CHECK_EQ_UINT(use_of(7, 0)->process.decoder_ns, 10 * MS_NS);
    end();
    /* Impossible values are unknown, the rest stays known. */
    begin(host, "util 40\npid 7 512 30 0 101 0\npid 8 100 10 0 1 1\n");
    read_for(2 * SECOND_NS);
    CHECK((use_of(7, 0)->process.has & ETWATCH_DEVICE_PROCESS_CODEC_TIME) == 0);
    CHECK((use_of(7, 0)->process.has & ETWATCH_DEVICE_PROCESS_GPU_TIME) != 0);
    CHECK((use_of(8, 0)->process.has & ETWATCH_DEVICE_PROCESS_CODEC_TIME) != 0);
    end();
}

TEST(a_gpu_without_processes_has_no_process_energy_and_that_is_known)
{
    begin(host, "util 0\n");
    read_for(2 * SECOND_NS);
    CHECK(run.batch.devices[0].by_uses);
    CHECK_EQ_UINT(run.batch.use_count, 0);
    CHECK_EQ_UINT(run.batch.devices[0].processes, 0);
    end();
}

/* --------------------------------------------------------------------------- energy */

/* The use of the driver is an average of the past: when work begins, the power is ahead of it. */
TEST(the_power_of_beginning_work_is_not_idle_power)
{
    begin(host, "util 0\nwatts 100\n");
    CHECK_EQ_INT(read_once(0), 0);
    set_driver("util 0\nwatts 300\n");
    read_for(SECOND_NS);
    CHECK_NEAR(run.batch.devices[0].energy_uj, 30e6, 1000);
    CHECK_NEAR(run.batch.devices[0].idle_energy_uj, 10e6, 1000);
    end();
}

TEST(the_sum_of_energy_is_that_of_the_counter)
{
    /* The counter rises by 130 J a second, the momentary power says 100 W. */
    char text[64];
    begin(host, "counter 1000000\nwatts 100\n");
    CHECK_EQ_INT(read_once(0), 0);
    for (int second = 1; second <= 20; second++) {
        (void)snprintf(text, sizeof text, "counter %d\nwatts 100\n", 1000000 + second * 130000);
        set_driver(text);
        read_for(SECOND_NS);
    }
    run.batch.last = true;
    CHECK_EQ_INT(read_once(100 * MS_NS), 0);
    run.energy_uj += run.batch.devices[0].energy_uj;
    CHECK_NEAR(run.energy_uj, 20 * 130.0 * 1e6, 5); /* fractions since the last counter */
    end();
}

/* The counter and the momentary power disagree at random, also by far. */
TEST(the_sum_of_energy_is_that_of_the_counter_whatever_the_power_says)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        uint64_t random = seed, counter_mj = 1000000;
        char text[64];
        begin(host, "counter 1000000\nwatts 100\n");
        CHECK_EQ_INT(read_once(0), 0);
        for (int step = 0; step < 60; step++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            counter_mj += (random >> 33) % 300000;
            (void)snprintf(text, sizeof text, "counter %llu\nwatts %u\n",
                           (unsigned long long)counter_mj, (unsigned)(random >> 40) % 700);
            set_driver(text);
            read_for(400 * MS_NS);
        }
        /* While both agree the difference is made up for. */
        for (int step = 0; step < 40; step++) {
            counter_mj += 600000;
            (void)snprintf(text, sizeof text, "counter %llu\nwatts 600\n",
                           (unsigned long long)counter_mj);
            set_driver(text);
            read_for(SECOND_NS);
        }
        run.batch.last = true;
        CHECK_EQ_INT(read_once(100 * MS_NS), 0);
        run.energy_uj += run.batch.devices[0].energy_uj;
        CHECK_NEAR(run.energy_uj, (double)(counter_mj - 1000000) * 1000, 5);
        end();
    }
}

TEST(a_counter_that_restarts_adds_nothing)
{
    begin(host, "counter 9000000\nwatts 100\n");
    CHECK_EQ_INT(read_once(0), 0);
    set_driver("counter 500\nwatts 100\n");
    read_for(8 * SECOND_NS); /* the counter is read after five */
    CHECK_NEAR(run.energy_uj, 8 * 100.0 * 1e6, 1000);
    end();
}

TEST(an_old_driver_has_an_average_power_instead_of_the_momentary_one)
{
    begin(host, "old 1\nwatts 250\n");
    read_for(2 * SECOND_NS);
    CHECK_NEAR(run.batch.devices[0].power_watts, 250, 0.001);
    end();
}

TEST(nvlink_counts_what_was_sent_and_received_since_the_reading_before)
{
    begin(host, "nvlink 1000 2000\n");
    read_for(SECOND_NS);
    set_driver("nvlink 1010 2500\n");
    uint64_t received = 0, sent = 0;
    for (int i = 0; i < 10; i++) {
        CHECK_EQ_INT(read_once(100 * MS_NS), 0);
        received += run.batch.devices[0].nvlink_received_bytes;
        sent += run.batch.devices[0].nvlink_sent_bytes;
    }
    CHECK_EQ_UINT(received, 10 << 10);
    CHECK_EQ_UINT(sent, 500 << 10);
    end();
    begin(host, "util 5\n");
    read_for(SECOND_NS);
    CHECK(!etwatch_metric_set_has(&run.ever, ETWATCH_D_nvlink_sent_bytes));
    end();
}

/* ------------------------------------------------------------------------- recovery */

TEST(a_lost_gpu_comes_back_after_its_reset)
{
    begin(host, "util 40\npid 7 512 30\n");
    read_for(SECOND_NS);
    set_driver("lost 1\n");
    read_for(SECOND_NS);
    CHECK_EQ_STR(run.batch.problem, "GPU 0: GPU is lost");
    CHECK(etwatch_metric_set_is_empty(&run.batch.devices[0].has));
    /* Still lost after the library was started again: the same line. */
    read_for(40 * SECOND_NS);
    CHECK_EQ_STR(run.batch.problem, "GPU 0: GPU is lost");
    CHECK_EQ_UINT(run.batch.device_count, 0);
    set_driver("util 40\npid 7 512 30\n");
    read_for(40 * SECOND_NS);
    CHECK_EQ_STR(run.batch.problem, "");
    CHECK_NEAR(run.batch.devices[0].power_watts, 100, 0.001);
    CHECK(has_energy(use_of(7, 0)));
    end();
}

TEST(a_lost_gpu_takes_no_value_from_another_one)
{
    begin(host, "count 2\nutil 40 20\nwatts 100 50\n");
    read_for(SECOND_NS);
    set_driver("count 2\nutil 40 20\nwatts 100 50\nlost 1\n");
    read_for(SECOND_NS);
    CHECK_EQ_UINT(run.batch.device_count, 2);
    CHECK(etwatch_metric_set_is_empty(&run.batch.devices[0].has));
    CHECK_NEAR(run.batch.devices[1].power_watts, 50, 0.001);
    CHECK_EQ_STR(run.batch.problem, "GPU 0: GPU is lost");
    end();
}

TEST(a_driver_that_is_unloaded_ends_the_sensor_with_the_reason)
{
    begin(host, "util 40\n");
    read_for(SECOND_NS);
    set_driver("code 9\n");
    CHECK_EQ_INT(read_once(100 * MS_NS), ETWATCH_EOS);
    CHECK_EQ_STR(run.err.message, "the NVIDIA driver is gone: Driver Not Loaded");
    end();
    make_folder(host);
    CHECK_EQ_INT(open_sensor("init 9\n"), ETWATCH_EOS);
    CHECK_EQ_INT(open_sensor("count 0\n"), ETWATCH_ENOTSUP);
    CHECK_EQ_INT(open_sensor("count 1\n"), 0);
    end();
}

TEST(a_gpu_that_answers_with_unknown_errors_only_is_lost)
{
    begin(host, "util 40\n");
    read_for(SECOND_NS);
    set_driver("util 40\ncode 999\n");
    read_for(SECOND_NS);
    CHECK(etwatch_metric_set_is_empty(&run.batch.devices[0].has));
    CHECK_CONTAINS(run.batch.problem, "GPU 0: ");
    end();
}

TEST(a_number_of_gpus_that_changes_starts_the_sensor_again)
{
    begin(host, "count 1\n");
    read_for(SECOND_NS);
    set_driver("count 0\n");
    int error = 0;
    for (int i = 0; i < 30 && error == 0; i++)
        error = read_once(100 * MS_NS);
    CHECK_EQ_INT(error, ETWATCH_ESTATE);
    CHECK_CONTAINS(run.err.message, "from 1 to 0");
    end();
}

/* ------------------------------------------------------------------------ several GPUs */

TEST(two_gpus_have_figures_and_processes_of_their_own)
{
    begin(host, "count 2\nutil 40 80\nwatts 100 300\npid 7 512 30\npid 8 100 10\npid 7 64 60 1\n");
    read_for(2 * SECOND_NS);
    CHECK_EQ_UINT(run.batch.device_count, 2);
    CHECK_EQ_STR(run.batch.devices[0].id, "00000000:41:00.0");
    CHECK_EQ_STR(run.batch.devices[1].id, "00000000:42:00.0");
    CHECK_NEAR(run.batch.devices[0].util_percent, 40, 0.001);
    CHECK_NEAR(run.batch.devices[1].util_percent, 80, 0.001);
    CHECK_NEAR(run.batch.devices[1].power_watts, 300, 0.001);
    CHECK_EQ_UINT(use_of(7, 0)->process.memory_bytes, 512 << 20);
    CHECK_EQ_UINT(use_of(7, 1)->process.memory_bytes, 64 << 20);
    CHECK(use_of(8, 1) == NULL);
    CHECK_EQ_UINT(run.batch.devices[1].processes, 1);
    end();
}
