/* SPDX-License-Identifier: MIT */
/* GPUs and NPUs of Windows, with a fake of its functions: what counts, for which device, and what
 * is unknown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sensor/overlap.h"
#include "sensor/sensor.h"
#include "sensor/wddm_api.h"
#include "sensor/wddm_name.h"
#include "test.h"

extern const struct ew_sensor_ops ew_sensor_wddm;

#define MS UINT64_C(1000000)
#define GPU_LUID "luid_0x00000000_0x0000D3A1"
#define NPU_LUID "luid_0x00000000_0x0000E111"
#define SOFTWARE_LUID "luid_0x00000000_0x0000B0B0"

/* ---------------------------------------------------------------------------- names */

static bool parse(const char *text, struct ew_wddm_name *ret_name)
{
    uint16_t wide[EW_WDDM_NAME_MAX + 8];
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        wide[i] = (unsigned char)text[i];
    return ew_wddm_name_parse(wide, len, ret_name);
}

TEST(an_instance_names_process_adapter_and_engine)
{
    struct ew_wddm_name name;
    CHECK(parse("pid_1234_" GPU_LUID "_phys_0_eng_3_engtype_VideoDecode", &name));
    CHECK(name.has_pid && name.has_eng);
    CHECK_EQ_UINT(name.pid, 1234);
    CHECK_EQ_UINT(name.luid, 0xD3A1);
    CHECK_EQ_UINT(name.eng, 3);
    CHECK(parse("pid_4_luid_0x0000001F_0xFFFFFFFF_phys_1_eng_12_engtype_", &name));
    CHECK_EQ_UINT(name.luid, UINT64_C(0x1FFFFFFFFF));
    CHECK_EQ_UINT(name.phys, 1);
    CHECK(parse("pid_9_" GPU_LUID "_phys_0", &name));
    CHECK(name.has_pid && !name.has_eng);
    static const struct {
        const char *type;
        enum ew_wddm_codec codec;
    } types[] = {{"3D", EW_WDDM_NO_CODEC},
                 {"", EW_WDDM_NO_CODEC},
                 {"VideoEncode", EW_WDDM_ENCODER},
                 {"VideoDecode", EW_WDDM_DECODER},
                 {"VideoCodec", EW_WDDM_BOTH},
                 {"Video Codec 0", EW_WDDM_BOTH},
                 {"VideoProcessing", EW_WDDM_NO_CODEC}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char text[128];
        test_row(types[i].type);
        (void)snprintf(text, sizeof text, "pid_9_" GPU_LUID "_phys_0_eng_1_engtype_%s",
                       types[i].type);
        CHECK(parse(text, &name));
        CHECK_EQ_INT(name.codec, types[i].codec);
    }
    CHECK(parse(GPU_LUID "_phys_2_part_1", &name));
    CHECK(!name.has_pid);
    CHECK_EQ_UINT(name.phys, 2);
}

TEST(other_names_are_none)
{
    static const char *const texts[] = {
        "",
        "_Total",
        "pid_",
        "pid_12",
        "pid_12_",
        "pid_99999999999_" GPU_LUID "_phys_0",
        "pid_-1_" GPU_LUID "_phys_0",
        "pid_1_luid_0x_0x1_phys_0",
        "pid_1_luid_0x123456789_0x1_phys_0",
        "pid_1_" GPU_LUID,
        "pid_1_" GPU_LUID "_phys_",
        "pid_1_" GPU_LUID "_phys_0_eng_",
        "pid_1_" GPU_LUID "_phys_0_eng_1",
        "pid_1_" GPU_LUID "_phys_0x",
        "pid_1_" GPU_LUID "_phys_0_part_0x",
    };
    struct ew_wddm_name name;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        test_row(texts[i]);
        CHECK(!parse(texts[i], &name));
    }
}

/* -------------------------------------------------------------------------- a machine */

struct value {
    const char *name;
    int64_t value;
    uint32_t status;
};

static struct {
    struct value lists[3][32]; /* engines, process memory, adapter memory */
    uint32_t counts[3];
    uint32_t collect_code, array_code, no_counter; /* no_counter: 1 + its index */
    bool no_adapters, one_gpu;
    uint32_t opened, closed, handles; /* handles: of adapters, open */
} machine;

