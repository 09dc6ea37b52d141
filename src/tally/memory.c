/* SPDX-License-Identifier: MIT */
/*
 * Gauges of processes and the images they have loaded. Windows reports memory twice a second for
 * all processes, or once at the end of each; a gauge is emitted with the interval it was read in.
 */
#include <string.h>

#include "base/alloc.h"
#include "tally/internal.h"

static void set(struct ew_tally *tally, struct ew_tally_process *process, enum ew_gauge gauge,
                uint64_t value)
{
    process->gauge[gauge] = value;
    process->gauge_has |= 1u << gauge;
    process->gauge_new |= 1u << gauge;
    ew_facts_list_process(tally, process);
}

void ew_memory_gauges(struct ew_tally *tally, struct ew_tally_process *process, uint32_t has,
                      const uint64_t gauge[EW_GAUGE_COUNT])
{
    for (uint32_t i = 0; i < EW_GAUGE_COUNT; i++)
        if ((has >> i & 1) != 0)
            set(tally, process, (enum ew_gauge)i, gauge[i]);
}

/* The event at exit may come after the kernel has cleared the counters: then none is known. A
 * process that ran had at least one fault. */
static bool are_cleared(const struct ew_event *event)
{
    return (event->u.counters.fault_count | event->u.counters.handle_count |
            event->u.counters.peak_virtual_bytes | event->u.counters.peak_working_set_bytes |
            event->u.counters.virtual_bytes | event->u.counters.working_set_bytes |
            event->u.counters.pagefile_bytes | event->u.counters.pool_paged_bytes |
            event->u.counters.pool_nonpaged_bytes | event->u.counters.private_bytes) == 0;
}

void ew_memory_counters(struct ew_tally *tally, const struct ew_event *event)
{
    if (are_cleared(event))
        return;
    if (event->pid == 0 || event->pid == EW_NO_ID)
        return;
    struct ew_tally_process *process = ew_processes_find(tally, event->pid);
    if (process == NULL)
        process = ew_processes_get(tally, event->pid, event->t_ns);
    if (process == NULL)
        return;
    set(tally, process, EW_G_rss_bytes, event->u.counters.working_set_bytes);
    set(tally, process, EW_G_rss_peak_bytes, event->u.counters.peak_working_set_bytes);
    set(tally, process, EW_G_private_bytes, event->u.counters.private_bytes);
    set(tally, process, EW_G_virtual_bytes, event->u.counters.virtual_bytes);
    set(tally, process, EW_G_pool_paged_bytes, event->u.counters.pool_paged_bytes);
    set(tally, process, EW_G_pool_nonpaged_bytes, event->u.counters.pool_nonpaged_bytes);
    set(tally, process, EW_G_handles, event->u.counters.handle_count);
    process->fault_count = event->u.counters.fault_count;
    process->flags |= EW_TP_HAS_FAULTS;
}

void ew_memory_working_sets(struct ew_tally *tally, const struct ew_record *record,
                            const struct ew_event *event)
{
    struct ew_working_set entry;
    if (tally->config.working_set == NULL)
        return;
    for (uint32_t i = 0; tally->config.working_set(record, i, &entry); i++) {
        if (entry.pid == 0 || entry.pid == EW_NO_ID)
            continue;
        struct ew_tally_process *process = ew_processes_get(tally, entry.pid, event->t_ns);
        if (process == NULL)
            continue;
        set(tally, process, EW_G_rss_bytes, entry.working_set_bytes);
        set(tally, process, EW_G_rss_private_bytes, entry.private_working_set_bytes);
        set(tally, process, EW_G_private_bytes, entry.commit_bytes);
        set(tally, process, EW_G_virtual_bytes, entry.virtual_bytes);
    }
}

/* ---------------------------------------------------------------------- images */

enum { IMAGES_MAX = 131072, IMAGES_CHUNK = 1024 };

struct image {
    uint64_t base, bytes, load_ns, unload_ns;
    const char *path;
    uint32_t serial, pid;
    uint32_t before; /* index + 1 of the previous image with the same hash */
};

enum { IMAGE_HEADS = 16384 };

struct ew_tally_images {
    struct image *chunk[IMAGES_MAX / IMAGES_CHUNK];
    uint32_t count;
    uint32_t head[IMAGE_HEADS]; /* index + 1 of the newest image with this hash */
};

static struct image *image_at(const struct ew_tally_images *images, uint32_t i)
{
    return &images->chunk[i / IMAGES_CHUNK][i % IMAGES_CHUNK];
}

