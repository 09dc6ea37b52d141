/* SPDX-License-Identifier: MIT */
/*
 * GPUs and NPUs of Windows: the counters of the graphics kernel, which Task Manager shows too, read
 * through PDH. They are exact: Running Time counts, in 100 ns, how long each engine worked for each
 * process since the process began to use it. The raw value is read; PDH's percentages are averages
 * over a time that PDH chooses.
 *
 * An instance is one engine of one adapter for one process. An adapter is known by its LUID; D3DKMT
 * has its name, its PCI address (by which NVML's device is recognized as the same), its memory and
 * its type. An adapter that can only compute is an NPU, except NVIDIA's, which are GPUs without a
 * display. Software adapters and virtual displays are no devices.
 *
 * GPU time is the sum over the engines, so it may exceed the elapsed time; the use of a device is
 * that of its busiest engine. The counts of an instance that is listed first after the start are
 * all new: it began since the last reading. More than an engine can work in that time proves that
 * it did not; then they only start the count and the time is unknown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf16.h"
#include "model/metric.h"
#include "sensor/sensor.h"
#include "sensor/wddm_api.h"
#include "sensor/wddm_name.h"

enum {
    ADAPTERS_MAX = 32,
    INSTANCES_MAX = 32768,
    ENGINES_MAX = 128, /* of one adapter */
    UNSEEN_MAX = 10,   /* readings for which an instance that is not listed is remembered */
    NVIDIA = 0x10de,
};
#define BUFFER_MAX (UINT32_C(16) << 20)
#define SECOND_NS UINT64_C(1000000000)
static const uint64_t find_every_ns = 5 * SECOND_NS;

enum counter { RUNNING_TIME, PROCESS_MEMORY, ADAPTER_MEMORY, COUNTERS };
static const char *const paths[COUNTERS] = {
    "\\GPU Engine(*)\\Running Time",
    "\\GPU Process Memory(*)\\Local Usage",
    "\\GPU Local Adapter Memory(*)\\Local Usage",
};

struct adapter {
    uint64_t luid, memory_bytes; /* 0: unknown */
    char id[EW_DEVICE_ID_SIZE], name[EW_DEVICE_NAME_SIZE];
    bool npu, ignored;
    /* Of the current reading. */
    uint32_t reading; /* in the batch; UINT32_MAX: none */
    uint64_t busy_ns, used_bytes;
    bool unsure, used_known;
    uint32_t engine_count, processes;
    struct {
        uint32_t phys, eng;
        uint64_t busy_ns;
    } engines[ENGINES_MAX];
};

struct instance {
    uint64_t luid, value; /* 100 ns, or bytes */
    uint64_t grown_ns;
    uint32_t pid, phys, eng;
    uint32_t unseen; /* readings since it was listed */
    bool unknown;    /* grown_ns is */
    enum ew_wddm_codec codec;
};

struct list {
    struct instance *items; /* sorted, each once */
    uint32_t count, room;
};

struct wddm {
    struct ew_sensor_config config;
    struct ew_wddm_api api;
    void *query, *counters[COUNTERS]; /* NULL: this Windows does not have it */
    struct adapter adapters[ADAPTERS_MAX];
    uint32_t adapter_count;
    struct list engines, fresh, merged, memory;
    void *buffer;
    uint32_t buffer_size;
    uint64_t last_ns, found_ns;
    bool full; /* more instances than fit */
};

/* ------------------------------------------------------------------------ adapters */

static bool ask(const struct wddm *wddm, uint32_t handle, uint32_t type, void *data, uint32_t size)
{
    struct ew_kmt_query query = {.handle = handle, .type = type, .data = data, .size = size};
    memset(data, 0, size);
    return wddm->api.query(&query) == 0;
}

static struct adapter *adapter_of(struct wddm *wddm, uint64_t luid)
{
    for (uint32_t i = 0; i < wddm->adapter_count; i++)
        if (wddm->adapters[i].luid == luid)
            return &wddm->adapters[i];
    return NULL;
}

static struct adapter *add_adapter(struct wddm *wddm, uint64_t luid)
{
    struct adapter *adapter = adapter_of(wddm, luid);
    if (adapter != NULL || wddm->adapter_count == ADAPTERS_MAX)
        return adapter;
    adapter = &wddm->adapters[wddm->adapter_count++];
    memset(adapter, 0, sizeof *adapter);
    adapter->luid = luid;
    (void)snprintf(adapter->id, sizeof adapter->id, "luid_0x%08X_0x%08X", (unsigned)(luid >> 32),
                   (unsigned)luid);
    return adapter;
}