static char counter_ids[3];

static uint32_t open_query(const uint16_t *source, uintptr_t user, void **ret_query)
{
    (void)source;
    (void)user;
    *ret_query = &machine;
    machine.opened++;
    return 0;
}

static uint32_t add_counter(void *query, const uint16_t *path, uintptr_t user, void **ret_counter)
{
    static const char *const names[3] = {"\\GPU Engine(*)\\Running Time",
                                         "\\GPU Process Memory(*)\\Local Usage",
                                         "\\GPU Local Adapter Memory(*)\\Local Usage"};
    char text[64] = "";
    (void)user;
    CHECK(query == &machine);
    for (size_t i = 0; path[i] != 0 && i < sizeof text - 1; i++)
        text[i] = (char)path[i];
    for (uint32_t i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0 && machine.no_counter != i + 1) {
            *ret_counter = &counter_ids[i];
            return 0;
        }
    return 0xC0000BB8; /* PDH_CSTATUS_NO_OBJECT */
}

static uint32_t collect(void *query)
{
    CHECK(query == &machine);
    return machine.collect_code;
}

/* The items, then their names. */
static uint32_t raw_array(void *counter, uint32_t *size, uint32_t *count, struct ew_pdh_item *items)
{
    size_t which = (size_t)((char *)counter - counter_ids);
    uint32_t n = machine.counts[which], wanted = n * (uint32_t)sizeof *items;
    if (machine.array_code != 0)
        return machine.array_code;
    if (n == 0)
        return EW_PDH_NO_INSTANCE;
    for (uint32_t i = 0; i < n; i++)
        wanted += 2 * ((uint32_t)strlen(machine.lists[which][i].name) + 1);
    if (*size < wanted) {
        *size = wanted;
        return EW_PDH_MORE_DATA;
    }
    uint16_t *text = (uint16_t *)(void *)(items + n);
    for (uint32_t i = 0; i < n; i++) {
        const struct value *from = &machine.lists[which][i];
        memset(&items[i], 0, sizeof items[i]);
        items[i].name = text;
        items[i].first = from->value;
        items[i].status = from->status;
        for (size_t c = 0; c <= strlen(from->name); c++)
            *text++ = (unsigned char)from->name[c];
    }
    *count = n;
    return 0;
}

static uint32_t close_query(void *query)
{
    CHECK(query == &machine);
    machine.closed++;
    return 0;
}

enum { GPU = 1, NPU, SOFTWARE };

static int32_t enumerate(struct ew_kmt_enumerate *adapters)
{
    static const uint32_t luids[] = {0xD3A1, 0xE111, 0xB0B0};
    if (machine.no_adapters)
        return -1;
    adapters->count = machine.one_gpu ? 1 : 3;
    for (uint32_t i = 0; i < adapters->count; i++)
        adapters->list[i] = (struct ew_kmt_adapter){.handle = i + 1, .luid_low = luids[i]};
    machine.handles += adapters->count;
    return 0;
}

static int32_t query_adapter(struct ew_kmt_query *query)
{
    struct ew_kmt_address address = {query->handle, 0, 0};
    struct ew_kmt_segment_size segments = {UINT64_C(8) << 30, 0, UINT64_C(16) << 30};
    struct ew_kmt_device_ids ids = {.vendor = query->handle == NPU ? 0x8086 : 0x10de};
    struct ew_kmt_registry_info info;
    uint32_t type = query->handle == NPU        ? EW_KMT_COMPUTE_ONLY
                    : query->handle == SOFTWARE ? EW_KMT_RENDER | EW_KMT_SOFTWARE
                                                : EW_KMT_RENDER;
    memset(&info, 0, sizeof info);
    info.adapter[0] = query->handle == GPU ? 'G' : 'N';
    const void *from = query->type == EW_KMT_ADDRESS         ? (const void *)&address
                       : query->type == EW_KMT_SEGMENT_SIZE  ? (const void *)&segments
                       : query->type == EW_KMT_DEVICE_IDS    ? (const void *)&ids
                       : query->type == EW_KMT_REGISTRY_INFO ? (const void *)&info
                                                             : (const void *)&type;
    if (query->handle == NPU && query->type == EW_KMT_SEGMENT_SIZE)
        return -1;
    memcpy(query->data, from, query->size);
    return 0;
}