static uint32_t *head_of(struct ew_tally_images *images, uint32_t serial, uint64_t base)
{
    uint32_t mix = (uint32_t)(base >> 12) ^ (uint32_t)(base >> 40) ^ serial * 40503u;
    return &images->head[ew_tally_hash(mix) % IMAGE_HEADS];
}

/* The image now loaded at base. The search is bounded, in case of a crafted recording. */
static struct image *find_image(struct ew_tally_images *images, uint32_t serial, uint64_t base)
{
    uint32_t next = *head_of(images, serial, base);
    for (int steps = 0; next != 0 && steps < 64; steps++) {
        struct image *image = image_at(images, next - 1);
        if (image->serial == serial && image->base == base && image->unload_ns == 0)
            return image;
        next = image->before;
    }
    return NULL;
}

static struct image *add_image(struct ew_tally *tally, uint32_t serial, uint32_t pid, uint64_t base)
{
    struct ew_tally_images *images = tally->images;
    uint32_t chunk = images->count / IMAGES_CHUNK;
    if (images->count < IMAGES_MAX && images->chunk[chunk] == NULL)
        images->chunk[chunk] = ew_calloc(IMAGES_CHUNK, sizeof(struct image));
    if (images->count >= IMAGES_MAX) {
        tally->refused++;
        return NULL;
    }
    if (images->chunk[chunk] == NULL) {
        ew_tally_short_of_memory(tally);
        return NULL;
    }
    struct image *image = image_at(images, images->count++);
    uint32_t *head = head_of(images, serial, base);
    *image =
        (struct image){.base = base, .path = "", .serial = serial, .pid = pid, .before = *head};
    *head = images->count;
    return image;
}

static void keep_image(struct ew_tally *tally, uint32_t serial, const struct ew_event *event)
{
    if (tally->images == NULL)
        tally->images = ew_calloc(1, sizeof *tally->images);
    if (tally->images == NULL) {
        ew_tally_short_of_memory(tally);
        return;
    }
    struct image *image = find_image(tally->images, serial, event->u.image.base);
    if (image != NULL && event->kind == EW_EVENT_IMAGE_LOAD &&
        event->t_ns - image->load_ns > 1000000000u)
        image = NULL; /* its unload event is missing */
    if (image == NULL) {
        image = add_image(tally, serial, event->pid, event->u.image.base);
        if (image == NULL)
            return;
        image->bytes = event->u.image.bytes;
        image->load_ns = event->kind == EW_EVENT_IMAGE_LOAD ? event->t_ns : 0;
    }
    if (event->u.image.path.len > 0 && image->path[0] == '\0')
        image->path = ew_processes_text(tally, &event->u.image.path, false);
    if (event->kind == EW_EVENT_IMAGE_UNLOAD)
        image->unload_ns = event->t_ns;
}

void ew_memory_image(struct ew_tally *tally, const struct ew_event *event)
{
    if (event->pid == EW_NO_ID)
        return;
    uint32_t serial = 0; /* the kernel's own images have pid 0 */
    if (event->pid != 0) {
        struct ew_tally_process *process = ew_processes_find(tally, event->pid);
        if (process == NULL)
            process = ew_processes_get(tally, event->pid, event->t_ns);
        if (process == NULL) {
            tally->unattributed++;
            return;
        }
        if (event->kind == EW_EVENT_IMAGE_LOAD || event->kind == EW_EVENT_IMAGE_THERE)
            process->image_count++;
        else if (event->kind == EW_EVENT_IMAGE_STILL)
            process->images_still++;
        serial = process->serial;
    }
    if (tally->config.images)
        keep_image(tally, serial, event);
}

int ew_tally_images(const struct ew_tally *tally,
                    int (*on_image)(void *ctx, const struct ew_tally_image *image), void *ctx)
{
    int r = 0;
    for (uint32_t i = 0; tally->images != NULL && i < tally->images->count && r == 0; i++) {
        const struct image *image = image_at(tally->images, i);
        struct ew_tally_image out = {.pid = image->pid,
                                     .base = image->base,
                                     .bytes = image->bytes,
                                     .load_ns = image->load_ns,
                                     .unload_ns = image->unload_ns,
                                     .path = image->path};
        r = on_image(ctx, &out);
    }
    return r;
}

void ew_memory_images_free(struct ew_tally_images *images)
{
    for (uint32_t i = 0; images != NULL && i < IMAGES_MAX / IMAGES_CHUNK; i++)
        ew_free(images->chunk[i]);
    ew_free(images);
}
