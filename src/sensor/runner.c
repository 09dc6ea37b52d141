/* SPDX-License-Identifier: MIT */
/*
 * Runs each sensor on a thread of its own and queues its batches for the monitor.
 *
 * The lock of a slot is never held during a call into a driver. So a drain never waits longer than
 * a copy of pointers takes, and a driver that hangs delays only its own values. A thread that does
 * not return when the sensors are closed is detached: it owns its slot from then on and frees it
 * when the driver returns. A sensor that fails is closed and opened again after a pause.
 */
#include "sensor/sensor.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "os/os.h"
#include "sensor/overlap.h"

enum {
    QUEUE_SIZE = 64, /* batches; more: the oldest is dropped */
    SENSORS_MAX = 16,
    CLOSE_WAIT_MS = 300,
};
#define SECOND_NS UINT64_C(1000000000)
static const uint64_t lead_max_ns = 5000000;
static const uint64_t stuck_ns = SECOND_NS;
static const uint64_t reopen_ns = 5 * SECOND_NS;

struct slot {
    const struct ew_sensor_ops *ops;
    struct ew_sensor_config config; /* with own copies of the strings */
    uint64_t epoch_ns, period_ns;
    uint32_t kind, kinds; /* the first one, and bits of all */
    struct ew_waiter *waiter;
    struct ew_thread_handle *thread;

    struct ew_mutex *lock; /* guards everything below */
    struct ew_cond *changed;
    bool stopping, ended, orphan;
    bool last;        /* the next reading is the last one */
    bool answered;    /* a batch or an error was seen */
    uint64_t batches; /* since the start */
    struct ew_sensor_batch queue[QUEUE_SIZE];
    uint32_t first, count;
    uint64_t busy_since_ns; /* inside the driver; 0: not */
    uint64_t cpu_ns;
    char text[512]; /* the latest notice */
    uint32_t flags;
    bool news;           /* it was not delivered yet */
    bool stuck_reported; /* by the drain */

    struct ew_sensor_batch filling; /* of the thread */
    char problem[256];              /* of the last batch; of the thread */
};

struct ew_sensors {
    struct slot *slots[SENSORS_MAX];
    uint32_t count;
    struct { /* sensors that were not started */
        const struct ew_sensor_ops *ops;
        uint32_t kind;
        char text[512];
        bool delivered;
    } absent[SENSORS_MAX];
    uint32_t absent_count;
    uint32_t kinds;
    struct ew_sensor_batch drained;
    struct ew_overlap overlap;
};

/* ------------------------------------------------------------------------ batches */

static void *grow(void *list, uint32_t count, uint32_t *room, uint32_t max, size_t size)
{
    if (count < *room)
        return list;
    if (*room >= max)
        return NULL;
    uint32_t wanted = *room == 0 ? 8 : *room * 2;
    void *bigger = ew_realloc_array(list, wanted, size);
    if (bigger != NULL)
        *room = wanted;
    return bigger;
}

struct ew_device_reading *ew_sensor_add_device(struct ew_sensor_batch *batch)
{
    void *list = grow(batch->devices, batch->device_count, &batch->device_room,
                      EW_SENSOR_DEVICES_MAX, sizeof *batch->devices);
    if (list == NULL)
        return NULL;
    batch->devices = list;
    struct ew_device_reading *reading = &batch->devices[batch->device_count++];
    memset(reading, 0, sizeof *reading);
    return reading;
}

struct ew_device_use *ew_sensor_add_use(struct ew_sensor_batch *batch)
{
    void *list = grow(batch->uses, batch->use_count, &batch->use_room, EW_SENSOR_USES_MAX,
                      sizeof *batch->uses);
    if (list == NULL)
        return NULL;
    batch->uses = list;
    struct ew_device_use *use = &batch->uses[batch->use_count++];
    memset(use, 0, sizeof *use);
    return use;
}

static void free_batch(struct ew_sensor_batch *batch)
{
    ew_free(batch->devices);
    ew_free(batch->uses);
}

static void swap(struct ew_sensor_batch *a, struct ew_sensor_batch *b)
{
    struct ew_sensor_batch c = *a;
    *a = *b;
    *b = c;
}

/* ------------------------------------------------------------------------- thread */

