/* SPDX-License-Identifier: MIT */
/*
 * The public reader of devices: keeps the latest reading of each device and the latest problem of
 * each sensor. A sensor with a problem has no devices: their values are unknown.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "os/os.h"
#include "sensor/sensor.h"

enum { KEPT_MAX = 512, PROBLEMS_MAX = 16 };

struct kept {
    const char *sensor;
    bool delivered;
    struct ew_device_reading reading;
    struct etwatch_device_process *processes;
    uint32_t process_count, process_room;
};

struct problem {
    const char *sensor;
    uint32_t kind, flags;
    char text[512];
};

struct etwatch_device_reader {
    struct ew_sensors *sensors;
    struct kept *kept[KEPT_MAX];
    uint32_t kept_count;
    struct problem problems[PROBLEMS_MAX];
    uint32_t problem_count;
    struct etwatch_device out[KEPT_MAX + PROBLEMS_MAX];
};

void ew_sensor_export(const struct ew_device_reading *reading, int64_t unix_minus_raw_ns,
                      struct etwatch_device *ret_device)
{
    struct etwatch_device out = {
        .size = sizeof out,
        .kind = reading->kind,
        .index = reading->index,
        .t_ns = reading->t_ns + (uint64_t)unix_minus_raw_ns,
        .dt_ns = reading->from_ns == 0 ? 0 : reading->t_ns - reading->from_ns,
        .driver = reading->driver,
        .id = reading->id[0] != '\0' ? reading->id : NULL,
        .name = reading->name[0] != '\0' ? reading->name : NULL,
        .has = reading->has,
        .estimated = reading->estimated,
    };
#define ETWATCH_X(metric, type, kind) out.metric = reading->metric;
    ETWATCH_DEVICE_METRICS(ETWATCH_X)
#undef ETWATCH_X
    etwatch_metric_set_intersect(&out.estimated, &out.has);
    *ret_device = out;
}

/* ----------------------------------------------------------------------- receiving */

static void free_kept(struct kept *kept)
{
    ew_free(kept->processes);
    ew_free(kept);
}

static void drop_devices(struct etwatch_device_reader *reader, const char *sensor)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < reader->kept_count; i++) {
        if (strcmp(reader->kept[i]->sensor, sensor) == 0)
            free_kept(reader->kept[i]);
        else
            reader->kept[left++] = reader->kept[i];
    }
    reader->kept_count = left;
}

static struct kept *add_kept(struct etwatch_device_reader *reader)
{
    struct kept *kept = reader->kept_count < KEPT_MAX ? ew_calloc(1, sizeof *kept) : NULL;
    if (kept != NULL)
        reader->kept[reader->kept_count++] = kept;
    return kept;
}

static void add_process(struct kept *kept, const struct etwatch_device_process *process)
{
    if (kept->process_count == kept->process_room) {
        uint32_t room = kept->process_room == 0 ? 8 : kept->process_room * 2;
        void *list = ew_realloc_array(kept->processes, room, sizeof *kept->processes);
        if (list == NULL)
            return;
        kept->processes = list;
        kept->process_room = room;
    }
    kept->processes[kept->process_count++] = *process;
}