static int32_t close_adapter(const uint32_t *handle)
{
    CHECK(*handle >= 1 && *handle <= 3);
    machine.handles--;
    return 0;
}

static const struct ew_wddm_api api = {
    .open_query = open_query,
    .add_english_counter = add_counter,
    .collect = collect,
    .raw_array = raw_array,
    .close_query = close_query,
    .enumerate = enumerate,
    .query = query_adapter,
    .close_adapter = close_adapter,
};
static const struct ew_sensor_config config = {.gpu = true, .npu = true, .wddm = &api};

static void set(uint32_t list, const char *name, int64_t value)
{
    for (uint32_t i = 0; i < machine.counts[list]; i++)
        if (strcmp(machine.lists[list][i].name, name) == 0) {
            machine.lists[list][i].value = value;
            return;
        }
    machine.lists[list][machine.counts[list]++] = (struct value){.name = name, .value = value};
}

static void unset(uint32_t list, const char *name)
{
    for (uint32_t i = 0; i < machine.counts[list]; i++)
        if (strcmp(machine.lists[list][i].name, name) == 0)
            machine.lists[list][i] = machine.lists[list][--machine.counts[list]];
}

#define GAME_3D "pid_100_" GPU_LUID "_phys_0_eng_0_engtype_3D"
#define GAME_COPY "pid_100_" GPU_LUID "_phys_0_eng_1_engtype_Copy"
#define BROWSER_3D "pid_200_" GPU_LUID "_phys_0_eng_0_engtype_3D"
#define MODEL_NPU "pid_100_" NPU_LUID "_phys_0_eng_0_engtype_Compute"
#define SOFTWARE_3D "pid_100_" SOFTWARE_LUID "_phys_0_eng_0_engtype_3D"

static void start(void)
{
    memset(&machine, 0, sizeof machine);
    set(0, GAME_3D, 50000000);
    set(0, GAME_COPY, 1000);
    set(0, BROWSER_3D, 7000);
    set(0, MODEL_NPU, 2000);
    set(0, SOFTWARE_3D, 3000);
    set(1, "pid_100_" GPU_LUID "_phys_0", 300 << 20);
    set(1, "pid_100_" NPU_LUID "_phys_0", 99 << 20);
    set(2, GPU_LUID "_phys_0_part_0", 700 << 20);
}

static void *opened;
static struct ew_sensor_batch batch;

static void open_sensor(const struct ew_sensor_config *wanted)
{
    struct ew_error err = {0};
    CHECK(ew_sensor_wddm.probe(wanted, &err));
    CHECK_EQ_INT(ew_sensor_wddm.open(wanted, &opened, &err), 0);
}

static int read_at(uint64_t t_ms)
{
    struct ew_error err = {0};
    batch.device_count = batch.use_count = 0;
    batch.problem[0] = '\0';
    batch.sensor = "wddm";
    return ew_sensor_wddm.read(opened, t_ms * MS, &batch, &err);
}

static void close_sensor(void)
{
    ew_sensor_wddm.close(opened);
    ew_free(batch.devices);
    ew_free(batch.uses);
    memset(&batch, 0, sizeof batch);
    CHECK_EQ_UINT(machine.closed, machine.opened);
    CHECK_EQ_UINT(machine.handles, 0);
}

static const struct etwatch_device_process *use_of(uint32_t kind, uint32_t pid)
{
    for (uint32_t i = 0; i < batch.use_count; i++)
        if (batch.uses[i].process.pid == pid && batch.devices[batch.uses[i].device].kind == kind)
            return &batch.uses[i].process;
    return NULL;
}

static const struct ew_device_reading *device_of(uint32_t kind)
{
    for (uint32_t i = 0; i < batch.device_count; i++)
        if (batch.devices[i].kind == kind)
            return &batch.devices[i];
    return NULL;
}