static void free_slot(struct slot *slot)
{
    for (uint32_t i = 0; i < QUEUE_SIZE; i++)
        free_batch(&slot->queue[i]);
    free_batch(&slot->filling);
    ew_free((char *)(uintptr_t)slot->config.proc_root);
    ew_free((char *)(uintptr_t)slot->config.sys_root);
    ew_free((char *)(uintptr_t)slot->config.nvml_library);
    ew_free((char *)(uintptr_t)slot->config.amdsmi_library);
    ew_waiter_free(slot->waiter);
    ew_cond_free(slot->changed);
    ew_mutex_free(slot->lock);
    ew_free(slot);
}

static void note(struct slot *slot, uint32_t flags, const char *text, const char *fix)
{
    ew_mutex_lock(slot->lock);
    (void)snprintf(slot->text, sizeof slot->text, "%.250s%s%.250s", text,
                   fix[0] != '\0' ? "; fix: " : "", fix);
    slot->flags = flags;
    slot->news = true;
    slot->answered = true;
    ew_cond_signal(slot->changed);
    ew_mutex_unlock(slot->lock);
}

/* Marks the time inside the driver. Returns whether the sensor is to stop instead. */
static bool enter_driver(struct slot *slot)
{
    ew_mutex_lock(slot->lock);
    bool stopping = slot->stopping;
    slot->busy_since_ns = ew_os_raw_ns();
    ew_mutex_unlock(slot->lock);
    return stopping;
}

static bool leave_driver(struct slot *slot)
{
    ew_mutex_lock(slot->lock);
    slot->busy_since_ns = 0;
    slot->cpu_ns = ew_os_thread_cpu_ns();
    bool stopping = slot->stopping;
    ew_mutex_unlock(slot->lock);
    return stopping;
}

static void queue_batch(struct slot *slot)
{
    ew_mutex_lock(slot->lock);
    if (slot->count == QUEUE_SIZE) {
        slot->first = (slot->first + 1) % QUEUE_SIZE;
        slot->count--;
    }
    swap(&slot->filling, &slot->queue[(slot->first + slot->count) % QUEUE_SIZE]);
    slot->count++;
    slot->batches++;
    slot->answered = true;
    ew_cond_signal(slot->changed);
    ew_mutex_unlock(slot->lock);
}

/* The next moment shortly before a multiple of the period: the loop of the monitor wakes at those
 * multiples. */
static uint64_t next_due(const struct slot *slot, uint64_t now_ns)
{
    uint64_t lead_ns = slot->period_ns / 5 < lead_max_ns ? slot->period_ns / 5 : lead_max_ns;
    uint64_t since_ns = now_ns + lead_ns > slot->epoch_ns ? now_ns + lead_ns - slot->epoch_ns : 0;
    return slot->epoch_ns + (since_ns / slot->period_ns + 1) * slot->period_ns - lead_ns;
}

/* A problem inside a batch is reported when it begins, changes or ends. */
static void note_problem(struct slot *slot, const char *problem)
{
    if (strcmp(problem, slot->problem) == 0)
        return;
    (void)snprintf(slot->problem, sizeof slot->problem, "%s", problem);
    if (problem[0] != '\0')
        note(slot, ETWATCH_DEVICE_PROBLEM, problem, "");
    else
        note(slot, ETWATCH_DEVICE_PROBLEM | ETWATCH_DEVICE_RECOVERED, "works again", "");
}

/* Reads until the sensor fails or is stopped; true: stopped. *ret_error is why it failed. */
static bool read_until_failure(struct slot *slot, void *state, int *ret_error)
{
    uint64_t due_ns = ew_os_raw_ns();
    for (;;) {
        (void)ew_waiter_wait(slot->waiter, due_ns, -1);
        struct ew_error err = {0};
        slot->filling.device_count = slot->filling.use_count = 0;
        slot->filling.problem[0] = '\0';
        if (enter_driver(slot))
            return leave_driver(slot);
        ew_mutex_lock(slot->lock);
        slot->filling.last = slot->last;
        ew_mutex_unlock(slot->lock);
        int error = slot->ops->read(state, ew_os_raw_ns(), &slot->filling, &err);
        bool stopping = leave_driver(slot);
        if (stopping)
            return true;
        if (error != 0) {
            *ret_error = error;
            note_problem(slot, err.message[0] != '\0' ? err.message : etwatch_strerror(error));
            return false;
        }
        note_problem(slot, slot->filling.problem);
        queue_batch(slot);
        due_ns = next_due(slot, ew_os_raw_ns());
    }
}

static bool pause_slot(struct slot *slot)
{
    (void)ew_waiter_wait(slot->waiter, ew_os_raw_ns() + reopen_ns, -1);
    ew_mutex_lock(slot->lock);
    bool stopping = slot->stopping;
    ew_mutex_unlock(slot->lock);
    return stopping;
}

