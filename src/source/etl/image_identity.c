/* SPDX-License-Identifier: MIT */
/*
 * The headers of a program file (PE): the DOS header leads to the NT headers, their table of
 * directories to the debug directory, and its entry of type CodeView to the identity of the PDB.
 * Every offset comes from the file, so all bytes are read through the bounded cursor.
 */
#include "source/etl/image_identity.h"

#include <string.h>

#include "base/bytes.h"
#include "os/os.h"

enum {
    DOS_BYTES = 64,
    NT_AT = 0x3C,
    /* NT headers with the largest optional header and 96 sections, the limit of Windows. */
    NT_BYTES = 24 + 240 + 96 * 40,
    FILE_HEADER_BYTES = 20,
    SECTION_BYTES = 40,
    SECTIONS_MAX = 96,
    MAGIC_32 = 0x10B,
    MAGIC_64 = 0x20B,
    DIRECTORY_DEBUG = 6,
    DEBUG_ENTRY_BYTES = 28,
    DEBUG_ENTRIES_MAX = 32,
    DEBUG_CODEVIEW = 2,
    CODEVIEW_BYTES = 24, /* before the name */
};

struct headers {
    struct ew_bytes sections;
    uint32_t section_count;
    uint32_t debug_rva, debug_bytes;
};

/* Exactly size bytes. */
static bool read_exactly(const struct ew_image_source *source, uint64_t offset, void *bytes,
                         size_t size)
{
    return source->read(source->ctx, offset, bytes, size) == (int64_t)size;
}

static bool read_headers(struct ew_bytes *nt, struct ew_etl_image_identity *identity,
                         struct headers *ret)
{
    struct ew_bytes optional;
    ew_bytes_expect(nt, "PE");
    ew_bytes_skip(nt, 2 + 2); /* two zeros, machine */
    ret->section_count = ew_bytes_u16(nt);
    identity->timestamp = ew_bytes_u32(nt);
    ew_bytes_skip(nt, 8); /* symbols of the old kind */
    uint16_t optional_bytes = ew_bytes_u16(nt);
    ew_bytes_skip(nt, 2);
    ew_bytes_sub(nt, optional_bytes, &optional);
    ret->sections = *nt;
    uint16_t magic = ew_bytes_u16(&optional);
    if (magic != MAGIC_32 && magic != MAGIC_64)
        return false;
    ew_bytes_seek(&optional, 56);
    identity->image_bytes = ew_bytes_u32(&optional);
    ew_bytes_seek(&optional, magic == MAGIC_64 ? 108 : 92);
    uint32_t directories = ew_bytes_u32(&optional);
    if (!ew_bytes_ok(nt) || !ew_bytes_ok(&optional))
        return false;
    ret->debug_rva = ret->debug_bytes = 0;
    if (directories > DIRECTORY_DEBUG) {
        ew_bytes_skip(&optional, (size_t)DIRECTORY_DEBUG * 8);
        ret->debug_rva = ew_bytes_u32(&optional);
        ret->debug_bytes = ew_bytes_u32(&optional);
    }
    return true;
}

/* Where an address of the loaded image is in the file; 0: in no section. */
static uint64_t offset_of(const struct headers *headers, uint32_t rva)
{
    struct ew_bytes at = headers->sections;
    for (uint32_t i = 0; i < headers->section_count && i < SECTIONS_MAX; i++) {
        struct ew_bytes section;
        ew_bytes_sub(&at, SECTION_BYTES, &section);
        ew_bytes_skip(&section, 12); /* name, size in memory */
        uint32_t address = ew_bytes_u32(&section), bytes = ew_bytes_u32(&section);
        uint32_t offset = ew_bytes_u32(&section);
        if (!ew_bytes_ok(&section))
            break;
        if (rva >= address && rva - address < bytes)
            return (uint64_t)offset + (rva - address);
    }
    return 0;
}

static bool read_codeview(const struct ew_image_source *source, uint32_t offset, uint32_t size,
                          struct ew_etl_image_identity *identity)
{
    uint8_t bytes[CODEVIEW_BYTES + sizeof identity->pdb];
    struct ew_bytes at;
    if (size > sizeof bytes)
        size = sizeof bytes;
    if (size <= CODEVIEW_BYTES || !read_exactly(source, offset, bytes, size))
        return false;
    ew_bytes_init(&at, bytes, size);
    if (!ew_bytes_accept(&at, "RSDS"))
        return false;
    const uint8_t *guid = ew_bytes_take(&at, sizeof identity->guid);
    identity->age = ew_bytes_u32(&at);
    struct ew_span name = ew_bytes_until(&at, '\0');
    if (guid == NULL || !ew_bytes_ok(&at) || name.len == 0)
        return false;
    memcpy(identity->guid, guid, sizeof identity->guid);
    (void)ew_span_copy(name, identity->pdb, sizeof identity->pdb);
    return true;
}

static bool read_debug(const struct ew_image_source *source, const struct headers *headers,
                       struct ew_etl_image_identity *identity)
{
    uint8_t bytes[DEBUG_ENTRIES_MAX * DEBUG_ENTRY_BYTES];
    size_t size = headers->debug_bytes < sizeof bytes ? headers->debug_bytes : sizeof bytes;
    uint64_t offset = headers->debug_rva != 0 ? offset_of(headers, headers->debug_rva) : 0;
    struct ew_bytes at;
    if (offset == 0 || !read_exactly(source, offset, bytes, size))
        return false;
    ew_bytes_init(&at, bytes, size);
    while (ew_bytes_left(&at) >= DEBUG_ENTRY_BYTES) {
        ew_bytes_skip(&at, 12);
        uint32_t type = ew_bytes_u32(&at), data_bytes = ew_bytes_u32(&at);
        ew_bytes_skip(&at, 4);
        uint32_t data_at = ew_bytes_u32(&at);
        if (type == DEBUG_CODEVIEW && read_codeview(source, data_at, data_bytes, identity))
            return true;
    }
    return false;
}

bool ew_etl_image_identity_read(const struct ew_image_source *source,
                                struct ew_etl_image_identity *ret_identity)
{
    uint8_t dos[DOS_BYTES], bytes[NT_BYTES];
    struct headers headers;
    struct ew_bytes nt;
    memset(ret_identity, 0, sizeof *ret_identity);
    if (!read_exactly(source, 0, dos, sizeof dos) || dos[0] != 'M' || dos[1] != 'Z')
        return false;
    int64_t got = source->read(source->ctx, ew_load_u32(dos + NT_AT), bytes, sizeof bytes);
    ew_bytes_init(&nt, bytes, got > 0 ? (size_t)got : 0);
    if (!read_headers(&nt, ret_identity, &headers))
        return false;
    ret_identity->has_pdb = read_debug(source, &headers, ret_identity);
    return true;
}

static int64_t read_file(void *ctx, uint64_t offset, void *bytes, size_t size)
{
    return ew_os_file_read(ctx, offset, bytes, size);
}

bool ew_etl_image_identity_open(const char *path, struct ew_etl_image_identity *ret_identity)
{
    struct ew_os_file *file;
    uint64_t bytes;
    int64_t os_code;
    if (ew_os_file_open(path, &file, &bytes, &os_code) != 0)
        return false;
    const struct ew_image_source source = {.ctx = file, .read = read_file};
    bool known = ew_etl_image_identity_read(&source, ret_identity);
    ew_os_file_close(file);
    return known;
}
