/* SPDX-License-Identifier: MIT */
/*
 * Scans the buffers of a file by their headers alone: 72 bytes each, and enough of what follows to
 * know the time of the first event. This lets the merge open every CPU's buffers in their own
 * order, however far apart they are, while keeping only a small index.
 *
 * The scan always advances by at least one header, so no size can make it loop. It ends at the end
 * of the file and not at the buffer count of the log-file header, which is stale in files that were
 * never closed.
 */
#include <stdio.h>
#include <string.h>

#include "source/etl/file.h"
#include "source/etl/walk.h"
#include "source/etl/xpress.h"

enum {
    FIRST_EVENT_ROOM = 64, /* enough for the time of every kind of event */
    PEEK_SIZE =
        512, /* the header, and input that yields FIRST_EVENT_ROOM bytes with any compression */
    ALIGNMENT_MIN = 1024, /* buffer sizes are whole KB */
    BUFFER_OF_HEADER = 4, /* type of the buffer with the log-file header */
};

void ew_etl_scan_init(struct ew_etl_scan *scan, const struct ew_etl_file *file)
{
    scan->file = file;
    scan->offset = 0;
    scan->expanded_bytes = 0;
    scan->last_ns = 0;
    scan->chunk_offset = 0;
    scan->chunk_size = 0;
    scan->buffers = scan->zero_offset = scan->zero_bytes = 0;
    scan->valid = scan->highest = 0;
    scan->places = NULL;
    scan->ends_early = false;
}

/* Up to `want` bytes at the current position; *ret_size is smaller only at the end of the file. */
static int peek(struct ew_etl_scan *scan, size_t want, const uint8_t **ret_bytes, size_t *ret_size)
{
    uint64_t skip = scan->offset - scan->chunk_offset;
    if (skip > scan->chunk_size || scan->chunk_size - skip < want) {
        int64_t got = ew_etl_file_read(scan->file, scan->offset, scan->chunk, sizeof scan->chunk);
        if (got < 0)
            return (int)got;
        scan->chunk_offset = scan->offset;
        scan->chunk_size = (size_t)got;
        skip = 0;
    }
    *ret_bytes = scan->chunk + skip;
    *ret_size = scan->chunk_size - (size_t)skip;
    return 0;
}

