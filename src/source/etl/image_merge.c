/* SPDX-License-Identifier: MIT */
/*
 * Two passes over the buffers of a recording: the first reads the program files and counts the
 * buffers that the added events need, the second writes. Buffers of a file that ETW wrote itself
 * have one size; anything else is refused, so that no recording is made worse.
 */
#include "source/etl/image_merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/utf16.h"
#include "os/os.h"
#include "source/etl/walk.h"

enum {
    /* The header of a buffer. */
    HEAD_BYTES = 72,
    SAVED_AT = 4,
    CURRENT_AT = 8,
    NUMBER_AT = 0x18,
    FILLED_AT = 0x30,
    FLAGS_AT = 0x34,
    TYPE_AT = 0x36,
    FLAG_EVENTS_LOST = 2,
    FLAG_BUFFERS_LOST = 4,
    FLAG_COMPRESSED = 0x40,
    TYPE_HEADER = 4,
    /* In the first buffer, after the header of its event. */
    LOGFILE_AT = HEAD_BYTES + 32,
    WRITTEN_AT = LOGFILE_AT + 0x24,
    BUFFER_MIN = 4096,
    BUFFER_MAX = 16 << 20,
    /* An event: its header, then the payload. */
    FULL_BYTES = 0x30,
    PATH_BYTES = 1024,
    IDS_BYTES = 2 * FULL_BYTES + 64 + 2 * PATH_BYTES + 512,
    FILES_SLOTS = 1 << 15, /* a power of two; half of them are used at most */
    PAGE_BYTES = 4096,
    OPCODE_ID = 0,
    OPCODE_RSDS = 36,
};
#define FILE_BYTES_MAX (UINT64_C(4) << 30)

/* {b3e675d7-2554-4f18-830b-2762732560de} as on disk */
static const uint8_t image_id_guid[16] = {0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f,
                                          0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde};

struct known_file {
    bool readable;
    struct ew_etl_image_identity identity;
    char path[];
};

/* A buffer that becomes several. */
struct grown {
    uint64_t number;
    uint64_t more; /* in the second pass: of all up to this one */
};

struct merge {
    const struct ew_image_files *files;
    struct ew_image_merge *result;
    struct ew_os_file *in;
    uint64_t buffer_count;
    uint32_t buffer_bytes;
    uint8_t *buffer; /* as read */
    uint8_t *packed; /* to be written */
    uint32_t used;   /* of packed */
    uint32_t pieces; /* of this buffer so far */
    FILE *out;       /* NULL in the first pass */
    struct grown *grown;
    size_t grown_count;
    uint32_t added_buffers;
    struct known_file **known; /* FILES_SLOTS */
    uint32_t known_count;
    bool out_of_memory, write_failed;
};

static void store_u16(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
}

static void store_u32(uint8_t *p, uint32_t value)
{
    store_u16(p, value);
    store_u16(p + 2, value >> 16);
}

static void store_u64(uint8_t *p, uint64_t value)
{
    store_u32(p, (uint32_t)value);
    store_u32(p + 4, (uint32_t)(value >> 32));
}

/* ------------------------------------------------------------------ program files */

static struct known_file *make_known(struct merge *m, const char *path)
{
    size_t len = strlen(path) + 1;
    struct known_file *file = ew_calloc(1, sizeof *file + len);
    if (file == NULL)
        return NULL;
    memcpy(file->path, path, len);
    file->readable = m->files->identity(m->files->ctx, path, &file->identity);
    m->result->files += file->readable;
    return file;
}

/* NULL: its identity is unknown. */
static const struct ew_etl_image_identity *identity_of(struct merge *m, const char *path)
{
    uint64_t hash = ew_hash_seed();
    for (const char *at = path; *at != '\0'; at++)
        hash = ew_hash_mix(hash, (uint8_t)*at);
    uint32_t slot = (uint32_t)(hash >> 16) & (FILES_SLOTS - 1);
    while (m->known[slot] != NULL && strcmp(m->known[slot]->path, path) != 0)
        slot = (slot + 1) & (FILES_SLOTS - 1);
    if (m->known[slot] == NULL && m->known_count < FILES_SLOTS / 2) {
        m->known[slot] = make_known(m, path);
        m->out_of_memory = m->out_of_memory || m->known[slot] == NULL;
        m->known_count++;
    }
    const struct known_file *file = m->known[slot];
    return file != NULL && file->readable ? &file->identity : NULL;
}

/* ------------------------------------------------------------------------- events */

struct image {
    uint64_t base, bytes, t_raw;
    uint64_t times;               /* kernel and user time of its event, as in its header */
    uint32_t pid, tid, timestamp; /* pid: of the image, not of the header */
    char path[PATH_BYTES];
};

