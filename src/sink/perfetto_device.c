/* SPDX-License-Identifier: MIT */
/*
 * Devices in a Perfetto trace: a track for each device, and below it a counter track for each value
 * that it ever had. Counts are shown per second. A device with a problem gets an instant instead of
 * values. The table of devices is bounded; beyond it devices are not shown.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sink/device.h"
#include "sink/perfetto.h"

enum { DEVICES_MAX = 256 };

struct ew_pf_device {
    char key[160]; /* kind, driver, id */
    uint64_t uuid; /* of the device; its counters follow */
    uint32_t described;
    bool named;
};

_Static_assert(ETWATCH_DEVICE_METRIC_COUNT <= 32, "a bit each");

void ew_pf_devices_done(struct ew_pf_sink *sink)
{
    ew_free(sink->devices);
    sink->devices = NULL;
    sink->device_count = 0;
}

void ew_pf_devices_again(struct ew_pf_sink *sink)
{
    for (uint32_t i = 0; i < sink->device_count; i++) {
        sink->devices[i].described = 0;
        sink->devices[i].named = false;
    }
}

static struct ew_pf_device *find(struct ew_pf_sink *sink, const struct etwatch_device *device)
{
    char key[sizeof sink->devices->key];
    const char *kind = etwatch_device_kind_name(device->kind);
    (void)snprintf(key, sizeof key, "%s %.40s %.80s", kind != NULL ? kind : "device",
                   device->driver != NULL ? device->driver : "",
                   device->id != NULL ? device->id : "");
    for (uint32_t i = 0; i < sink->device_count; i++)
        if (strcmp(sink->devices[i].key, key) == 0)
            return &sink->devices[i];
    if (sink->devices == NULL)
        sink->devices = ew_calloc(DEVICES_MAX, sizeof *sink->devices);
    if (sink->devices == NULL || sink->device_count == DEVICES_MAX)
        return NULL;
    struct ew_pf_device *added = &sink->devices[sink->device_count++];
    memcpy(added->key, key, sizeof key);
    added->uuid = sink->next_uuid;
    sink->next_uuid += 1 + ETWATCH_DEVICE_METRIC_COUNT;
    return added;
}

static void put_track(struct ew_pf_sink *sink, uint64_t uuid, uint64_t parent, const char *name,
                      bool counter)
{
    struct ew_buf *out = &sink->packets;
    size_t packet = ew_proto_begin(out, EW_PF_TRACE_PACKET);
    ew_proto_u64(out, EW_PF_SEQUENCE_ID, EW_PF_SEQUENCE);
    size_t track = ew_proto_begin(out, EW_PF_TRACK_DESCRIPTOR);
    ew_proto_u64(out, EW_PF_TRACK_UUID, uuid);
    if (parent != 0)
        ew_proto_u64(out, EW_PF_TRACK_PARENT, parent);
    ew_proto_text(out, EW_PF_TRACK_NAME, name);
    if (counter)
        ew_proto_end(out, ew_proto_begin(out, EW_PF_TRACK_COUNTER));
    ew_proto_end(out, track);
    ew_pf_packet_end(sink, packet);
}

static void put_counter(struct ew_pf_sink *sink, uint64_t track, uint64_t t_ns, double value)
{
    struct ew_buf *out = &sink->packets;
    size_t packet = ew_pf_packet(sink, t_ns);
    size_t inner = ew_proto_begin(out, EW_PF_TRACK_EVENT);
    ew_proto_u64(out, EW_PF_EVENT_TYPE, EW_PF_TYPE_COUNTER);
    ew_proto_u64(out, EW_PF_EVENT_TRACK, track);
    ew_proto_double(out, EW_PF_EVENT_DOUBLE, value);
    ew_proto_end(out, inner);
    ew_pf_packet_end(sink, packet);
}

static void put_problem(struct ew_pf_sink *sink, const struct ew_pf_device *row,
                        const struct etwatch_device *device)
{
    struct ew_buf *out = &sink->packets;
    size_t packet = ew_pf_packet(sink, device->t_ns);
    size_t inner = ew_proto_begin(out, EW_PF_TRACK_EVENT);
    ew_proto_u64(out, EW_PF_EVENT_TYPE, EW_PF_TYPE_INSTANT);
    ew_proto_u64(out, EW_PF_EVENT_TRACK, row->uuid);
    ew_proto_text(out, EW_PF_EVENT_NAME, device->problem);
    ew_proto_end(out, inner);
    ew_pf_packet_end(sink, packet);
}

static void put_metric(struct ew_pf_sink *sink, struct ew_pf_device *row,
                       const struct etwatch_device *device, uint32_t metric)
{
    const struct ew_sink_device_column *column = &ew_sink_device_columns[metric];
    bool counts = strcmp(column->kind, "counter") == 0;
    uint64_t track = row->uuid + 1 + metric;
    char name[96];
    if (counts && device->dt_ns == 0)
        return;
    if ((row->described >> metric & 1) == 0) {
        (void)snprintf(name, sizeof name, "%s%s", column->name, counts ? "/s" : "");
        put_track(sink, track, row->uuid, name, true);
        row->described |= 1u << metric;
    }
    double value = ew_sink_device_number(device, metric);
    /* A counter value applies from its time on, but a count describes the time before it. */
    if (counts)
        put_counter(sink, track, device->t_ns - device->dt_ns, value * 1e9 / (double)device->dt_ns);
    else
        put_counter(sink, track, device->t_ns, value);
}

void ew_pf_device(struct etwatch_sink *base, const struct etwatch_device *device)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    ew_pf_begin(sink);
    struct ew_pf_device *row = find(sink, device);
    if (row == NULL)
        return;
    if (!row->named)
        put_track(sink, row->uuid, 0, row->key, false);
    row->named = true;
    if ((device->flags & ETWATCH_DEVICE_PROBLEM) != 0 && device->problem != NULL)
        put_problem(sink, row, device);
    for (uint32_t i = 0; i < ETWATCH_DEVICE_METRIC_COUNT; i++)
        if (etwatch_device_has(device, i))
            put_metric(sink, row, device, i);
}
