/* SPDX-License-Identifier: MIT */
/*
 * Assembles manifests from their chunks: event 65534 with an envelope of eight bytes (format 1,
 * major, minor, magic 0x5B, total number of chunks, number of this one) and a piece of XML. Chunks
 * of one provider in one process come in order; those of different ones may be interleaved.
 *
 * Every process that uses a provider writes the same manifest again, and a recording is often read
 * twice: known texts are recognized by their hash.
 */
#include "decode/internal.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "decode/decode.h"
#include "decode/manifest.h"

enum { CHUNK_EVENT = 0xFFFE, ENVELOPE_BYTES = 8, MAGIC = 0x5B };

void ew_eventsource_done(struct ew_eventsource *source)
{
    for (unsigned i = 0; i < EW_EVENTSOURCE_OPEN_MAX; i++)
        ew_free(source->open[i].text);
    memset(source, 0, sizeof *source);
}

bool ew_eventsource_is_chunk(const struct ew_record *record)
{
    return record->kind == EW_RECORD_MANIFEST && record->id == CHUNK_EVENT &&
           record->payload_size >= ENVELOPE_BYTES && record->payload[0] == 1 &&
           record->payload[3] == MAGIC;
}

const struct ew_schema *ew_eventsource_chunk_schema(void)
{
#define FIELD(text, type)                                     \
    {                                                         \
        .name = text, .name_len = sizeof text - 1, .in = type \
    }
    static const struct ew_schema_field fields[] = {
        FIELD("Format", EW_IN_UINT8),       FIELD("MajorVersion", EW_IN_UINT8),
        FIELD("MinorVersion", EW_IN_UINT8), FIELD("Magic", EW_IN_UINT8),
        FIELD("TotalChunks", EW_IN_UINT16), FIELD("ChunkNumber", EW_IN_UINT16),
    };
#undef FIELD
    static const struct ew_schema schema = {.event = "ManifestData",
                                            .fields = fields,
                                            .field_count = sizeof fields / sizeof fields[0],
                                            .top_count = sizeof fields / sizeof fields[0],
                                            .origin = EW_SCHEMA_EVENTSOURCE};
    return &schema;
}

static struct ew_eventsource_open *find(struct ew_eventsource *source,
                                        const struct ew_record *record)
{
    for (unsigned i = 0; i < EW_EVENTSOURCE_OPEN_MAX; i++) {
        struct ew_eventsource_open *open = &source->open[i];
        if (open->total && open->pid == record->pid &&
            memcmp(open->guid, record->provider, 16) == 0)
            return open;
    }
    return NULL;
}

static void drop(struct ew_eventsource_open *open)
{
    open->total = 0;
    open->len = 0;
}

/* A free slot, or that of the least recently used manifest. */
static struct ew_eventsource_open *begin(struct ew_eventsource *source,
                                         const struct ew_record *record, unsigned total)
{
    struct ew_eventsource_open *oldest = &source->open[0];
    for (unsigned i = 0; i < EW_EVENTSOURCE_OPEN_MAX; i++) {
        struct ew_eventsource_open *open = &source->open[i];
        if (!open->total) {
            oldest = open;
            break;
        }
        if (open->used_at < oldest->used_at)
            oldest = open;
    }
    if (oldest->total)
        source->refused++;
    drop(oldest);
    memcpy(oldest->guid, record->provider, 16);
    oldest->pid = record->pid;
    oldest->total = (uint16_t)total;
    oldest->next = 0;
    return oldest;
}

static int append(struct ew_eventsource *source, struct ew_eventsource_open *open,
                  const uint8_t *text, size_t len)
{
    if (len > EW_EVENTSOURCE_MANIFEST_MAX - open->len) {
        source->refused++;
        drop(open);
        return ETWATCH_EFORMAT;
    }
    if (open->len + len > open->size) {
        size_t size = open->size ? open->size : 16384;
        while (size < open->len + len)
            size *= 2;
        char *grown = ew_realloc_array(open->text, size, 1);
        if (!grown) {
            drop(open);
            return ETWATCH_ENOMEM;
        }
        open->text = grown;
        open->size = size;
    }
    if (len)
        memcpy(open->text + open->len, text, len);
    open->len += len;
    open->next++;
    open->used_at = ++source->clock;
    return 0;
}

static uint64_t hash(const uint8_t guid[16], const char *text, size_t len)
{
    uint64_t sum = 14695981039346656037u;
    for (unsigned i = 0; i < 16; i++)
        sum = (sum ^ guid[i]) * 1099511628211u;
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ (uint8_t)text[i]) * 1099511628211u;
    return sum;
}

/* Whether this text was read before; remembers it otherwise. */
static bool is_known(struct ew_eventsource *source, const struct ew_eventsource_open *open)
{
    uint64_t sum = hash(open->guid, open->text, open->len);
    for (uint32_t i = 0; i < source->known_count; i++)
        if (source->known[i] == sum)
            return true;
    if (source->known_count < EW_EVENTSOURCE_KNOWN_MAX)
        source->known[source->known_count++] = sum;
    return false;
}

static int complete(struct ew_eventsource *source, struct ew_store *store,
                    struct ew_eventsource_open *open)
{
    int learned = 0;
    if (open->len && !is_known(source, open)) {
        learned = ew_manifest_learn(store, open->text, open->len, EW_SCHEMA_EVENTSOURCE);
        if (learned < 0 && learned != ETWATCH_ENOMEM)
            source->refused++;
    }
    drop(open);
    return learned > 0 ? 1 : learned == ETWATCH_ENOMEM ? learned : 0;
}

int ew_eventsource_learn(struct ew_eventsource *source, struct ew_store *store,
                         const struct ew_record *record)
{
    struct ew_bytes in;
    ew_bytes_init(&in, record->payload, record->payload_size);
    ew_bytes_skip(&in, 4);
    unsigned total = ew_bytes_u16(&in), number = ew_bytes_u16(&in);
    size_t len = ew_bytes_left(&in);
    const uint8_t *text = ew_bytes_take(&in, len);
    if (!text || number >= total)
        return 0;
    struct ew_eventsource_open *open = find(source, record);
    if (number == 0) {
        if (open)
            drop(open);
        open = begin(source, record, total);
    } else if (!open || open->total != total || open->next != number) {
        source->refused++;
        if (open)
            drop(open);
        return 0;
    }
    int r = append(source, open, text, len);
    if (r < 0)
        return r == ETWATCH_ENOMEM ? r : 0;
    return open->next == open->total ? complete(source, store, open) : 0;
}