static void run(void *arg)
{
    struct slot *slot = arg;
    ew_os_thread_drop_rights();
    for (bool stopping = false; !stopping;) {
        struct ew_error err = {0};
        void *state = NULL;
        int failure = 0;
        (void)enter_driver(slot);
        int error = slot->ops->open(&slot->config, &state, &err);
        stopping = leave_driver(slot);
        if (error != 0 && slot->problem[0] == '\0') {
            const char *text = err.message[0] != '\0' ? err.message : etwatch_strerror(error);
            (void)snprintf(slot->problem, sizeof slot->problem, "%s", text);
            note(slot, ETWATCH_DEVICE_PROBLEM | ETWATCH_DEVICE_ABSENT, text, err.fix);
        }
        if (error == 0 && !stopping)
            stopping = read_until_failure(slot, state, &failure);
        if (error == 0) {
            (void)enter_driver(slot);
            slot->ops->close(state);
            (void)leave_driver(slot);
        }
        if (failure == ETWATCH_ESTATE)
            slot->problem[0] = '\0';
        else
            stopping = stopping || pause_slot(slot);
    }
    ew_mutex_lock(slot->lock);
    slot->ended = true;
    bool orphan = slot->orphan;
    ew_cond_signal(slot->changed);
    ew_mutex_unlock(slot->lock);
    if (orphan)
        free_slot(slot);
}

/* ------------------------------------------------------------------ open and close */

static char *copy_text(const char *text, int *error)
{
    char *copy = text == NULL ? NULL : ew_strdup(text);
    if (text != NULL && copy == NULL)
        *error = ETWATCH_ENOMEM;
    return copy;
}

static uint32_t first_kind(uint32_t kinds)
{
    for (uint32_t kind = ETWATCH_DEVICE_GPU; kind <= ETWATCH_DEVICE_ENERGY; kind++)
        if ((kinds >> kind & 1) != 0)
            return kind;
    return 0;
}

static uint64_t period_of(const struct ew_sensors_config *config, const struct ew_sensor_ops *ops)
{
    uint64_t period_ns = 0;
    for (uint32_t kind = ETWATCH_DEVICE_GPU; kind <= ETWATCH_DEVICE_ENERGY; kind++) {
        uint64_t own_ns = config->period_ns[kind];
        if ((config->kinds & ops->kinds & 1u << kind) != 0 && own_ns != 0 &&
            (period_ns == 0 || own_ns < period_ns))
            period_ns = own_ns;
    }
    period_ns = period_ns == 0 ? SECOND_NS / 10 : period_ns;
    return period_ns > ops->min_period_ns ? period_ns : ops->min_period_ns;
}

static int start_slot(struct ew_sensors *sensors, const struct ew_sensors_config *config,
                      const struct ew_sensor_ops *ops, uint32_t kinds)
{
    struct slot *slot = ew_calloc(1, sizeof *slot);
    if (slot == NULL)
        return ETWATCH_ENOMEM;
    slot->ops = ops;
    slot->kind = first_kind(kinds);
    slot->kinds = kinds;
    slot->epoch_ns = config->epoch_ns;
    slot->period_ns = period_of(config, ops);
    slot->config = config->sensor;
    int error = 0;
    slot->config.proc_root = copy_text(config->sensor.proc_root, &error);
    slot->config.sys_root = copy_text(config->sensor.sys_root, &error);
    slot->config.nvml_library = copy_text(config->sensor.nvml_library, &error);
    slot->config.amdsmi_library = copy_text(config->sensor.amdsmi_library, &error);
    if (error == 0)
        error = ew_mutex_new(&slot->lock);
    if (error == 0)
        error = ew_cond_new(&slot->changed);
    if (error == 0)
        error = ew_waiter_new(&slot->waiter);
    if (error == 0)
        error = ew_os_thread_start(run, slot, &slot->thread);
    if (error != 0) {
        free_slot(slot);
        return error;
    }
    sensors->slots[sensors->count++] = slot;
    return 0;
}

static void note_absent(struct ew_sensors *sensors, const struct ew_sensor_ops *ops, uint32_t kind,
                        const struct ew_error *err)
{
    uint32_t i = sensors->absent_count++;
    sensors->absent[i].ops = ops;
    sensors->absent[i].kind = kind;
    (void)snprintf(sensors->absent[i].text, sizeof sensors->absent[i].text, "%.250s%s%.250s",
                   err->message, err->fix[0] != '\0' ? "; fix: " : "", err->fix);
}

