/* SPDX-License-Identifier: MIT */
/*
 * Owns the tree of stacks, the names of frames and the list of samples; each has a maximum, and
 * samples beyond it are counted. The first two levels of the tree are the process and the thread.
 */
#include "sink/flame.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { TEXT_MAX = 256 << 20, FIRST = 256, DEPTH_MAX = 1024 };

void ew_flame_init(struct ew_flame *flame)
{
    memset(flame, 0, sizeof *flame);
    flame->timed = true;
}

void ew_flame_done(struct ew_flame *flame)
{
    ew_free(flame->frames.text);
    ew_free(flame->frames.offsets);
    ew_free(flame->frames.index);
    ew_free(flame->nodes);
    ew_free(flame->index);
    ew_free(flame->samples);
    memset(flame, 0, sizeof *flame);
}

/* Room for one more of `count` items. */
static bool grow(void **list, uint32_t count, uint32_t *size, size_t item, uint32_t max)
{
    if (count < *size)
        return true;
    uint32_t wanted = *size == 0 ? FIRST : *size * 2;
    void *larger = count >= max ? NULL : ew_realloc_array(*list, wanted, item);
    if (larger == NULL)
        return false;
    *list = larger;
    *size = wanted;
    return true;
}

/* -------------------------------------------------------------------- names */

static uint32_t hash_text(const char *text, size_t len)
{
    uint64_t sum = ew_hash_seed();
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(sum ^ sum >> 32);
}

static const char *name_at(const struct ew_flame_names *names, uint32_t i, size_t *ret_len)
{
    *ret_len = names->offsets[i + 1] - names->offsets[i];
    return names->text + names->offsets[i];
}

static uint32_t name_slot(const struct ew_flame_names *names, const char *text, size_t len)
{
    uint32_t at = hash_text(text, len) & names->index_mask;
    while (names->index[at] != 0) {
        size_t known_len;
        const char *known = name_at(names, names->index[at] - 1, &known_len);
        if (known_len == len && memcmp(known, text, len) == 0)
            break;
        at = (at + 1) & names->index_mask;
    }
    return at;
}

static bool grow_names(struct ew_flame_names *names, size_t len)
{
    uint32_t used = names->count == 0 ? 0 : names->offsets[names->count];
    if (used + len > names->text_size) {
        size_t size = names->text_size == 0 ? 4096 : (size_t)names->text_size * 2;
        while (size < used + len)
            size *= 2;
        char *text = size > TEXT_MAX ? NULL : ew_realloc_array(names->text, size, 1);
        if (text == NULL)
            return false;
        names->text = text;
        names->text_size = (uint32_t)size;
    }
    void *offsets = names->offsets;
    bool fits = grow(&offsets, names->count + 1, &names->size, sizeof *names->offsets,
                     EW_FLAME_NODES_MAX + 1);
    names->offsets = offsets;
    if (!fits)
        return false;
    if (names->index != NULL && (names->count + 1) * 2 <= names->index_mask)
        return true;
    uint32_t size = names->index == NULL ? 2 * FIRST : (names->index_mask + 1) * 2;
    uint32_t *index = ew_calloc(size, sizeof *index);
    if (index == NULL)
        return false;
    ew_free(names->index);
    names->index = index;
    names->index_mask = size - 1;
    for (uint32_t i = 0; i < names->count; i++) {
        size_t known_len;
        const char *known = name_at(names, i, &known_len);
        index[name_slot(names, known, known_len)] = i + 1;
    }
    return true;
}

static uint32_t intern_name(struct ew_flame_names *names, const char *text)
{
    size_t len = strlen(text);
    if (!grow_names(names, len))
        return UINT32_MAX;
    uint32_t slot = name_slot(names, text, len);
    if (names->index[slot] != 0)
        return names->index[slot] - 1;
    if (names->count == 0)
        names->offsets[0] = 0;
    uint32_t from = names->offsets[names->count];
    memcpy(names->text + from, text, len);
    names->offsets[names->count + 1] = from + (uint32_t)len;
    names->index[slot] = ++names->count;
    return names->count - 1;
}

/* --------------------------------------------------------------------- tree */

static uint32_t node_slot(const struct ew_flame *flame, uint32_t parent, uint64_t key)
{
    uint64_t mixed = ew_hash_mix(ew_hash_mix(ew_hash_seed(), key), parent);
    uint32_t at = (uint32_t)(mixed >> 16) & flame->index_mask;
    while (flame->index[at] != 0) {
        const struct ew_flame_node *node = &flame->nodes[flame->index[at] - 1];
        if (node->parent == parent && node->key == key)
            break;
        at = (at + 1) & flame->index_mask;
    }
    return at;
}

