/* SPDX-License-Identifier: MIT */
/*
 * Opens one recording. The first buffer must hold the log-file header event, since without it there
 * is no clock; only backup files of real-time sessions may lack it, because each of their buffers
 * carries a reference time.
 */
#include "source/etl/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "source/etl/xpress.h"

enum { FIRST_READ = 16384 };

int64_t ew_etl_file_read(const struct ew_etl_file *file, uint64_t offset, void *bytes, size_t size)
{
    if (offset >= file->size_bytes)
        return 0;
    if (size > file->size_bytes - offset)
        size = (size_t)(file->size_bytes - offset);
    if (file->os)
        return ew_os_file_read(file->os, offset, bytes, size);
    memcpy(bytes, file->memory + offset, size);
    return (int64_t)size;
}

void ew_etl_count_bad(struct ew_etl_counts *counts, enum ew_etl_damage damage, uint32_t file,
                      uint64_t offset, uint64_t bad_bytes, const char *what)
{
    bool first = counts->bad_buffers + counts->bad_records == 0 || file < counts->first_bad_file ||
                 (file == counts->first_bad_file && offset < counts->first_bad_offset);
    if (damage == EW_ETL_BAD_BUFFER)
        counts->bad_buffers++;
    else
        counts->bad_records++;
    counts->bad_bytes += bad_bytes;
    if (!first)
        return;
    counts->first_bad_file = file;
    counts->first_bad_offset = offset;
    (void)snprintf(counts->first_bad, sizeof counts->first_bad, "%s", what);
}

static int refuse(struct ew_error *reterr, int code, const struct ew_etl_file *file,
                  uint64_t offset, const char *what)
{
    (void)ew_error_set(reterr, code, 0, "%s: byte %" PRIu64 ": %s", file->info.path, offset, what);
    if (reterr)
        reterr->offset = offset;
    return code;
}

/* Sets the clock from the reference time of a buffer. It includes the frequency since Windows 8. */
static const char *use_reference(struct ew_etl_file *file, const struct ew_etl_buffer *buffer)
{
    struct ew_etl_file_info *info = &file->info;
    info->clock = (uint32_t)(buffer->clock & 7);
    if (info->clock < 1 || info->clock > 3)
        info->clock = 1;
    info->perf_frequency = buffer->clock >> 3;
    info->start_filetime = (int64_t)buffer->reference_filetime;
    info->header_raw = buffer->reference_raw;
    info->buffer_bytes = buffer->size;
    info->pointer_size = 8;
    info->session_name = info->file_name = "";
    return NULL;
}

/* buffer is the first one; bytes are its first `size` bytes. */
static const char *read_header(struct ew_etl_file *file, const uint8_t *bytes, size_t size,
                               const struct ew_etl_buffer *buffer)
{
    uint8_t inflated[FIRST_READ];
    size_t filled = buffer->filled - EW_ETL_HEADER_SIZE;
    const uint8_t *events = bytes + EW_ETL_HEADER_SIZE;
    size_t events_size = size - EW_ETL_HEADER_SIZE;
    if (buffer->flags & EW_ETL_FLAG_COMPRESSED) {
        size_t out_size = filled < sizeof inflated ? filled : sizeof inflated;
        (void)(buffer->flags & EW_ETL_FLAG_HUFFMAN ? ew_xpress_huffman_inflate : ew_xpress_inflate)(
            events, events_size, inflated, out_size, &events_size);
        events = inflated;
    } else if (events_size > filled) {
        events_size = filled;
    }
    const char *problem = ew_etl_log_header_parse(events, events_size, &file->info,
                                                  file->session_name, file->file_name);
    if (problem && buffer->flags & EW_ETL_FLAG_BACKUP && buffer->reference_filetime != 0)
        problem = use_reference(file, buffer);
    return problem;
}

static int read_first(struct ew_etl_file *file, struct ew_error *reterr)
{
    uint8_t bytes[FIRST_READ];
    struct ew_etl_buffer buffer;
    int64_t got = ew_etl_file_read(file, 0, bytes, sizeof bytes);
    if (got < 0)
        return ew_error_set(reterr, (int)got, 0, "%s: cannot be read", file->info.path);
    if (got == 0)
        return refuse(reterr, ETWATCH_ETRUNC, file, 0, "the file is empty");
    if (got < EW_ETL_HEADER_SIZE)
        return refuse(reterr, ETWATCH_ETRUNC, file, (uint64_t)got,
                      "the file ends inside the first buffer header");
    ew_etl_buffer_parse(bytes, &buffer);
    const char *problem = ew_etl_buffer_problem(&buffer);
    if (problem) {
        char found[160];
        (void)snprintf(found, sizeof found, "not an .etl recording: %s (found %02x %02x %02x %02x)",
                       problem, bytes[0], bytes[1], bytes[2], bytes[3]);
        return refuse(reterr, ETWATCH_EFORMAT, file, 0, found);
    }
    size_t size = (size_t)got < buffer.size ? (size_t)got : buffer.size;
    problem = read_header(file, bytes, size, &buffer);
    if (problem) {
        char found[160];
        (void)snprintf(found, sizeof found, "not an .etl recording: %s", problem);
        bool ends = (uint64_t)got == file->size_bytes && buffer.filled > size;
        return refuse(reterr, ends ? ETWATCH_ETRUNC : ETWATCH_EFORMAT, file, EW_ETL_HEADER_SIZE,
                      found);
    }
    return 0;
}

static int open_bytes(struct ew_etl_file *file, const char *path, const void *bytes, size_t size,
                      struct ew_error *reterr)
{
    file->path = ew_strdup(path ? path : "(memory)");
    if (!file->path)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    file->info.path = file->path;
    file->memory = bytes;
    file->size_bytes = size;
    if (!path)
        return 0;
    int64_t os_code = 0;
    int rc = ew_os_file_open(path, &file->os, &file->size_bytes, &os_code);
    if (rc == ETWATCH_ENOMEM)
        return ew_error_set(reterr, rc, 0, "out of memory");
    if (rc < 0)
        return ew_error_set(reterr, rc, os_code, "%s: %s", path,
                            os_code ? strerror((int)os_code) : "cannot be opened");
    return 0;
}

int ew_etl_file_open(struct ew_etl_file *file, const char *path, const void *bytes, size_t size,
                     struct ew_error *reterr)
{
    int rc = open_bytes(file, path, bytes, size, reterr);
    if (rc == 0)
        rc = read_first(file, reterr);
    if (rc < 0)
        return rc;
    file->info.file_bytes = file->size_bytes;
    ew_etl_clock_init(&file->clock, file->info.clock, file->info.perf_frequency, file->info.cpu_mhz,
                      file->info.header_raw);
    return 0;
}

void ew_etl_file_close(struct ew_etl_file *file)
{
    ew_os_file_close(file->os);
    ew_free(file->path);
    file->os = NULL;
    file->path = NULL;
}