static void describe(struct wddm *wddm, uint32_t handle, struct adapter *adapter)
{
    uint32_t type = 0;
    struct ew_kmt_address address;
    struct ew_kmt_device_ids ids;
    struct ew_kmt_segment_size segments;
    struct ew_kmt_registry_info info;
    bool typed = ask(wddm, handle, EW_KMT_ADAPTER_TYPE, &type, sizeof type);
    bool identified = ask(wddm, handle, EW_KMT_DEVICE_IDS, &ids, sizeof ids);
    bool compute = typed && (type & EW_KMT_COMPUTE_ONLY) != 0;
    adapter->npu = compute && !(identified && ids.vendor == NVIDIA);
    adapter->ignored = typed && !compute &&
                       ((type & EW_KMT_SOFTWARE) != 0 ||
                        ((type & EW_KMT_INDIRECT_DISPLAY) != 0 && (type & EW_KMT_RENDER) == 0));
    if (ask(wddm, handle, EW_KMT_ADDRESS, &address, sizeof address) && address.bus < 256 &&
        address.device < 32 && address.function < 8)
        (void)snprintf(adapter->id, sizeof adapter->id, "0000:%02x:%02x.%u", address.bus,
                       address.device, address.function);
    if (ask(wddm, handle, EW_KMT_SEGMENT_SIZE, &segments, sizeof segments) &&
        segments.dedicated_bytes >> 50 == 0)
        adapter->memory_bytes = segments.dedicated_bytes;
    if (ask(wddm, handle, EW_KMT_REGISTRY_INFO, &info, sizeof info))
        (void)ew_utf16_to_utf8((const uint8_t *)info.adapter,
                               ew_utf16_len((const uint8_t *)info.adapter, sizeof info.adapter),
                               adapter->name, sizeof adapter->name);
}

static void find_adapters(struct wddm *wddm)
{
    struct ew_kmt_adapter list[ADAPTERS_MAX];
    struct ew_kmt_enumerate found = {.count = ADAPTERS_MAX, .list = list};
    if (wddm->api.enumerate == NULL || wddm->api.enumerate(&found) != 0)
        return;
    for (uint32_t i = 0; i < found.count && i < ADAPTERS_MAX; i++) {
        uint64_t luid = (uint64_t)list[i].luid_high << 32 | list[i].luid_low;
        bool known = adapter_of(wddm, luid) != NULL;
        struct adapter *adapter = add_adapter(wddm, luid);
        if (adapter != NULL && !known)
            describe(wddm, list[i].handle, adapter);
        (void)wddm->api.close_adapter(&list[i].handle);
    }
}

/* ------------------------------------------------------------------------ counters */

static void wide(const char *text, uint16_t *ret_wide, size_t room)
{
    size_t i = 0;
    for (; text[i] != '\0' && i + 1 < room; i++)
        ret_wide[i] = (unsigned char)text[i];
    ret_wide[i] = 0;
}

static void close_wddm(void *state)
{
    struct wddm *wddm = state;
    if (wddm->query != NULL)
        (void)wddm->api.close_query(wddm->query);
    if (wddm->config.wddm == NULL)
        ew_wddm_api_done(&wddm->api);
    ew_free(wddm->engines.items);
    ew_free(wddm->fresh.items);
    ew_free(wddm->merged.items);
    ew_free(wddm->memory.items);
    ew_free(wddm->buffer);
    ew_free(wddm);
}

static int open_counters(struct wddm *wddm, struct ew_error *reterr)
{
    uint32_t code = wddm->api.open_query(NULL, 0, &wddm->query);
    if (code != 0) {
        wddm->query = NULL;
        return ew_error_set(reterr, ETWATCH_EOS, (int)code,
                            "the performance counters of Windows cannot be opened (0x%08x)", code);
    }
    for (uint32_t i = 0; i < COUNTERS; i++) {
        uint16_t path[64];
        wide(paths[i], path, sizeof path / sizeof path[0]);
        uint32_t failed = wddm->api.add_english_counter(wddm->query, path, 0, &wddm->counters[i]);
        if (failed != 0)
            wddm->counters[i] = NULL;
        code = code == 0 ? failed : code;
    }
    if (wddm->counters[RUNNING_TIME] == NULL)
        return ew_error_set(reterr, ETWATCH_ENOTSUP, (int)code,
                            "this Windows does not count the use of GPUs (it needs Windows 10 "
                            "1709; 0x%08x)",
                            code);
    return 0;
}