uint32_t ew_flame_find(const struct ew_flame *flame, uint32_t parent, uint64_t key)
{
    return flame->index == NULL ? UINT32_MAX : flame->index[node_slot(flame, parent, key)] - 1;
}

static bool grow_index(struct ew_flame *flame)
{
    if (flame->index != NULL && (flame->node_count + 1) * 2 <= flame->index_mask)
        return true;
    uint32_t size = flame->index == NULL ? 4 * FIRST : (flame->index_mask + 1) * 2;
    uint32_t *index = ew_calloc(size, sizeof *index);
    if (index == NULL)
        return false;
    ew_free(flame->index);
    flame->index = index;
    flame->index_mask = size - 1;
    for (uint32_t i = 0; i < flame->node_count; i++)
        index[node_slot(flame, flame->nodes[i].parent, flame->nodes[i].key)] = i + 1;
    return true;
}

uint32_t ew_flame_add(struct ew_flame *flame, uint32_t parent, uint64_t key, const char *frame)
{
    void *nodes = flame->nodes;
    bool fits = grow(&nodes, flame->node_count, &flame->node_size, sizeof *flame->nodes,
                     EW_FLAME_NODES_MAX);
    flame->nodes = nodes;
    if (!fits || !grow_index(flame))
        return UINT32_MAX;
    uint32_t frame_name = intern_name(&flame->frames, frame);
    if (frame_name == UINT32_MAX)
        return UINT32_MAX;
    uint32_t slot = node_slot(flame, parent, key);
    flame->nodes[flame->node_count] =
        (struct ew_flame_node){.key = key, .parent = parent, .frame = frame_name};
    flame->index[slot] = ++flame->node_count;
    return flame->node_count - 1;
}

void ew_flame_sample(struct ew_flame *flame, uint32_t thread, uint32_t node, uint32_t weight_100ns)
{
    void *samples = flame->samples;
    bool fits = grow(&samples, flame->sample_count, &flame->sample_size, sizeof *flame->samples,
                     EW_FLAME_SAMPLES_MAX);
    flame->samples = samples;
    if (!fits || node == UINT32_MAX || thread == UINT32_MAX) {
        flame->refused++;
        return;
    }
    flame->nodes[node].count++;
    flame->timed = flame->timed && weight_100ns != 0;
    flame->samples[flame->sample_count++] =
        (struct ew_flame_sample){.thread = thread, .node = node, .weight_100ns = weight_100ns};
}

/* ------------------------------------------------------------------- folded */

/* From the root to the node; beyond the maximum depth the frames nearest to the root are dropped.
 */
static size_t path_of(const struct ew_flame *flame, uint32_t node, uint32_t until,
                      uint32_t path[DEPTH_MAX])
{
    size_t count = 0;
    for (uint32_t at = node; at != until && at != EW_FLAME_ROOT && count < DEPTH_MAX;
         at = flame->nodes[at].parent)
        path[count++] = at;
    for (size_t i = 0; i < count / 2; i++) {
        uint32_t swap = path[i];
        path[i] = path[count - 1 - i];
        path[count - 1 - i] = swap;
    }
    return count;
}

/* ';' separates frames and newlines separate stacks: neither may be in a name. */
static void put_plain(struct ew_buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        ew_buf_char(out, c == ';' ? ':' : c < 0x20 || c == 0x7F ? '?' : (char)c);
    }
}

void ew_flame_put_folded(const struct ew_flame *flame, struct ew_buf *out)
{
    uint32_t path[DEPTH_MAX];
    for (uint32_t i = 0; i < flame->node_count && out->error == 0; i++) {
        if (flame->nodes[i].count == 0)
            continue;
        size_t depth = path_of(flame, i, EW_FLAME_ROOT, path);
        for (size_t j = 0; j < depth; j++) {
            size_t len;
            const char *text = name_at(&flame->frames, flame->nodes[path[j]].frame, &len);
            if (j > 0)
                ew_buf_char(out, ';');
            put_plain(out, text, len);
        }
        ew_buf_char(out, ' ');
        ew_buf_u64(out, flame->nodes[i].count);
        ew_buf_char(out, '\n');
        ew_buf_end_line(out);
    }
}

/* --------------------------------------------------------------- speedscope */

static void put_frames(const struct ew_flame *flame, struct ew_buf *out)
{
    ew_buf_text(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
                     "\"shared\":{\"frames\":[\n");
    for (uint32_t i = 0; i < flame->frames.count; i++) {
        size_t len;
        const char *text = name_at(&flame->frames, i, &len);
        ew_buf_text(out, i == 0 ? "{\"name\":" : ",\n{\"name\":");
        ew_buf_json_string(out, text, len);
        ew_buf_char(out, '}');
        ew_buf_end_line(out);
    }
    ew_buf_text(out, "\n]},\n\"profiles\":[");
}