int ew_sensors_open(const struct ew_sensors_config *config, struct ew_sensors **ret_sensors)
{
    const struct ew_sensor_ops *const *list = config->ops != NULL ? config->ops : ew_sensors_native;
    struct ew_sensors *sensors = ew_calloc(1, sizeof *sensors);
    int error = sensors == NULL ? ETWATCH_ENOMEM : 0;
    for (uint32_t i = 0; error == 0 && list[i] != NULL && i < SENSORS_MAX; i++) {
        struct ew_error err = {0};
        uint32_t kinds = list[i]->kinds & config->kinds;
        if (kinds == 0)
            continue;
        uint32_t found = kinds;
        bool there = list[i]->probe(&config->sensor, &err);
        if (there && list[i]->find_kinds != NULL)
            found &= list[i]->find_kinds(&config->sensor);
        if (there && found != 0) {
            error = start_slot(sensors, config, list[i], found);
            sensors->kinds |= found;
        } else if (there) {
            (void)ew_error_set(&err, ETWATCH_ENOTSUP, 0, "no device of this kind");
            note_absent(sensors, list[i], first_kind(kinds), &err);
        } else {
            note_absent(sensors, list[i], first_kind(kinds), &err);
        }
    }
    if (error != 0) {
        ew_sensors_close(sensors);
        return error;
    }
    *ret_sensors = sensors;
    return 0;
}

static void close_slot(struct slot *slot)
{
    ew_mutex_lock(slot->lock);
    uint64_t until_ns = ew_os_raw_ns() + (uint64_t)CLOSE_WAIT_MS * 1000000;
    while (!slot->ended && ew_os_raw_ns() < until_ns)
        (void)ew_cond_wait(slot->changed, slot->lock, 20);
    slot->orphan = !slot->ended;
    bool orphan = slot->orphan;
    struct ew_thread_handle *thread = slot->thread;
    ew_mutex_unlock(slot->lock);
    if (orphan) {
        ew_os_thread_detach(thread);
        return;
    }
    ew_os_thread_join(thread);
    free_slot(slot);
}

void ew_sensors_close(struct ew_sensors *sensors)
{
    if (sensors == NULL)
        return;
    for (uint32_t i = 0; i < sensors->count; i++) {
        ew_mutex_lock(sensors->slots[i]->lock);
        sensors->slots[i]->stopping = true;
        ew_mutex_unlock(sensors->slots[i]->lock);
        ew_waiter_wake(sensors->slots[i]->waiter);
    }
    for (uint32_t i = 0; i < sensors->count; i++)
        close_slot(sensors->slots[i]);
    free_batch(&sensors->drained);
    ew_free(sensors);
}

/* -------------------------------------------------------------------------- drain */

static void deliver_notice(const struct slot *slot, const struct ew_sensor_receiver *receiver,
                           uint32_t flags, const char *text)
{
    const struct ew_sensor_notice notice = {slot->ops->name, slot->kind, flags, text};
    receiver->notice(receiver->ctx, &notice);
}

static void report_stuck(struct slot *slot, uint64_t now_ns,
                         const struct ew_sensor_receiver *receiver)
{
    ew_mutex_lock(slot->lock);
    uint64_t since_ns = slot->busy_since_ns;
    bool reported = slot->stuck_reported;
    bool stuck = since_ns != 0 && now_ns > since_ns && now_ns - since_ns > stuck_ns;
    slot->stuck_reported = stuck;
    ew_mutex_unlock(slot->lock);
    if (stuck && !reported)
        deliver_notice(slot, receiver, ETWATCH_DEVICE_PROBLEM,
                       "the driver has not answered for a second; its values are unknown until it "
                       "does");
    else if (!stuck && reported)
        deliver_notice(slot, receiver, ETWATCH_DEVICE_PROBLEM | ETWATCH_DEVICE_RECOVERED,
                       "the driver answers again");
}

static void drain_slot(struct ew_sensors *sensors, struct slot *slot, uint64_t now_ns,
                       const struct ew_sensor_receiver *receiver)
{
    char text[sizeof slot->text];
    report_stuck(slot, now_ns, receiver);
    ew_mutex_lock(slot->lock);
    bool news = slot->news;
    uint32_t flags = slot->flags;
    slot->news = false;
    if (news)
        memcpy(text, slot->text, sizeof text);
    while (slot->count > 0) {
        swap(&sensors->drained, &slot->queue[slot->first]);
        slot->first = (slot->first + 1) % QUEUE_SIZE;
        slot->count--;
        ew_mutex_unlock(slot->lock);
        sensors->drained.sensor = slot->ops->name;
        ew_overlap_apply(&sensors->overlap, &sensors->drained);
        receiver->batch(receiver->ctx, &sensors->drained);
        ew_mutex_lock(slot->lock);
    }
    ew_mutex_unlock(slot->lock);
    if (news)
        deliver_notice(slot, receiver, flags, text);
}