static int open_wddm(const struct ew_sensor_config *config, void **ret_state,
                     struct ew_error *reterr)
{
    struct wddm *wddm = ew_calloc(1, sizeof *wddm);
    if (wddm == NULL)
        return ETWATCH_ENOMEM;
    wddm->config = *config;
    int error = 0;
    if (config->wddm != NULL)
        wddm->api = *config->wddm;
    else if (!ew_wddm_api_load(&wddm->api))
        error = ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "this system has no pdh.dll");
    if (error == 0)
        error = open_counters(wddm, reterr);
    if (error != 0) {
        close_wddm(wddm);
        return error;
    }
    find_adapters(wddm);
    *ret_state = wddm;
    return 0;
}

static bool probe(const struct ew_sensor_config *config, struct ew_error *reterr)
{
    void *state = NULL;
    if (open_wddm(config, &state, reterr) != 0)
        return false;
    uint32_t devices = 0;
    const struct wddm *wddm = state;
    for (uint32_t i = 0; i < wddm->adapter_count; i++)
        devices += !wddm->adapters[i].ignored;
    bool any = devices > 0 || wddm->api.enumerate == NULL;
    if (!any)
        (void)ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "Windows has no GPU and no NPU");
    close_wddm(state);
    return any;
}

/* ------------------------------------------------------------------------ instances */

static int by_key(const void *a, const void *b)
{
    const struct instance *x = a, *y = b;
    if (x->luid != y->luid)
        return x->luid < y->luid ? -1 : 1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->phys != y->phys)
        return x->phys < y->phys ? -1 : 1;
    return x->eng < y->eng ? -1 : x->eng > y->eng;
}