/* Load is an event of the group of processes; the others have their own. */
static bool is_image(const struct ew_record *record)
{
    uint32_t hook = (uint32_t)record->group << 8 | record->opcode;
    return record->kind == EW_RECORD_KERNEL && record->pointer_size == 8 && record->version >= 2 &&
           (hook == 0x030A || hook == 0x1402 || hook == 0x1403 || hook == 0x1404);
}

static bool read_image(const struct ew_record *record, struct image *ret)
{
    struct ew_bytes at;
    ew_bytes_init(&at, record->payload, record->payload_size);
    ret->base = ew_bytes_u64(&at);
    ret->bytes = ew_bytes_u64(&at);
    ret->pid = ew_bytes_u32(&at);
    ew_bytes_skip(&at, 4);
    ret->timestamp = ew_bytes_u32(&at);
    ew_bytes_seek(&at, 56);
    size_t left = ew_bytes_left(&at);
    const uint8_t *name = ew_bytes_take(&at, left);
    ret->tid = record->tid;
    ret->times = record->header_type == EW_ETL_SYSTEM64 ? ew_load_u64(record->header + 24) : 0;
    if (name == NULL || !ew_bytes_ok(&at))
        return false;
    size_t len = ew_utf16_len(name, left);
    return EW_UTF16_UTF8_MAX(len) < sizeof ret->path &&
           ew_utf16_to_utf8(name, len, ret->path, sizeof ret->path) > 0;
}

/* Ends an event that began at `from`; returns where the next one begins. */
static uint8_t *end_event(uint8_t *from, uint8_t *to, uint8_t opcode, const struct image *image)
{
    size_t size = (size_t)(to - from);
    memset(from, 0, FULL_BYTES);
    store_u16(from, (uint32_t)size);
    from[2] = EW_ETL_FULL64;
    from[3] = 0xC0;
    from[4] = opcode;
    store_u16(from + 6, 2); /* version */
    store_u32(from + 8, image->tid);
    store_u32(from + 12, image->pid);
    store_u64(from + 16, image->t_raw);
    memcpy(from + 24, image_id_guid, sizeof image_id_guid);
    store_u64(from + 40, image->times);
    while (size++ % 8 != 0)
        *to++ = 0;
    return to;
}

/* Part of a text in UTF-16, which it ends. */
static uint8_t *put_wide(uint8_t *to, const uint8_t *utf16, size_t len)
{
    memcpy(to, utf16, len);
    to[len] = to[len + 1] = 0;
    return to + len + 2;
}

static uint64_t pages(uint64_t bytes)
{
    return bytes / PAGE_BYTES + (bytes % PAGE_BYTES != 0);
}

/* Both events; returns their size, 0 if the identity is unknown. */
static size_t make_ids(struct merge *m, const struct ew_record *record, uint8_t ids[IDS_BYTES])
{
    struct image image = {.t_raw = record->t_raw};
    if (!read_image(record, &image))
        return 0;
    m->result->events += m->out == NULL;
    const struct ew_etl_image_identity *identity = identity_of(m, image.path);
    /* Otherwise another file has its place by now. Sizes in memory are whole pages. */
    if (identity == NULL || pages(identity->image_bytes) != pages(image.bytes) ||
        (image.timestamp != 0 && image.timestamp != identity->timestamp))
        return 0;
    const uint8_t *utf16 = record->payload + 56;
    size_t len = ew_utf16_len(utf16, record->payload_size - 56), units = 0;
    for (size_t i = 0; i + 1 < len; i += 2)
        if (utf16[i + 1] == 0 && (utf16[i] == '\\' || utf16[i] == '/'))
            units = i + 2;
    uint8_t *at = ids + FULL_BYTES;
    store_u64(at, image.base);
    store_u64(at + 8, identity->image_bytes);
    store_u32(at + 16, image.pid);
    store_u32(at + 20, identity->timestamp);
    at = end_event(ids, put_wide(at + 24, utf16 + units, len - units), OPCODE_ID, &image);
    if (identity->has_pdb) {
        uint8_t *from = at;
        size_t pdb_bytes = strlen(identity->pdb) + 1;
        at += FULL_BYTES;
        store_u64(at, image.base);
        store_u32(at + 8, image.pid);
        memcpy(at + 12, identity->guid, sizeof identity->guid);
        store_u32(at + 28, identity->age);
        memcpy(at + 32, identity->pdb, pdb_bytes);
        at = end_event(from, at + 32 + pdb_bytes, OPCODE_RSDS, &image);
    }
    m->result->added += m->out == NULL;
    return (size_t)(at - ids);
}

/* ------------------------------------------------------------------------ buffers */