#define ADD_IF(name)                                                 \
    do {                                                             \
        if (etwatch_metric_set_has(&old->has, ETWATCH_D_##name) &&   \
            etwatch_metric_set_has(&reading->has, ETWATCH_D_##name)) \
            reading->name += old->name;                              \
    } while (0)

/* Counters are since the last call of the reader's user, not since the last reading. */
static void add_undelivered(const struct etwatch_device_reader *reader, const char *sensor,
                            struct ew_device_reading *reading)
{
    for (uint32_t i = 0; i < reader->kept_count; i++) {
        const struct kept *kept = reader->kept[i];
        const struct ew_device_reading *old = &kept->reading;
        if (kept->delivered || strcmp(kept->sensor, sensor) != 0 ||
            strcmp(old->id, reading->id) != 0 || old->index != reading->index ||
            old->from_ns == 0 || reading->from_ns == 0)
            continue;
        ADD_IF(busy_ns);
        ADD_IF(energy_uj);
        ADD_IF(idle_energy_uj);
        ADD_IF(nvlink_received_bytes);
        ADD_IF(nvlink_sent_bytes);
        reading->from_ns = old->from_ns;
    }
}

/* A batch has every device of its sensor. */
static void on_batch(void *ctx, const struct ew_sensor_batch *batch)
{
    struct etwatch_device_reader *reader = ctx;
    for (uint32_t i = 0; i < batch->device_count; i++)
        add_undelivered(reader, batch->sensor, &batch->devices[i]);
    drop_devices(reader, batch->sensor);
    for (uint32_t i = 0; i < batch->device_count; i++) {
        struct kept *kept = add_kept(reader);
        if (kept == NULL)
            return;
        kept->sensor = batch->sensor;
        kept->reading = batch->devices[i];
        for (uint32_t j = 0; j < batch->use_count; j++)
            if (batch->uses[j].device == i)
                add_process(kept, &batch->uses[j].process);
    }
}

static void on_notice(void *ctx, const struct ew_sensor_notice *notice)
{
    struct etwatch_device_reader *reader = ctx;
    uint32_t i = 0;
    while (i < reader->problem_count && strcmp(reader->problems[i].sensor, notice->sensor) != 0)
        i++;
    if ((notice->flags & ETWATCH_DEVICE_RECOVERED) != 0) {
        if (i < reader->problem_count)
            reader->problems[i] = reader->problems[--reader->problem_count];
        return;
    }
    if (i == PROBLEMS_MAX)
        return;
    reader->problem_count += i == reader->problem_count;
    reader->problems[i].sensor = notice->sensor;
    reader->problems[i].kind = notice->kind;
    reader->problems[i].flags = notice->flags;
    (void)snprintf(reader->problems[i].text, sizeof reader->problems[i].text, "%s", notice->text);
}

/* ---------------------------------------------------------------- public functions */

int etwatch_device_reader_open(const struct etwatch_device_options *given,
                               struct etwatch_device_reader **ret_reader)
{
    struct etwatch_device_options options = {.size = sizeof options};
    if (ret_reader == NULL)
        return ETWATCH_EINVAL;
    int error = given == NULL ? 0 : ew_sized_in(&options, sizeof options, given, "options", NULL);
    if (error < 0)
        return error;
    uint32_t all =
        1u << ETWATCH_DEVICE_GPU | 1u << ETWATCH_DEVICE_NPU | 1u << ETWATCH_DEVICE_ENERGY;
    options.kinds = options.kinds == 0 ? all : options.kinds;
    options.hz = options.hz == 0 ? 10 : options.hz;
    if ((options.kinds & ~all) != 0 || !(options.hz >= 0.01 && options.hz <= 100))
        return ETWATCH_EINVAL;
    uint64_t period_ns = (uint64_t)(1e9 / options.hz);
    const struct ew_sensors_config config = {
        .sensor = {.proc_root = options.proc_root != NULL ? options.proc_root : "/proc",
                   .sys_root = options.sys_root != NULL ? options.sys_root : "/sys",
                   .nvml_library = options.nvml_library,
                   .amdsmi_library = options.amdsmi_library,
                   .gpu = (options.kinds >> ETWATCH_DEVICE_GPU & 1) != 0,
                   .npu = (options.kinds >> ETWATCH_DEVICE_NPU & 1) != 0,
                   .energy = (options.kinds >> ETWATCH_DEVICE_ENERGY & 1) != 0},
        .kinds = options.kinds,
        .period_ns = {period_ns, period_ns, period_ns, period_ns},
        .epoch_ns = ew_os_raw_ns(),
    };
    struct etwatch_device_reader *reader = ew_calloc(1, sizeof *reader);
    if (reader == NULL)
        return ETWATCH_ENOMEM;
    error = ew_sensors_open(&config, &reader->sensors);
    if (error != 0) {
        ew_free(reader);
        return error;
    }
    *ret_reader = reader;
    return 0;
}

int etwatch_device_reader_read(struct etwatch_device_reader *reader, int timeout_ms,
                               struct etwatch_devices *ret_batch)
{
    const struct ew_sensor_receiver receiver = {reader, on_batch, on_notice};
    uint64_t unix_ns = 0, raw_ns = 0;
    uint32_t count = 0;
    if (reader == NULL || ret_batch == NULL || ew_sized_check(ret_batch) < 0)
        return ETWATCH_EINVAL;
    ew_sensors_wait(reader->sensors, timeout_ms);
    ew_os_anchor(&unix_ns, &raw_ns);
    ew_sensors_drain(reader->sensors, raw_ns, &receiver);
    for (uint32_t i = 0; i < reader->problem_count; i++) {
        const struct problem *problem = &reader->problems[i];
        if ((problem->flags & ETWATCH_DEVICE_ABSENT) != 0)
            drop_devices(reader, problem->sensor);
        reader->out[count++] = (struct etwatch_device){
            .size = sizeof reader->out[0],
            .kind = problem->kind,
            .flags = problem->flags,
            .t_ns = unix_ns,
            .driver = problem->sensor,
            .problem = problem->text,
        };
    }
    for (uint32_t i = 0; i < reader->kept_count; i++) {
        struct kept *kept = reader->kept[i];
        bool again = kept->delivered;
        kept->delivered = true;
        ew_sensor_export(&kept->reading, (int64_t)(unix_ns - raw_ns), &reader->out[count]);
        if (again) { /* nothing new: what was counted is not counted twice */
            etwatch_metric_set_remove(&reader->out[count].has, ETWATCH_D_busy_ns);
            etwatch_metric_set_remove(&reader->out[count].has, ETWATCH_D_energy_uj);
            etwatch_metric_set_remove(&reader->out[count].has, ETWATCH_D_idle_energy_uj);
            etwatch_metric_set_remove(&reader->out[count].has, ETWATCH_D_nvlink_received_bytes);
            etwatch_metric_set_remove(&reader->out[count].has, ETWATCH_D_nvlink_sent_bytes);
        }
        reader->out[count].process_count = kept->process_count;
        reader->out[count].process_list = kept->processes;
        count++;
    }
    const struct etwatch_devices batch = etwatch_devices_of(reader->out, count);
    int error = ew_sized_out(ret_batch, &batch, sizeof batch);
    return error < 0 ? error : (int)count;
}

void etwatch_device_reader_close(struct etwatch_device_reader *reader)
{
    if (reader == NULL)
        return;
    ew_sensors_close(reader->sensors);
    for (uint32_t i = 0; i < reader->kept_count; i++)
        free_kept(reader->kept[i]);
    ew_free(reader);
}