/* Of several drivers for one kind of device most are usually absent: they are reported only if the
 * kind has none at all, the first of them. */
static void drain_absent(struct ew_sensors *sensors, const struct ew_sensor_receiver *receiver)
{
    uint32_t reported = sensors->kinds;
    for (uint32_t i = 0; i < sensors->absent_count; i++) {
        const struct ew_sensor_notice notice = {
            sensors->absent[i].ops->name, sensors->absent[i].kind,
            ETWATCH_DEVICE_PROBLEM | ETWATCH_DEVICE_ABSENT, sensors->absent[i].text};
        bool first = (reported >> notice.kind & 1) == 0;
        reported |= 1u << notice.kind;
        if (first && !sensors->absent[i].delivered)
            receiver->notice(receiver->ctx, &notice);
        sensors->absent[i].delivered = true;
    }
}

void ew_sensors_drain(struct ew_sensors *sensors, uint64_t now_ns,
                      const struct ew_sensor_receiver *receiver)
{
    drain_absent(sensors, receiver);
    for (uint32_t i = 0; i < sensors->count; i++)
        drain_slot(sensors, sensors->slots[i], now_ns, receiver);
}

void ew_sensors_wait(struct ew_sensors *sensors, int timeout_ms)
{
    uint64_t until_ns = ew_os_raw_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000000;
    for (uint32_t i = 0; i < sensors->count; i++) {
        struct slot *slot = sensors->slots[i];
        ew_mutex_lock(slot->lock);
        while (!slot->answered && ew_os_raw_ns() < until_ns)
            (void)ew_cond_wait(slot->changed, slot->lock, 10);
        ew_mutex_unlock(slot->lock);
    }
}

void ew_sensors_read_now(struct ew_sensors *sensors, int timeout_ms)
{
    uint64_t until_ns = ew_os_raw_ns() + (uint64_t)timeout_ms * 1000000;
    uint64_t batches[SENSORS_MAX];
    for (uint32_t i = 0; i < sensors->count; i++) {
        struct slot *slot = sensors->slots[i];
        ew_mutex_lock(slot->lock);
        /* One that hangs or failed would only cost the wait. */
        bool works = slot->batches > 0 && !slot->stuck_reported;
        batches[i] = works ? slot->batches : UINT64_MAX;
        slot->last = true;
        ew_mutex_unlock(slot->lock);
        ew_waiter_wake(slot->waiter);
    }
    for (uint32_t i = 0; i < sensors->count; i++) {
        struct slot *slot = sensors->slots[i];
        ew_mutex_lock(slot->lock);
        while (batches[i] != UINT64_MAX && slot->batches == batches[i] && ew_os_raw_ns() < until_ns)
            (void)ew_cond_wait(slot->changed, slot->lock, 5);
        ew_mutex_unlock(slot->lock);
    }
}

uint64_t ew_sensors_cpu_ns(struct ew_sensors *sensors)
{
    uint64_t sum_ns = 0;
    for (uint32_t i = 0; i < sensors->count; i++) {
        ew_mutex_lock(sensors->slots[i]->lock);
        sum_ns += sensors->slots[i]->cpu_ns;
        ew_mutex_unlock(sensors->slots[i]->lock);
    }
    return sum_ns;
}

void ew_sensors_metrics(const struct ew_sensors *sensors, struct etwatch_metric_set *ret_metrics,
                        struct etwatch_metric_set *ret_estimated)
{
    *ret_metrics = *ret_estimated = (struct etwatch_metric_set){{0}};
    for (uint32_t i = 0; i < sensors->count; i++) {
        struct etwatch_metric_set metrics = sensors->slots[i]->ops->metrics;
        struct etwatch_metric_set estimated = sensors->slots[i]->ops->estimated;
        if ((sensors->slots[i]->kinds >> ETWATCH_DEVICE_ENERGY & 1) == 0) {
            etwatch_metric_set_remove(&metrics, ETWATCH_M_energy_uj);
            etwatch_metric_set_remove(&estimated, ETWATCH_M_energy_uj);
        }
        etwatch_metric_set_union(ret_metrics, &metrics);
        etwatch_metric_set_union(ret_estimated, &estimated);
    }
}