TEST(running_time_is_counted_by_process_and_device)
{
    start();
    open_sensor(&config);
    CHECK_EQ_INT(read_at(1000), 0);
    CHECK_EQ_UINT(batch.device_count, 2); /* not the software adapter */
    const struct etwatch_device_process *game = use_of(ETWATCH_DEVICE_GPU, 100);
    CHECK(game != NULL);
    CHECK_EQ_UINT(game->has, ETWATCH_DEVICE_PROCESS_MEMORY); /* no time before the start */
    CHECK_EQ_UINT(game->memory_bytes, 300 << 20);
    set(0, GAME_3D, 50000000 + 4000000); /* 400 ms */
    set(0, GAME_COPY, 1000 + 1000000);   /* 100 ms */
    set(0, BROWSER_3D, 7000 + 500000);   /* 50 ms */
    set(0, MODEL_NPU, 2000 + 2500000);   /* 250 ms */
    CHECK_EQ_INT(read_at(2000), 0);
    game = use_of(ETWATCH_DEVICE_GPU, 100);
    CHECK(game != NULL && (game->has & ETWATCH_DEVICE_PROCESS_GPU_TIME) != 0);
    CHECK_EQ_UINT(game->gpu_ns, 500 * MS);
    CHECK_EQ_UINT(use_of(ETWATCH_DEVICE_GPU, 200)->gpu_ns, 50 * MS);
    const struct etwatch_device_process *model = use_of(ETWATCH_DEVICE_NPU, 100);
    CHECK(model != NULL);
    CHECK_EQ_UINT(model->has, ETWATCH_DEVICE_PROCESS_NPU_TIME);
    CHECK_EQ_UINT(model->npu_ns, 250 * MS);
    const struct ew_device_reading *gpu = device_of(ETWATCH_DEVICE_GPU);
    CHECK_EQ_UINT(gpu->from_ns, 1000 * MS);
    CHECK_EQ_UINT(gpu->busy_ns, 550 * MS);
    CHECK_NEAR(gpu->util_percent, 45, 0.001); /* the busiest engine: 400 + 50 ms of a second */
    CHECK_EQ_UINT(gpu->memory_used_bytes, 700 << 20);
    CHECK_EQ_UINT(gpu->memory_total_bytes, UINT64_C(8) << 30);
    CHECK_EQ_UINT(gpu->processes, 2);
    CHECK_EQ_STR(gpu->id, "0000:01:00.0");
    CHECK_EQ_STR(gpu->name, "G");
    CHECK(etwatch_metric_set_is_empty(&gpu->estimated));
    CHECK_NEAR(device_of(ETWATCH_DEVICE_NPU)->util_percent, 25, 0.001);
    close_sensor();
}

TEST(only_the_wanted_kind_is_read)
{
    const struct ew_sensor_config gpus = {.gpu = true, .wddm = &api};
    start();
    open_sensor(&gpus);
    CHECK_EQ_INT(read_at(1000), 0);
    CHECK_EQ_UINT(batch.device_count, 1);
    CHECK(use_of(ETWATCH_DEVICE_GPU, 100) != NULL);
    CHECK(use_of(ETWATCH_DEVICE_NPU, 100) == NULL);
    close_sensor();
}

TEST(a_process_that_begins_to_use_a_gpu_counts_from_zero)
{
    start();
    open_sensor(&config);
    CHECK_EQ_INT(read_at(1000), 0);
    set(0, "pid_300_" GPU_LUID "_phys_0_eng_0_engtype_3D", 300000);
    CHECK_EQ_INT(read_at(2000), 0);
    CHECK_EQ_UINT(use_of(ETWATCH_DEVICE_GPU, 300)->gpu_ns, 30 * MS);
    close_sensor();
}

TEST(an_instance_that_is_missing_for_a_moment_is_not_counted_again)
{
    start();
    open_sensor(&config);
    CHECK_EQ_INT(read_at(1000), 0);
    set(0, BROWSER_3D, 17000);
    CHECK_EQ_INT(read_at(2000), 0);
    unset(0, BROWSER_3D);
    CHECK_EQ_INT(read_at(3000), 0);
    CHECK(use_of(ETWATCH_DEVICE_GPU, 200) == NULL);
    set(0, BROWSER_3D, 37000);
    CHECK_EQ_INT(read_at(4000), 0);
    CHECK_EQ_UINT(use_of(ETWATCH_DEVICE_GPU, 200)->gpu_ns, 2 * MS);
    close_sensor();
}