static void put_stack(const struct ew_flame *flame, struct ew_buf *out, uint32_t node,
                      uint32_t thread)
{
    uint32_t path[DEPTH_MAX];
    size_t depth = path_of(flame, node, thread, path);
    ew_buf_char(out, '[');
    for (size_t i = 0; i < depth; i++) {
        if (i > 0)
            ew_buf_char(out, ',');
        ew_buf_u64(out, flame->nodes[path[i]].frame);
    }
    ew_buf_char(out, ']');
}

static uint64_t weight_of(const struct ew_flame *flame, const struct ew_flame_sample *sample)
{
    return flame->timed ? (uint64_t)sample->weight_100ns * 100 : 1;
}

/* "python.exe (1234) thread 5678" */
static void put_thread_name(const struct ew_flame *flame, struct ew_buf *out, uint32_t thread)
{
    struct ew_buf text;
    size_t len;
    const struct ew_flame_node *node = &flame->nodes[thread];
    ew_buf_init(&text, 0, NULL, NULL);
    if (node->parent != EW_FLAME_ROOT) {
        const char *process = name_at(&flame->frames, flame->nodes[node->parent].frame, &len);
        ew_buf_bytes(&text, process, len);
        ew_buf_char(&text, ' ');
    }
    const char *own = name_at(&flame->frames, node->frame, &len);
    ew_buf_bytes(&text, own, len);
    if (text.error == 0)
        ew_buf_json_string(out, text.data, text.len);
    else
        out->error = text.error;
    ew_buf_done(&text);
}

/* order: the samples, grouped by thread. */
static void put_profile(const struct ew_flame *flame, struct ew_buf *out, const uint32_t *order,
                        uint32_t from, uint32_t to)
{
    const struct ew_flame_sample *samples = flame->samples;
    uint32_t thread = samples[order[from]].thread;
    uint64_t sum = 0;
    for (uint32_t i = from; i < to; i++)
        sum += weight_of(flame, &samples[order[i]]);
    ew_buf_text(out, from == 0 ? "\n{\"type\":\"sampled\",\"name\":"
                               : ",\n{\"type\":\"sampled\",\"name\":");
    put_thread_name(flame, out, thread);
    ew_buf_text(out, flame->timed ? ",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":"
                                  : ",\"unit\":\"none\",\"startValue\":0,\"endValue\":");
    ew_buf_u64(out, sum);
    ew_buf_text(out, ",\n\"samples\":[");
    for (uint32_t i = from; i < to && out->error == 0; i++) {
        if (i > from)
            ew_buf_char(out, ',');
        put_stack(flame, out, samples[order[i]].node, thread);
        ew_buf_end_line(out);
    }
    ew_buf_text(out, "],\n\"weights\":[");
    for (uint32_t i = from; i < to && out->error == 0; i++) {
        if (i > from)
            ew_buf_char(out, ',');
        ew_buf_u64(out, weight_of(flame, &samples[order[i]]));
        ew_buf_end_line(out);
    }
    ew_buf_text(out, "]}");
}

/* Sorts the samples by thread, in time order within each (counting sort). */
static uint32_t *sort_samples(const struct ew_flame *flame)
{
    uint32_t *next = ew_calloc((size_t)flame->node_count + 1, sizeof *next);
    uint32_t *order = ew_calloc((size_t)flame->sample_count + 1, sizeof *order);
    if (next == NULL || order == NULL) {
        ew_free(next);
        ew_free(order);
        return NULL;
    }
    for (uint32_t i = 0; i < flame->sample_count; i++)
        next[flame->samples[i].thread + 1]++;
    for (uint32_t i = 1; i <= flame->node_count; i++)
        next[i] += next[i - 1];
    for (uint32_t i = 0; i < flame->sample_count; i++)
        order[next[flame->samples[i].thread]++] = i;
    ew_free(next);
    return order;
}

void ew_flame_put_speedscope(const struct ew_flame *flame, struct ew_buf *out, const char *name)
{
    uint32_t *order = sort_samples(flame);
    if (order == NULL) {
        out->error = ETWATCH_ENOMEM;
        return;
    }
    put_frames(flame, out);
    for (uint32_t from = 0, to; from < flame->sample_count; from = to) {
        to = from + 1;
        while (to < flame->sample_count &&
               flame->samples[order[to]].thread == flame->samples[order[from]].thread)
            to++;
        put_profile(flame, out, order, from, to);
    }
    ew_buf_text(out, "],\n\"name\":");
    ew_buf_json_string(out, name, strlen(name));
    ew_buf_text(out, ",\n\"activeProfileIndex\":0,\"exporter\":\"etwatch ");
    ew_buf_text(out, etwatch_version());
    ew_buf_text(out, "\"}\n");
    ew_buf_end_line(out);
    ew_free(order);
}