static bool add(struct list *list, const struct instance *item)
{
    if (list->count == list->room) {
        uint32_t room = list->room == 0 ? 256 : list->room * 2;
        void *items = list->room >= INSTANCES_MAX
                          ? NULL
                          : ew_realloc_array(list->items, room, sizeof *list->items);
        if (items == NULL)
            return false;
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = *item;
    return true;
}

/* Grows until the values fit. 0, or the code of PDH. */
static uint32_t read_array(struct wddm *wddm, enum counter counter, uint32_t *ret_count)
{
    for (uint32_t tries = 0; tries < 4; tries++) {
        uint32_t size = wddm->buffer_size, count = 0;
        uint32_t code = wddm->api.raw_array(wddm->counters[counter], &size, &count, wddm->buffer);
        *ret_count = count;
        if (code != EW_PDH_MORE_DATA)
            return code;
        if (size > BUFFER_MAX || size <= wddm->buffer_size)
            return code;
        size += size / 4; /* processes start in between */
        void *buffer = ew_calloc(size, 1);
        if (buffer == NULL)
            return code;
        ew_free(wddm->buffer);
        wddm->buffer = buffer;
        wddm->buffer_size = size;
    }
    return EW_PDH_MORE_DATA;
}

/* The length of a name inside the buffer; 0: it is not inside. */
static size_t name_len(const struct wddm *wddm, const uint16_t *name)
{
    uintptr_t begin = (uintptr_t)wddm->buffer, at = (uintptr_t)name;
    if (at < begin || at - begin >= wddm->buffer_size || at % sizeof *name != 0)
        return 0;
    size_t room = (wddm->buffer_size - (at - begin)) / sizeof *name, len = 0;
    while (len < room && name[len] != 0)
        len++;
    return len < room ? len : 0;
}

/* The values of a counter, sorted; false: unknown. */
static bool read_list(struct wddm *wddm, enum counter counter, struct list *list)
{
    uint32_t count = 0;
    list->count = 0;
    if (wddm->counters[counter] == NULL)
        return false;
    uint32_t code = read_array(wddm, counter, &count);
    if (code == EW_PDH_NO_INSTANCE || code == EW_PDH_NO_DATA)
        return true; /* no process uses a GPU */
    if (code != 0 || (uint64_t)count * sizeof(struct ew_pdh_item) > wddm->buffer_size)
        return false;
    const struct ew_pdh_item *items = wddm->buffer;
    for (uint32_t i = 0; i < count; i++) {
        struct ew_wddm_name name;
        size_t len = name_len(wddm, items[i].name);
        bool valid = items[i].status == EW_PDH_VALID_DATA || items[i].status == EW_PDH_NEW_DATA;
        if (!valid || items[i].first < 0 || len == 0 ||
            !ew_wddm_name_parse(items[i].name, len, &name))
            continue;
        const struct instance item = {.luid = name.luid,
                                      .pid = name.pid,
                                      .phys = name.phys,
                                      .eng = name.eng,
                                      .codec = name.codec,
                                      .value = (uint64_t)items[i].first};
        if (!add(list, &item)) {
            wddm->full = true;
            break;
        }
    }
    if (list->count > 0)
        qsort(list->items, list->count, sizeof *list->items, by_key);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (kept > 0 && by_key(&list->items[kept - 1], &list->items[i]) == 0)
            list->items[kept - 1].value += list->items[i].value;
        else
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
    return true;
}

/* What an instance counted since it was read last. */
static void count(const struct wddm *wddm, const struct instance *old, struct instance *now,
                  uint64_t dt_ns)
{
    if (wddm->last_ns == 0)
        return;
    uint64_t from = old != NULL && now->value >= old->value ? old->value : 0;
    uint64_t grown = now->value - from;
    uint64_t elapsed_ns = dt_ns * (old != NULL ? old->unseen + 1u : 1u);
    now->unknown = grown > (elapsed_ns + elapsed_ns / 4 + SECOND_NS / 10) / 100;
    now->grown_ns = now->unknown ? 0 : grown * 100;
}

/* Joins the new values with the known ones, both sorted. An instance that is missing for a moment
 * is remembered: its whole count would be new otherwise. */
static void join(struct wddm *wddm, uint64_t dt_ns)
{
    struct list *old = &wddm->engines, *fresh = &wddm->fresh, *merged = &wddm->merged;
    uint32_t i = 0, j = 0;
    merged->count = 0;
    while (i < old->count || j < fresh->count) {
        int order = i == old->count     ? 1
                    : j == fresh->count ? -1
                                        : by_key(&old->items[i], &fresh->items[j]);
        struct instance item = order < 0 ? old->items[i] : fresh->items[j];
        item.grown_ns = 0;
        item.unknown = false;
        if (order < 0)
            item.unseen++;
        else
            count(wddm, order == 0 ? &old->items[i] : NULL, &item, dt_ns);
        i += order <= 0;
        j += order >= 0;
        if (item.unseen <= UNSEEN_MAX && !add(merged, &item))
            wddm->full = true;
    }
    struct list spare = *old;
    *old = *merged;
    *merged = spare;
}

/* ----------------------------------------------------------------------------- read */

static bool is_wanted(const struct wddm *wddm, const struct adapter *adapter)
{
    return !adapter->ignored && (adapter->npu ? wddm->config.npu : wddm->config.gpu);
}

static void add_devices(struct wddm *wddm, uint64_t now_ns, struct ew_sensor_batch *batch)
{
    for (uint32_t i = 0; i < wddm->adapter_count; i++) {
        struct adapter *adapter = &wddm->adapters[i];
        adapter->reading = UINT32_MAX;
        adapter->busy_ns = adapter->used_bytes = 0;
        adapter->unsure = adapter->used_known = false;
        adapter->engine_count = adapter->processes = 0;
        struct ew_device_reading *out =
            is_wanted(wddm, adapter) ? ew_sensor_add_device(batch) : NULL;
        if (out == NULL)
            continue;
        adapter->reading = batch->device_count - 1;
        out->kind = adapter->npu ? ETWATCH_DEVICE_NPU : ETWATCH_DEVICE_GPU;
        out->index = i;
        out->t_ns = now_ns;
        out->from_ns = wddm->last_ns;
        (void)snprintf(out->driver, sizeof out->driver, "wddm");
        memcpy(out->id, adapter->id, sizeof out->id);
        memcpy(out->name, adapter->name, sizeof out->name);
    }
}

static void count_engine(struct adapter *adapter, const struct instance *item)
{
    uint32_t i = 0;
    adapter->busy_ns += item->grown_ns;
    adapter->unsure |= item->unknown;
    while (i < adapter->engine_count &&
           (adapter->engines[i].phys != item->phys || adapter->engines[i].eng != item->eng))
        i++;
    if (i == ENGINES_MAX)
        return;
    if (i == adapter->engine_count) {
        adapter->engine_count++;
        adapter->engines[i].phys = item->phys;
        adapter->engines[i].eng = item->eng;
        adapter->engines[i].busy_ns = 0;
    }
    adapter->engines[i].busy_ns += item->grown_ns;
}

static struct ew_device_use *add_use(const struct wddm *wddm, const struct adapter *adapter,
                                     uint32_t pid, uint64_t now_ns, struct ew_sensor_batch *batch)
{
    struct ew_device_use *use = ew_sensor_add_use(batch);
    if (use == NULL)
        return NULL;
    use->from_ns = wddm->last_ns == 0 ? now_ns - 1 : wddm->last_ns;
    use->t_ns = now_ns;
    use->device = adapter->reading;
    use->process.pid = pid;
    return use;
}

/* Memory of a process on an adapter: the sum over its linked parts. False: unknown. */
static bool memory_of(const struct wddm *wddm, uint64_t luid, uint32_t pid, uint64_t *ret_bytes)
{
    const struct list *list = &wddm->memory;
    uint32_t low = 0, high = list->count;
    const struct instance key = {.luid = luid, .pid = pid};
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (by_key(&list->items[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_bytes = 0;
    bool found = false;
    for (; low < list->count && list->items[low].luid == luid && list->items[low].pid == pid;
         low++) {
        *ret_bytes += list->items[low].value;
        found = true;
    }
    return found && *ret_bytes >> 50 == 0;
}

static void put_uses(struct wddm *wddm, uint64_t now_ns, struct ew_sensor_batch *batch)
{
    const struct list *list = &wddm->engines;
    for (uint32_t i = 0; i < list->count;) {
        const struct instance *first = &list->items[i];
        struct adapter *adapter = adapter_of(wddm, first->luid);
        bool wanted = adapter != NULL && adapter->reading != UINT32_MAX;
        bool seen = false, unknown = false, mixed = false;
        uint64_t grown_ns = 0, encoder_ns = 0, decoder_ns = 0, bytes = 0;
        for (; i < list->count && list->items[i].luid == first->luid &&
               list->items[i].pid == first->pid;
             i++) {
            const struct instance *item = &list->items[i];
            grown_ns += item->grown_ns;
            encoder_ns += item->codec == EW_WDDM_ENCODER ? item->grown_ns : 0;
            decoder_ns += item->codec == EW_WDDM_DECODER ? item->grown_ns : 0;
            mixed |= item->codec == EW_WDDM_BOTH;
            unknown |= item->unknown;
            seen |= item->unseen == 0;
            if (wanted)
                count_engine(adapter, item);
        }
        struct ew_device_use *use = wanted && seen && first->pid != 0
                                        ? add_use(wddm, adapter, first->pid, now_ns, batch)
                                        : NULL;
        if (use == NULL)
            continue;
        adapter->processes++;
        if (wddm->last_ns != 0 && !unknown) {
            use->process.has |=
                adapter->npu ? ETWATCH_DEVICE_PROCESS_NPU_TIME : ETWATCH_DEVICE_PROCESS_GPU_TIME;
            *(adapter->npu ? &use->process.npu_ns : &use->process.gpu_ns) = grown_ns;
            use->process.encoder_ns = encoder_ns;
            use->process.decoder_ns = decoder_ns;
            use->process.has |= adapter->npu || mixed ? 0u : ETWATCH_DEVICE_PROCESS_CODEC_TIME;
        }
        if (!adapter->npu && memory_of(wddm, first->luid, first->pid, &bytes)) {
            use->process.has |= ETWATCH_DEVICE_PROCESS_MEMORY;
            use->process.memory_bytes = bytes;
        }
    }
}

static void sum_adapter_memory(struct wddm *wddm)
{
    if (!read_list(wddm, ADAPTER_MEMORY, &wddm->fresh))
        return;
    for (uint32_t i = 0; i < wddm->fresh.count; i++) {
        struct adapter *adapter = adapter_of(wddm, wddm->fresh.items[i].luid);
        if (adapter == NULL)
            continue;
        adapter->used_bytes += wddm->fresh.items[i].value;
        adapter->used_known = true;
    }
}

static void put_figures(const struct wddm *wddm, const struct adapter *adapter,
                        struct ew_device_reading *out)
{
    if (adapter->used_known && adapter->used_bytes >> 50 == 0)
        EW_DEVICE_PUT(out, memory_used_bytes, adapter->used_bytes);
    if (adapter->memory_bytes > 0 && adapter->used_bytes <= adapter->memory_bytes)
        EW_DEVICE_PUT(out, memory_total_bytes, adapter->memory_bytes);
    EW_DEVICE_PUT(out, processes, adapter->processes);
    if (wddm->last_ns == 0 || out->t_ns <= wddm->last_ns)
        return;
    uint64_t most_ns = 0;
    for (uint32_t i = 0; i < adapter->engine_count; i++)
        if (adapter->engines[i].busy_ns > most_ns)
            most_ns = adapter->engines[i].busy_ns;
    double percent = 100.0 * (double)most_ns / (double)(out->t_ns - wddm->last_ns);
    EW_DEVICE_PUT(out, busy_ns, adapter->busy_ns);
    EW_DEVICE_PUT(out, util_percent, percent < 100 ? percent : 100);
    if (!adapter->unsure)
        return;
    etwatch_metric_set_add(&out->estimated, ETWATCH_D_busy_ns);
    etwatch_metric_set_add(&out->estimated, ETWATCH_D_util_percent);
}

/* An adapter that was connected, or of which the driver was restarted, has a new LUID. */
static void find_new_adapters(struct wddm *wddm, uint64_t now_ns)
{
    bool unknown = false;
    for (uint32_t i = 0; i < wddm->fresh.count && !unknown; i++)
        unknown = adapter_of(wddm, wddm->fresh.items[i].luid) == NULL;
    if (!unknown || (wddm->found_ns != 0 && now_ns - wddm->found_ns < find_every_ns))
        return;
    wddm->found_ns = now_ns;
    find_adapters(wddm);
    /* Without D3DKMT every adapter is taken for a GPU. */
    for (uint32_t i = 0; i < wddm->fresh.count && wddm->api.enumerate == NULL; i++)
        (void)add_adapter(wddm, wddm->fresh.items[i].luid);
}

static int read_wddm(void *state, uint64_t now_ns, struct ew_sensor_batch *batch,
                     struct ew_error *reterr)
{
    struct wddm *wddm = state;
    uint32_t code = wddm->api.collect(wddm->query);
    wddm->full = false;
    bool known = code == 0 || code == EW_PDH_NO_DATA;
    known = known && read_list(wddm, RUNNING_TIME, &wddm->fresh);
    if (!known) /* closed and opened again */
        return ew_error_set(reterr, ETWATCH_EOS, (int)code,
                            "the GPU counters of Windows cannot be read (0x%08x)", code);
    find_new_adapters(wddm, now_ns);
    join(wddm, wddm->last_ns == 0 ? 0 : now_ns - wddm->last_ns);
    (void)read_list(wddm, PROCESS_MEMORY, &wddm->memory);
    add_devices(wddm, now_ns, batch);
    sum_adapter_memory(wddm);
    if (wddm->full) /* some counts would be too small, and others too large the next time */
        return ew_error_set(reterr, ETWATCH_ELIMIT, 0,
                            "no memory for the instances of GPU counters (at most %d)",
                            INSTANCES_MAX);
    put_uses(wddm, now_ns, batch);
    for (uint32_t i = 0; i < wddm->adapter_count; i++)
        if (wddm->adapters[i].reading != UINT32_MAX)
            put_figures(wddm, &wddm->adapters[i], &batch->devices[wddm->adapters[i].reading]);
    wddm->last_ns = now_ns;
    return 0;
}

const struct ew_sensor_ops ew_sensor_wddm = {
    .name = "wddm",
    .kinds = 1u << ETWATCH_DEVICE_GPU | 1u << ETWATCH_DEVICE_NPU,
    /* The counts are exact at any rate; listing all instances is what costs. */
    .min_period_ns = SECOND_NS / 2,
    .metrics = EW_METRIC_SET(ETWATCH_M_gpu_ns, ETWATCH_M_gpu_percent, ETWATCH_M_gpu_memory_bytes,
                             ETWATCH_M_npu_ns, ETWATCH_M_npu_percent, ETWATCH_M_gpu_encoder_ns,
                             ETWATCH_M_gpu_decoder_ns),
    .probe = probe,
    .open = open_wddm,
    .close = close_wddm,
    .read = read_wddm,
};