TEST(a_reused_process_id_starts_at_zero)
{
    start();
    open_sensor(&config);
    CHECK_EQ_INT(read_at(1000), 0);
    set(0, GAME_3D, 10000);
    CHECK_EQ_INT(read_at(2000), 0);
    CHECK_EQ_UINT(use_of(ETWATCH_DEVICE_GPU, 100)->gpu_ns, 1 * MS);
    close_sensor();
}

/* An hour of work cannot have happened within a second: the instance existed before. */
TEST(more_than_an_engine_can_do_is_unknown)
{
    start();
    open_sensor(&config);
    CHECK_EQ_INT(read_at(1000), 0);
    set(0, "pid_300_" GPU_LUID "_phys_0_eng_0_engtype_3D", INT64_C(36000000000));
    CHECK_EQ_INT(read_at(2000), 0);
    const struct etwatch_device_process *late = use_of(ETWATCH_DEVICE_GPU, 300);
    CHECK(late != NULL);
    CHECK_EQ_UINT(late->has & ETWATCH_DEVICE_PROCESS_GPU_TIME, 0);
    CHECK(etwatch_metric_set_has(&device_of(ETWATCH_DEVICE_GPU)->estimated, ETWATCH_D_busy_ns));
    set(0, "pid_300_" GPU_LUID "_phys_0_eng_0_engtype_3D", INT64_C(36000010000));
    CHECK_EQ_INT(read_at(3000), 0);
    CHECK_EQ_UINT(use_of(ETWATCH_DEVICE_GPU, 300)->gpu_ns, 1 * MS);
    close_sensor();
}

TEST(values_that_pdh_marks_as_invalid_are_not_read)
{
    start();
    machine.lists[0][0].status = 0xC0000BBA;
    open_sensor(&config);
    CHECK_EQ_INT(read_at(1000), 0);
    set(0, GAME_3D, 60000000);
    set(0, GAME_COPY, 2000);
    CHECK_EQ_INT(read_at(2000), 0);
    CHECK_EQ_UINT(use_of(ETWATCH_DEVICE_GPU, 100)->gpu_ns, 100000);
    close_sensor();
}

TEST(a_machine_on_which_no_process_uses_a_gpu_is_idle)
{
    start();
    memset(machine.counts, 0, sizeof machine.counts);
    open_sensor(&config);
    CHECK_EQ_INT(read_at(1000), 0);
    machine.collect_code = EW_PDH_NO_DATA;
    CHECK_EQ_INT(read_at(2000), 0);
    CHECK(etwatch_metric_set_has(&device_of(ETWATCH_DEVICE_GPU)->has, ETWATCH_D_busy_ns));
    CHECK_EQ_UINT(device_of(ETWATCH_DEVICE_GPU)->busy_ns, 0);
    CHECK_EQ_UINT(batch.use_count, 0);
    close_sensor();
}

TEST(counters_that_cannot_be_read_end_the_sensor)
{
    start();
    open_sensor(&config);
    CHECK_EQ_INT(read_at(1000), 0);
    machine.collect_code = 0x800007D8;
    CHECK_EQ_INT(read_at(2000), ETWATCH_EOS);
    machine.collect_code = 0;
    machine.array_code = 0xC0000BC6;
    CHECK_EQ_INT(read_at(3000), ETWATCH_EOS);
    close_sensor();
}

TEST(a_windows_without_the_counters_has_no_sensor)
{
    struct ew_error err = {0};
    start();
    machine.no_counter = 1;
    CHECK(!ew_sensor_wddm.probe(&config, &err));
    CHECK_CONTAINS(err.message, "1709");
    CHECK_EQ_UINT(machine.closed, machine.opened);
}

TEST(memory_is_unknown_without_its_counters)
{
    start();
    machine.no_counter = 2;
    open_sensor(&config);
    CHECK_EQ_INT(read_at(1000), 0);
    CHECK_EQ_UINT(use_of(ETWATCH_DEVICE_GPU, 100)->has, 0);
    close_sensor();
}