/* What is added to this number: the buffers that were added to buffers with lower numbers. */
static uint64_t shift_of(const struct merge *m, uint64_t number)
{
    size_t low = 0, high = m->grown_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->grown[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? 0 : m->grown[low - 1].more;
}

static void write_bytes(struct merge *m, const uint8_t *bytes)
{
    if (m->out != NULL && fwrite(bytes, 1, m->buffer_bytes, m->out) != m->buffer_bytes)
        m->write_failed = true;
}

static void end_piece(struct merge *m)
{
    uint8_t *out = m->packed;
    uint64_t number = ew_load_u64(m->buffer + NUMBER_AT);
    memcpy(out, m->buffer, HEAD_BYTES);
    store_u32(out + SAVED_AT, m->used);
    store_u32(out + CURRENT_AT, m->used);
    store_u32(out + FILLED_AT, m->used);
    store_u64(out + NUMBER_AT, number + shift_of(m, number) + m->pieces);
    if (m->pieces > 0)
        store_u16(out + FLAGS_AT,
                  ew_load_u16(out + FLAGS_AT) & ~(uint32_t)(FLAG_EVENTS_LOST | FLAG_BUFFERS_LOST));
    memset(out + m->used, 0xFF, m->buffer_bytes - m->used);
    write_bytes(m, out);
    m->pieces++;
    m->used = HEAD_BYTES;
}

static void put(struct merge *m, const uint8_t *bytes, size_t size)
{
    if (m->used + size > m->buffer_bytes)
        end_piece(m);
    memcpy(m->packed + m->used, bytes, size);
    m->used += (uint32_t)size;
}

/* The next event of a buffer; its size with padding, 0 at the end. *ret_bad: this is no event. */
static size_t next_event(const uint8_t *at, const uint8_t *end, struct ew_record *ret_record,
                         bool *ret_bad)
{
    struct ew_etl_frame frame;
    const char *what;
    enum ew_etl_step step = EW_ETL_EVENT;
    if (!ew_etl_frame_fast(at, end, &frame))
        step = ew_etl_frame_slow(at, end, &frame, &what);
    *ret_bad = step == EW_ETL_BAD || step == EW_ETL_CUT;
    if (step != EW_ETL_EVENT)
        return 0;
    memset(ret_record, 0, sizeof *ret_record);
    ret_record->t_raw = frame.t_raw;
    *ret_bad = !ew_etl_fill(ret_record, at, frame.size, frame.type, 0);
    size_t size = ew_etl_padded(frame.size), left = (size_t)(end - at);
    return size < left ? size : left;
}

/* Whether every byte is part of an event, and one of them is of an image. */
static bool has_images(const uint8_t *at, const uint8_t *end)
{
    struct ew_record record;
    bool bad, found = false;
    for (size_t size; (size = next_event(at, end, &record, &bad)) > 0; at += size)
        found = found || is_image(&record);
    return found && !bad && at == end;
}

static void copy_buffer(struct merge *m)
{
    uint64_t number = ew_load_u64(m->buffer + NUMBER_AT);
    if (ew_load_u16(m->buffer + TYPE_AT) != TYPE_HEADER)
        store_u64(m->buffer + NUMBER_AT, number + shift_of(m, number));
    write_bytes(m, m->buffer);
}

static int note_grown(struct merge *m)
{
    if (m->pieces <= 1 || m->out != NULL)
        return 0;
    struct grown *more = ew_realloc_array(m->grown, m->grown_count + 1, sizeof *more);
    if (more == NULL)
        return ETWATCH_ENOMEM;
    m->grown = more;
    more[m->grown_count].number = ew_load_u64(m->buffer + NUMBER_AT);
    more[m->grown_count++].more = m->pieces - 1;
    m->added_buffers += m->pieces - 1;
    return 0;
}

static int do_buffer(struct merge *m)
{
    uint8_t ids[IDS_BYTES];
    uint32_t filled = ew_load_u32(m->buffer + FILLED_AT);
    const uint8_t *at = m->buffer + HEAD_BYTES, *end = m->buffer + filled;
    struct ew_record record;
    bool bad;
    if (ew_load_u32(m->buffer) != m->buffer_bytes || filled < HEAD_BYTES ||
        filled > m->buffer_bytes || (ew_load_u16(m->buffer + FLAGS_AT) & FLAG_COMPRESSED) != 0)
        return ETWATCH_EFORMAT;
    if (ew_load_u16(m->buffer + TYPE_AT) == TYPE_HEADER || !has_images(at, end)) {
        copy_buffer(m);
        return m->write_failed ? ETWATCH_EOS : 0;
    }
    m->used = HEAD_BYTES;
    m->pieces = 0;
    for (size_t size; (size = next_event(at, end, &record, &bad)) > 0; at += size) {
        size_t ids_bytes = is_image(&record) ? make_ids(m, &record, ids) : 0;
        if (ids_bytes > 0)
            put(m, ids, ids_bytes);
        put(m, at, size);
    }
    end_piece(m);
    if (m->write_failed || m->out_of_memory)
        return m->write_failed ? ETWATCH_EOS : ETWATCH_ENOMEM;
    return note_grown(m);
}

static int read_buffer(struct merge *m, uint64_t i)
{
    int64_t got = ew_os_file_read(m->in, i * m->buffer_bytes, m->buffer, m->buffer_bytes);
    return got == (int64_t)m->buffer_bytes ? 0 : ETWATCH_EOS;
}

static int pass(struct merge *m)
{
    int rc = 0;
    for (uint64_t i = 0; i < m->buffer_count && rc == 0; i++) {
        rc = read_buffer(m, i);
        if (rc == 0 && i == 0)
            store_u32(m->buffer + WRITTEN_AT,
                      ew_load_u32(m->buffer + WRITTEN_AT) + m->added_buffers);
        if (rc == 0)
            rc = do_buffer(m);
    }
    return rc;
}

static int by_number(const void *left, const void *right)
{
    const struct grown *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

/* --------------------------------------------------------------------------- files */

static int write_file(struct merge *m, const char *path)
{
    char other[4096];
    int len =
        snprintf(other, sizeof other, "%s.%016llx.tmp", path, (unsigned long long)ew_random_u64());
    if (len < 0 || (size_t)len >= sizeof other)
        return ETWATCH_EINVAL;
    m->out = ew_os_stream_create(other);
    if (m->out == NULL)
        return errno == EACCES || errno == EPERM ? ETWATCH_EPERM : ETWATCH_EOS;
    int rc = pass(m);
    if (fclose(m->out) != 0 && rc == 0)
        rc = ETWATCH_EOS;
    /* The name can only be taken over when nothing of ours has the file open. */
    ew_os_file_close(m->in);
    m->in = NULL;
    if (rc == 0 && ew_os_file_rename(other, path) != 0)
        rc = ETWATCH_EOS;
    if (rc != 0)
        ew_os_file_remove(other);
    return rc;
}

static int open_file(struct merge *m, const char *path)
{
    uint8_t head[HEAD_BYTES];
    uint64_t bytes;
    int64_t os_code;
    int rc = ew_os_file_open(path, &m->in, &bytes, &os_code);
    if (rc != 0)
        return rc;
    if (bytes > FILE_BYTES_MAX)
        return ETWATCH_ELIMIT;
    if (ew_os_file_read(m->in, 0, head, sizeof head) != sizeof head)
        return ETWATCH_EFORMAT;
    m->buffer_bytes = ew_load_u32(head);
    if (m->buffer_bytes < BUFFER_MIN || m->buffer_bytes > BUFFER_MAX ||
        bytes % m->buffer_bytes != 0 || ew_load_u16(head + TYPE_AT) != TYPE_HEADER)
        return ETWATCH_EFORMAT;
    m->buffer_count = bytes / m->buffer_bytes;
    m->buffer = ew_calloc(1, m->buffer_bytes);
    m->packed = ew_calloc(1, m->buffer_bytes);
    m->known = ew_calloc(FILES_SLOTS, sizeof *m->known);
    return m->buffer == NULL || m->packed == NULL || m->known == NULL ? ETWATCH_ENOMEM : 0;
}

static int run(struct merge *m, const char *path)
{
    int rc = open_file(m, path);
    if (rc == 0)
        rc = pass(m);
    if (rc != 0 || m->result->added == 0)
        return rc;
    if (m->grown_count > 0)
        qsort(m->grown, m->grown_count, sizeof *m->grown, by_number);
    for (size_t i = 1; i < m->grown_count; i++)
        m->grown[i].more += m->grown[i - 1].more;
    return write_file(m, path);
}

static bool local_identity(void *ctx, const char *path, struct ew_etl_image_identity *ret_identity)
{
    char name[PATH_BYTES + 64];
    (void)ctx;
    return ew_os_kernel_path(path, name, sizeof name) &&
           ew_etl_image_identity_open(name, ret_identity);
}

int ew_etl_image_merge_file(const char *path, const struct ew_image_files *files,
                            struct ew_image_merge *ret_merge)
{
    static const struct ew_image_files local = {.identity = local_identity};
    struct merge m = {.files = files != NULL ? files : &local, .result = ret_merge};
    memset(ret_merge, 0, sizeof *ret_merge);
    int rc = run(&m, path);
    ew_os_file_close(m.in);
    for (size_t i = 0; m.known != NULL && i < FILES_SLOTS; i++)
        ew_free(m.known[i]);
    ew_free(m.known);
    ew_free(m.grown);
    ew_free(m.buffer);
    ew_free(m.packed);
    return rc;
}
