/* SPDX-License-Identifier: MIT */
/*
 * Owns the files and the memory of a recording. Invariant: a file has only whole packets. If a
 * write fails in the middle, the file is truncated to the last whole packet, and the error is kept
 * for the caller.
 *
 * The ring is a sequence of parts, each of which begins with everything that a reader needs. The
 * oldest part is dropped as a whole when the rest is long enough, or when the ring is too large. So
 * memory is bounded by max_bytes, and the ring is at most one part shorter than requested.
 */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/path.h"
#include "os/os.h"

/* What may still be written after the size was checked: a flush or two. */
enum { REST_BYTES = 256 * 1024 };

static int open_number(struct ew_record_file *file, uint32_t number)
{
    int fd = -1;
    size_t size = strlen(file->path) + 16;
    char *name = ew_calloc(size, 1);
    if (name == NULL)
        return ENOMEM;
    (void)ew_path_numbered(file->path, number, name, size);
    ew_free(file->name);
    file->name = name;
    file->bytes = 0;
    int error = ew_place_create(file->place, number, &fd);
    ew_output_init(&file->output, fd, name);
    file->open = error == 0;
    if (file->open)
        file->number = number;
    return error;
}

int ew_cli_record_file_open(struct ew_record_file *file, const char *path, uint32_t mode,
                            uint64_t max_bytes, uint32_t keep_files, uint64_t ring_ns)
{
    *file = (struct ew_record_file){
        .path = path,
        .max_bytes = max_bytes,
        .keep_files = keep_files,
        .ring_ns = ring_ns,
    };
    int error = ew_place_open(path, mode, &file->place);
    if (error != 0)
        return error;
    /* Further files are created when the rights of the start are gone. */
    if (keep_files != 0 || ring_ns != 0)
        error = ew_place_detach(file->place);
    return error != 0 ? error : open_number(file, 1);
}

static int close_file(struct ew_record_file *file)
{
    int error = file->open ? ew_output_close(&file->output) : 0;
    file->open = false;
    return error;
}

/* ------------------------------------------------------------------------- ring */

static void drop_oldest(struct ew_record_file *file)
{
    file->ring_bytes -= file->parts[0].len;
    ew_free(file->parts[0].bytes);
    memmove(&file->parts[0], &file->parts[1], (EW_RING_PARTS - 1) * sizeof file->parts[0]);
    file->parts[EW_RING_PARTS - 1] = (struct ew_ring_part){0};
    file->part_count--;
}

static int write_ring(struct ew_record_file *file, const void *bytes, size_t len)
{
    while (file->part_count > 1 && file->max_bytes != 0 &&
           file->ring_bytes + len > file->max_bytes) {
        drop_oldest(file);
        file->dropped_parts++;
    }
    if (file->part_count == 0) {
        file->part_count = 1;
        file->parts[0].len = 0;
        file->parts[0].begun_ns = ew_os_raw_ns();
    }
    struct ew_ring_part *part = &file->parts[file->part_count - 1];
    if (len > part->size - part->len) {
        size_t size = part->size == 0 ? 65536 : part->size;
        while (size < part->len + len)
            size *= 2;
        char *larger = ew_realloc_array(part->bytes, size, 1);
        if (larger == NULL)
            return ETWATCH_ENOMEM;
        part->bytes = larger;
        part->size = size;
    }
    memcpy(part->bytes + part->len, bytes, len);
    part->len += len;
    file->ring_bytes += len;
    file->total_bytes += len;
    return 0;
}

/* Shrinks a finished part to its content. */
static void shrink(struct ew_ring_part *part)
{
    char *smaller = part->len == 0 ? NULL : ew_realloc_array(part->bytes, part->len, 1);
    if (smaller == NULL)
        return;
    part->bytes = smaller;
    part->size = part->len;
}

static void next_part(struct ew_record_file *file, uint64_t now_ns)
{
    while (file->part_count > 0 &&
           (file->part_count == EW_RING_PARTS ||
            (file->part_count > 1 && now_ns - file->parts[1].begun_ns >= file->ring_ns)))
        drop_oldest(file);
    if (file->part_count > 0)
        shrink(&file->parts[file->part_count - 1]);
    struct ew_ring_part *part = &file->parts[file->part_count++];
    part->len = 0;
    part->begun_ns = now_ns;
}

/* ------------------------------------------------------------------------ writing */

static int write_file(struct ew_record_file *file, const void *bytes, size_t len)
{
    int rc = file->open ? ew_output_write(&file->output, bytes, len) : ETWATCH_EOS;
    if (rc < 0) {
        file->os_error = file->output.os_error;
        ew_output_truncate(&file->output, file->bytes);
        return rc;
    }
    file->bytes += len;
    return 0;
}

int ew_cli_record_file_write(void *ctx, const void *bytes, size_t len)
{
    struct ew_record_file *file = ctx;
    if (file->ring_ns != 0)
        return write_ring(file, bytes, len);
    file->total_bytes += len;
    return write_file(file, bytes, len);
}

bool ew_cli_record_file_full(const struct ew_record_file *file)
{
    uint64_t rest = REST_BYTES < file->max_bytes / 4 ? REST_BYTES : file->max_bytes / 4;
    return file->max_bytes != 0 && file->ring_ns == 0 && file->keep_files == 0 &&
           file->bytes + rest >= file->max_bytes;
}

bool ew_cli_record_file_due(const struct ew_record_file *file, uint64_t now_ns)
{
    uint64_t rest = REST_BYTES < file->max_bytes / 4 ? REST_BYTES : file->max_bytes / 4;
    if (file->ring_ns != 0) {
        const struct ew_ring_part *newest =
            file->part_count > 0 ? &file->parts[file->part_count - 1] : NULL;
        return newest != NULL &&
               (now_ns - newest->begun_ns >= file->ring_ns / (EW_RING_PARTS - 2) ||
                newest->len >= file->max_bytes / 8);
    }
    return file->keep_files != 0 && file->bytes + rest >= file->max_bytes;
}

int ew_cli_record_file_next(struct ew_record_file *file, uint64_t now_ns)
{
    if (file->ring_ns != 0) {
        next_part(file, now_ns);
        return 0;
    }
    int error = close_file(file);
    if (error == 0)
        error = open_number(file, file->number + 1);
    if (error == 0 && file->number > file->keep_files)
        (void)ew_place_remove(file->place, file->number - file->keep_files);
    return error;
}

int ew_cli_record_file_dump(struct ew_record_file *file)
{
    int error = file->open ? 0 : open_number(file, file->number + 1);
    for (uint32_t i = 0; i < file->part_count && error == 0; i++)
        if (write_file(file, file->parts[i].bytes, file->parts[i].len) < 0)
            error = file->os_error;
    int closed = close_file(file);
    file->dumps++;
    while (file->part_count > 0)
        drop_oldest(file);
    return error != 0 ? error : closed;
}

int ew_cli_record_file_close(struct ew_record_file *file, bool failed)
{
    int error = close_file(file);
    uint64_t ring_bytes = file->ring_bytes; /* still reported after the end */
    bool unused = file->ring_ns != 0 ? file->dumps == 0 : failed && file->total_bytes == 0;
    if (unused && file->place != NULL && file->number != 0)
        (void)ew_place_remove(file->place, file->number);
    ew_place_close(file->place);
    file->place = NULL;
    while (file->part_count > 0)
        drop_oldest(file);
    file->ring_bytes = ring_bytes;
    ew_free(file->name);
    file->name = NULL;
    return error;
}