static bool all_zero(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

/* Whether bytes are a valid header of a buffer in a compressed file. */
static bool looks_compressed(const uint8_t *bytes, uint64_t left)
{
    enum { STATE_AT = 0x2C, FLAGS_AT = 0x34, KNOWN_FLAGS = 0x7F, FORMAT_XPRESS = 3, LAST_TYPE = 7 };
    uint32_t format = ew_load_u32(bytes + STATE_AT);
    if (format != FORMAT_XPRESS && format != FORMAT_XPRESS + 1)
        return false;
    struct ew_etl_buffer buffer;
    ew_etl_buffer_parse(bytes, &buffer);
    return !ew_etl_buffer_problem(&buffer) && buffer.size <= left &&
           !(ew_load_u16(bytes + FLAGS_AT) & ~KNOWN_FLAGS) &&
           buffer.flags & EW_ETL_FLAG_COMPRESSED && buffer.type <= LAST_TYPE;
}

/* Whether a buffer starts here: a valid header that is followed by another one or by the end of
 * the file. */
static bool begins_here(const struct ew_etl_scan *scan, const uint8_t *bytes, uint64_t offset)
{
    uint64_t left = scan->file->size_bytes - offset;
    uint8_t after[EW_ETL_HEADER_SIZE];
    if (!looks_compressed(bytes, left))
        return false;
    uint32_t size = ew_load_u32(bytes);
    if (size == left)
        return true;
    return ew_etl_file_read(scan->file, offset + size, after, sizeof after) == sizeof after &&
           looks_compressed(after, left - size);
}

/* The next offset at which a buffer of a compressed file starts, or the end of the file. */
static uint64_t find_compressed(struct ew_etl_scan *scan)
{
    struct ew_etl_scan at = *scan;
    const uint8_t *bytes = NULL;
    size_t size = 0;
    for (at.offset++; peek(&at, EW_ETL_HEADER_SIZE, &bytes, &size) == 0;
         at.offset += size - EW_ETL_HEADER_SIZE + 1) {
        if (size < EW_ETL_HEADER_SIZE)
            break;
        for (size_t i = 0; i + EW_ETL_HEADER_SIZE <= size; i++) {
            if (begins_here(&at, bytes + i, at.offset + i))
                return at.offset + i;
        }
    }
    return scan->file->size_bytes;
}

/* The next multiple of the file's buffer size, where every buffer of an uncompressed file
 * starts; the end of the file if its header has no valid buffer size. */
static uint64_t find_plain(const struct ew_etl_scan *scan)
{
    const struct ew_etl_file *file = scan->file;
    uint64_t step = file->info.buffer_bytes, left = file->size_bytes - scan->offset;
    if (step < ALIGNMENT_MIN || step % ALIGNMENT_MIN != 0 || step > EW_ETL_BUFFER_MAX)
        return file->size_bytes;
    uint64_t skip = step - scan->offset % step;
    return skip < left ? scan->offset + skip : file->size_bytes;
}

/* Counts damage and advances to the next offset at which a buffer can start. */
static void pass_damage(struct ew_etl_scan *scan, struct ew_etl_counts *counts, bool zero,
                        const char *problem)
{
    const struct ew_etl_file *file = scan->file;
    uint64_t next = file->info.compressed ? find_compressed(scan) : find_plain(scan);
    uint64_t bytes = next - scan->offset;
    scan->buffers++;
    if (!zero) {
        ew_etl_count_bad(counts, EW_ETL_BAD_BUFFER, file->number, scan->offset, bytes, problem);
    } else {
        if (scan->zero_bytes == 0)
            scan->zero_offset = scan->offset;
        scan->zero_bytes += bytes;
    }
    counts->bytes += bytes;
    scan->offset = next;
}

/* Zeros at the end of a file are space that was reserved and not used. Before a buffer they are
 * buffers that were never written. */
static void count_zeros(struct ew_etl_scan *scan, const struct ew_etl_found *found,
                        struct ew_etl_counts *counts)
{
    char text[sizeof counts->first_bad];
    if (scan->zero_bytes == 0)
        return;
    uint64_t ns = found->has_time ? ew_etl_clock_ns(&scan->file->clock, found->first_raw) : 0;
    (void)snprintf(text, sizeof text,
                   found->has_time ? "zeros instead of buffers; the next event is at %llu.%09llu s"
                                   : "zeros instead of buffers",
                   (unsigned long long)(ns / 1000000000), (unsigned long long)(ns % 1000000000));
    ew_etl_count_bad(counts, EW_ETL_BAD_BUFFER, scan->file->number, scan->zero_offset,
                     scan->zero_bytes, text);
    scan->zero_bytes = 0;
}

/* A second header: another recording was appended. Its clock and its session are not those of this
 * file, so it is not read. */
static void end_at_other(struct ew_etl_scan *scan, struct ew_etl_counts *counts)
{
    uint64_t left = scan->file->size_bytes - scan->offset;
    ew_etl_count_bad(counts, EW_ETL_BAD_BUFFER, scan->file->number, scan->offset, left,
                     "another recording begins here: split the file");
    counts->bytes += left;
    scan->offset = scan->file->size_bytes;
}

/* The time of the first event, from the bytes after the header. */
static void find_time(struct ew_etl_found *found, const uint8_t *bytes, size_t size)
{
    uint8_t inflated[FIRST_EVENT_ROOM];
    const struct ew_etl_buffer *buffer = &found->buffer;
    size_t room = buffer->filled - EW_ETL_HEADER_SIZE;
    if (buffer->flags & EW_ETL_FLAG_COMPRESSED) {
        size_t got = 0;
        (void)(buffer->flags & EW_ETL_FLAG_HUFFMAN ? ew_xpress_huffman_inflate : ew_xpress_inflate)(
            bytes, size, inflated, room < sizeof inflated ? room : sizeof inflated, &got);
        bytes = inflated;
        size = got;
    } else if (size > room) {
        size = room;
    }
    found->has_time = ew_etl_peek_time(bytes, size, &found->first_raw);
}

/* A buffer of zeros may expand to thousands of times its size, a recording as a whole does not:
 * events compress to about a tenth. So the file bounds the memory and time that its contents take.
 */
static bool may_expand(struct ew_etl_scan *scan, const struct ew_etl_buffer *buffer)
{
    enum { FREE_BYTES = 16 << 20, RATIO = 64 };
    if (!(buffer->flags & EW_ETL_FLAG_COMPRESSED))
        return true;
    if (scan->expanded_bytes + buffer->filled > FREE_BYTES + RATIO * scan->offset)
        return false;
    scan->expanded_bytes += buffer->filled;
    return true;
}

static void note_buffer(struct ew_etl_scan *scan, const struct ew_etl_found *found)
{
    scan->valid++;
    if (scan->highest < found->buffer.sequence)
        scan->highest = found->buffer.sequence;
    if (scan->places)
        ew_etl_places_add(scan->places, found);
}

/* Parses the header at the current position. Returns 1 if the buffer is not empty. */
static int take_buffer(struct ew_etl_scan *scan, const uint8_t *bytes, size_t size,
                       struct ew_etl_found *ret_found, struct ew_etl_counts *counts)
{
    struct ew_etl_buffer *buffer = &ret_found->buffer;
    uint64_t left = scan->file->size_bytes - scan->offset;
    ret_found->offset = scan->offset;
    ret_found->cut = ret_found->has_time = false;
    ew_etl_buffer_parse(bytes, buffer);
    const char *problem = ew_etl_buffer_problem(buffer);
    if (problem) {
        pass_damage(scan, counts, all_zero(bytes, EW_ETL_HEADER_SIZE), problem);
        return 0;
    }
    if (buffer->type == BUFFER_OF_HEADER && scan->offset > 0) {
        end_at_other(scan, counts);
        return 0;
    }
    scan->buffers++;
    if (buffer->size > left) {
        ret_found->cut = buffer->flags & EW_ETL_FLAG_COMPRESSED || buffer->filled > left;
        buffer->size = (uint32_t)left;
        scan->ends_early = true;
    }
    scan->offset += buffer->size;
    if (!(buffer->flags & EW_ETL_FLAG_COMPRESSED) && buffer->filled > buffer->size)
        buffer->filled = buffer->size;
    if (!may_expand(scan, buffer)) {
        ew_etl_count_bad(counts, EW_ETL_BAD_BUFFER, scan->file->number, ret_found->offset,
                         buffer->size, "the compressed buffers expand too much");
        counts->bytes += buffer->size;
        note_buffer(scan, ret_found);
        return 0;
    }
    if (buffer->filled == EW_ETL_HEADER_SIZE && !(buffer->flags & EW_ETL_FLAG_LOST)) {
        counts->buffers++;
        counts->bytes += buffer->size;
        note_buffer(scan, ret_found);
        return 0;
    }
    if (size > buffer->size)
        size = buffer->size;
    find_time(ret_found, bytes + EW_ETL_HEADER_SIZE, size - EW_ETL_HEADER_SIZE);
    count_zeros(scan, ret_found, counts);
    note_buffer(scan, ret_found);
    return 1;
}

int ew_etl_scan_next(struct ew_etl_scan *scan, struct ew_etl_found *ret_found,
                     struct ew_etl_counts *counts)
{
    while (scan->offset < scan->file->size_bytes) {
        const uint8_t *bytes = NULL;
        size_t size = 0;
        int rc = peek(scan, PEEK_SIZE, &bytes, &size);
        if (rc < 0)
            return rc;
        if (size < EW_ETL_HEADER_SIZE) { /* the end, or the file was truncated meanwhile */
            pass_damage(scan, counts, all_zero(bytes, size),
                        "the file ends inside a buffer header");
            return 0;
        }
        rc = take_buffer(scan, bytes, size, ret_found, counts);
        if (scan->offset >= scan->file->size_bytes)
            ew_etl_check_missing(scan, counts);
        if (rc != 0)
            return rc;
    }
    return 0;
}