TEST(an_adapter_without_a_description_is_a_gpu_with_its_luid)
{
    struct ew_wddm_api old = api;
    old.enumerate = NULL;
    const struct ew_sensor_config oldest = {.gpu = true, .npu = true, .wddm = &old};
    start();
    open_sensor(&oldest);
    CHECK_EQ_INT(read_at(1000), 0);
    CHECK_EQ_UINT(batch.device_count, 3);
    CHECK_EQ_STR(batch.devices[0].id, "luid_0x00000000_0x0000B0B0");
    close_sensor();
}

TEST(an_adapter_that_is_connected_later_is_found)
{
    start();
    machine.one_gpu = true;
    unset(0, MODEL_NPU);
    unset(0, SOFTWARE_3D);
    open_sensor(&config);
    CHECK_EQ_INT(read_at(1000), 0);
    CHECK_EQ_UINT(batch.device_count, 1);
    machine.one_gpu = false;
    set(0, MODEL_NPU, 100);
    CHECK_EQ_INT(read_at(2000), 0);
    CHECK(device_of(ETWATCH_DEVICE_NPU) != NULL);
    CHECK_EQ_UINT(use_of(ETWATCH_DEVICE_NPU, 100)->npu_ns, 10000);
    close_sensor();
}

static int torture_body(void *ctx)
{
    struct ew_error err = {0};
    (void)ctx;
    start();
    int error = ew_sensor_wddm.open(&config, &opened, &err);
    if (error != 0)
        return error;
    for (uint32_t i = 1; i <= 2 && error == 0; i++) {
        error = read_at(1000 * i);
        if (error == 0 && (batch.device_count != 2 || batch.use_count != 3))
            error = ETWATCH_ENOMEM;
    }
    close_sensor();
    return error;
}

TEST(a_failed_allocation_ends_the_sensor_or_leaves_devices_out)
{
    TORTURE(torture_body, NULL);
}

/* ------------------------------------------------------------------ two sensors, one GPU */

TEST(a_gpu_that_two_sensors_read_counts_once)
{
    struct ew_overlap overlap = {.count = 0};
    struct ew_device_reading wddm_device = {.kind = ETWATCH_DEVICE_GPU, .id = "0000:0a:00.0"};
    struct ew_device_reading nvml_devices[2] = {
        {.kind = ETWATCH_DEVICE_GPU, .id = "00000000:0A:00.0"},
        {.kind = ETWATCH_DEVICE_GPU, .id = "00000000:0B:00.0"},
    };
    const uint32_t all = ETWATCH_DEVICE_PROCESS_GPU_TIME | ETWATCH_DEVICE_PROCESS_MEMORY |
                         ETWATCH_DEVICE_PROCESS_ENERGY;
    struct ew_device_use uses[2] = {
        {.device = 0, .process = {.pid = 1, .has = all, .gpu_ns = 5, .energy_uj = 7}},
        {.device = 1, .process = {.pid = 2, .has = all, .gpu_ns = 6, .energy_uj = 8}},
    };
    struct ew_sensor_batch nvml = {
        .sensor = "nvml", .devices = nvml_devices, .device_count = 2, .uses = uses, .use_count = 2};
    struct ew_sensor_batch wddm = {.sensor = "wddm", .devices = &wddm_device, .device_count = 1};
    ew_overlap_apply(&overlap, &nvml);
    CHECK_EQ_UINT(uses[0].process.has, all); /* it alone reads it so far */
    ew_overlap_apply(&overlap, &wddm);
    ew_overlap_apply(&overlap, &wddm);
    CHECK_EQ_UINT(overlap.count, 1);
    ew_overlap_apply(&overlap, &nvml);
    CHECK_EQ_UINT(uses[0].process.has, ETWATCH_DEVICE_PROCESS_ENERGY);
    CHECK_EQ_UINT(uses[0].process.gpu_ns, 0);
    CHECK_EQ_UINT(uses[0].process.energy_uj, 7);
    CHECK_EQ_UINT(uses[1].process.has, all); /* a GPU of the compute driver only */
}
