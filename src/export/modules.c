/* SPDX-License-Identifier: MIT */
/*
 * Owns a list of images, sorted by process and address after learning: a recording describes many
 * images only at its end. The kernel and its drivers are images of process 0.
 */
#include "export/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "recording/trace.h"

enum { MODULES_MAX = 1 << 20, TEXT_MAX = 64 << 20, NAME_MAX_BYTES = 260, NEAR = 64 };

void ew_modules_init(struct ew_modules *modules)
{
    memset(modules, 0, sizeof *modules);
}

void ew_modules_done(struct ew_modules *modules)
{
    ew_free(modules->list);
    ew_free(modules->text);
    memset(modules, 0, sizeof *modules);
}

static bool keep_name(struct ew_modules *modules, const struct ew_event_text *path,
                      uint32_t *ret_name)
{
    char name[NAME_MAX_BYTES];
    size_t len = ew_recording_event_text_copy(path, name, sizeof name);
    /* Processes load the same libraries one after another: often the name equals the previous
     * one. */
    if (modules->count > 0) {
        uint32_t last = modules->list[modules->count - 1].name;
        if (strcmp(modules->text + last, name) == 0) {
            *ret_name = last;
            return true;
        }
    }
    if (modules->text_len + len + 1 > modules->text_size) {
        uint32_t size = modules->text_size == 0 ? 4096 : modules->text_size * 2;
        char *text = size > TEXT_MAX ? NULL : ew_realloc_array(modules->text, size, 1);
        if (text == NULL)
            return false;
        modules->text = text;
        modules->text_size = size;
    }
    memcpy(modules->text + modules->text_len, name, len + 1);
    *ret_name = modules->text_len;
    modules->text_len += (uint32_t)len + 1;
    return true;
}

static void add(struct ew_modules *modules, const struct ew_event *event, uint64_t from_ns,
                uint64_t to_ns)
{
    uint32_t name;
    if (modules->count == modules->size) {
        uint32_t size = modules->size == 0 ? 256 : modules->size * 2;
        struct ew_module *list =
            size > MODULES_MAX ? NULL : ew_realloc_array(modules->list, size, sizeof *list);
        if (list == NULL) {
            modules->refused++;
            return;
        }
        modules->list = list;
        modules->size = size;
    }
    if (!keep_name(modules, &event->u.image.path, &name)) {
        modules->refused++;
        return;
    }
    modules->list[modules->count++] = (struct ew_module){
        .base = event->u.image.base,
        .end = event->u.image.base + event->u.image.bytes,
        .from_ns = from_ns,
        .to_ns = to_ns,
        .pid = event->pid,
        .name = name,
    };
}

/* Every event about an image adds it, so most are in the list several times. At a given address
 * and time the last one before that time applies: an unload need not find its load. */
void ew_modules_learn(struct ew_modules *modules, const struct ew_event *event)
{
    bool there = event->kind == EW_EVENT_IMAGE_THERE || event->kind == EW_EVENT_IMAGE_UNLOAD;
    bool over = event->kind == EW_EVENT_IMAGE_UNLOAD;
    add(modules, event, there ? 0 : event->t_ns, over ? event->t_ns : UINT64_MAX);
}

static int by_address(const void *a, const void *b)
{
    const struct ew_module *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->base != y->base)
        return x->base < y->base ? -1 : 1;
    return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

void ew_modules_sort(struct ew_modules *modules)
{
    if (modules->count > 0)
        qsort(modules->list, modules->count, sizeof *modules->list, by_address);
    modules->sorted = true;
}

/* The module that contains the address: of several at the same address the one loaded at that
 * time, else the nearest in time. */
static const struct ew_module *find(const struct ew_modules *modules, uint32_t pid,
                                    uint64_t address, uint64_t t_ns)
{
    uint32_t low = 0, high = modules->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct ew_module *module = &modules->list[middle];
        bool before = module->pid < pid || (module->pid == pid && module->base <= address);
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    const struct ew_module *near = NULL;
    for (uint32_t i = low, looked = 0; i > 0 && looked < NEAR; i--, looked++) {
        const struct ew_module *module = &modules->list[i - 1];
        if (module->pid != pid)
            break;
        if (address < module->base || address >= module->end)
            continue;
        if (module->from_ns <= t_ns && t_ns < module->to_ns)
            return module;
        near = near == NULL ? module : near;
    }
    return near;
}

void ew_modules_name(const struct ew_modules *modules, uint32_t pid, uint64_t address,
                     uint64_t t_ns, char *buffer, size_t size)
{
    const struct ew_module *module = find(modules, pid, address, t_ns);
    if (module == NULL)
        module = find(modules, 0, address, t_ns);
    if (module == NULL)
        (void)snprintf(buffer, size, "0x%llx", (unsigned long long)address);
    else
        (void)snprintf(buffer, size, "%s!0x%llx", modules->text + module->name,
                       (unsigned long long)(address - module->base));
}
