/* SPDX-License-Identifier: MIT */
/*
 * Two ways to find a function without symbols.
 *
 * The C API is a table of pointers. The only exported function, OrtGetApiBase, returns the address
 * of a structure that begins with the address of GetApi, and GetApi returns the address of the
 * table. Both are read from the instructions that form these addresses; the pointers from the
 * relocations. The order of the table is part of ONNX Runtime's binary interface.
 *
 * The C++ methods write events with constant names into ORT's own profile ("model_run",
 * "session_initialization"). The function that refers to such a string is the method; where it
 * begins is in the table for unwinding. All ways to run a session (Run, RunWithBinding, RunAsync,
 * C++, Python) end in the first one, so that one probe sees each inference once.
 */
#include "probe/onnx_elf.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/bytes.h"

enum {
    SEGMENTS_MAX = 64,
    TEXTS_MAX = 8, /* occurrences of the two strings */
    MACHINE_X86 = 62,
    MACHINE_ARM64 = 183,
    LOAD = 1,
    DYNAMIC = 2,
    EH_FRAME_HDR = 0x6474e550,
    EXECUTABLE = 1,
    CHUNK = 1 << 20,
    OVERLAP = 32, /* bytes of a chunk that are read again with the next one */
    SECTION_MAX = 256 << 20,
    CODE_MAX = 512,
    API_CREATE = 7, /* positions in struct OrtApi */
    API_CREATE_ARRAY = 8,
    API_RUN = 9,
    API_CHECKED = 24, /* members that must be functions */
    SYMBOL_CHAIN_MAX = 4096,
};

struct segment {
    uint32_t type, flags;
    uint64_t offset, address, size; /* size in the file */
};

struct image {
    const struct ew_onnx_file *file;
    uint32_t machine;
    struct segment segments[SEGMENTS_MAX];
    uint32_t segment_count;
    uint64_t symbols, strings, strings_size, hash, rela, rela_size; /* addresses; 0: none */
    uint8_t *relocations;                                           /* entries of 24 bytes */
};

/* ----------------------------------------------------------------------- reading */

static bool read_at(const struct image *image, uint64_t offset, void *bytes, size_t size)
{
    return offset < INT64_MAX &&
           image->file->read(image->file->ctx, offset, bytes, size) == (int64_t)size;
}

static const struct segment *segment_of(const struct image *image, uint64_t address)
{
    for (uint32_t i = 0; i < image->segment_count; i++) {
        const struct segment *segment = &image->segments[i];
        if (segment->type == LOAD && address >= segment->address &&
            address - segment->address < segment->size)
            return segment;
    }
    return NULL;
}

static uint64_t offset_of(const struct image *image, uint64_t address)
{
    const struct segment *segment = segment_of(image, address);
    return segment == NULL ? 0 : address - segment->address + segment->offset;
}

static bool is_code(const struct image *image, uint64_t address)
{
    const struct segment *segment = segment_of(image, address);
    return segment != NULL && (segment->flags & EXECUTABLE) != 0;
}

/* Reads as much as the segment has; returns the number of bytes. */
static size_t read_memory(const struct image *image, uint64_t address, void *bytes, size_t size)
{
    const struct segment *segment = segment_of(image, address);
    if (segment == NULL)
        return 0;
    uint64_t left = segment->size - (address - segment->address);
    size = left < size ? (size_t)left : size;
    return read_at(image, offset_of(image, address), bytes, size) ? size : 0;
}

static bool read_u32(const struct image *image, uint64_t address, uint32_t *ret_value)
{
    uint8_t bytes[4];
    if (read_memory(image, address, bytes, sizeof bytes) != sizeof bytes)
        return false;
    *ret_value = ew_load_u32(bytes);
    return true;
}

/* The whole of a table; NULL: it is not there or too large. */
static uint8_t *read_table(const struct image *image, uint64_t address, uint64_t size)
{
    uint8_t *bytes = size == 0 || size > SECTION_MAX ? NULL : ew_calloc(1, (size_t)size);
    if (bytes != NULL && read_memory(image, address, bytes, (size_t)size) != size) {
        ew_free(bytes);
        bytes = NULL;
    }
    return bytes;
}

/* ----------------------------------------------------------------------- opening */

static int read_segments(struct image *image)
{
    uint8_t header[64], entry[56];
    if (!read_at(image, 0, header, sizeof header) || memcmp(header, "\177ELF\2\1", 6) != 0)
        return ETWATCH_EFORMAT;
    image->machine = ew_load_u16(header + 18);
    uint64_t at = ew_load_u64(header + 32);
    uint32_t size = ew_load_u16(header + 54), count = ew_load_u16(header + 56);
    if (size < sizeof entry || count == 0 || count > SEGMENTS_MAX)
        return ETWATCH_EFORMAT;
    for (uint32_t i = 0; i < count; i++) {
        if (at > INT64_MAX || !read_at(image, at + (uint64_t)i * size, entry, sizeof entry))
            return ETWATCH_EFORMAT;
        struct segment segment = {
            .type = ew_load_u32(entry),
            .flags = ew_load_u32(entry + 4),
            .offset = ew_load_u64(entry + 8),
            .address = ew_load_u64(entry + 16),
            .size = ew_load_u64(entry + 32),
        };
        /* No sum of two of them may overflow. */
        if (segment.offset >> 62 == 0 && segment.address >> 62 == 0 && segment.size >> 62 == 0)
            image->segments[image->segment_count++] = segment;
    }
    return 0;
}

static void read_dynamic(struct image *image)
{
    enum { ENTRIES_MAX = 256 };
    uint8_t bytes[ENTRIES_MAX * 16];
    for (uint32_t i = 0; i < image->segment_count; i++) {
        const struct segment *segment = &image->segments[i];
        if (segment->type != DYNAMIC)
            continue;
        size_t size =
            segment->size < sizeof bytes ? (size_t)segment->size & ~(size_t)15 : sizeof bytes;
        if (!read_at(image, segment->offset, bytes, size))
            return;
        for (size_t at = 0; at < size && ew_load_u64(bytes + at) != 0; at += 16) {
            uint64_t value = ew_load_u64(bytes + at + 8);
            switch (ew_load_u64(bytes + at)) {
            case 5: /* DT_STRTAB */
                image->strings = value;
                break;
            case 6: /* DT_SYMTAB */
                image->symbols = value;
                break;
            case 7: /* DT_RELA */
                image->rela = value;
                break;
            case 8: /* DT_RELASZ */
                image->rela_size = value;
                break;
            case 10: /* DT_STRSZ */
                image->strings_size = value;
                break;
            case 0x6ffffef5: /* DT_GNU_HASH */
                image->hash = value;
                break;
            default:
                break;
            }
        }
    }
}

static int open_image(struct image *image, const struct ew_onnx_file *file)
{
    memset(image, 0, sizeof *image);
    image->file = file;
    int rc = read_segments(image);
    if (rc < 0 || (image->machine != MACHINE_X86 && image->machine != MACHINE_ARM64))
        return ETWATCH_EFORMAT;
    read_dynamic(image);
    return 0;
}

/* -------------------------------------------------------------------- the C API */

static bool name_is(const struct image *image, uint64_t offset, const char *name)
{
    char text[64];
    size_t size = strlen(name) + 1;
    return offset < image->strings_size && size <= sizeof text &&
           read_memory(image, image->strings + offset, text, size) == size &&
           memcmp(text, name, size) == 0;
}

/* The address of an exported function, by the hash table of the dynamic linker; 0: none. */
static uint64_t find_symbol(const struct image *image, const char *name)
{
    uint32_t hash = 5381, count, first, bloom, at = 0, value = 0;
    uint8_t symbol[24];
    for (const char *c = name; *c != '\0'; c++)
        hash = hash * 33 + (unsigned char)*c;
    if (image->hash == 0 || image->symbols == 0 || !read_u32(image, image->hash, &count) ||
        !read_u32(image, image->hash + 4, &first) || !read_u32(image, image->hash + 8, &bloom) ||
        count == 0)
        return 0;
    uint64_t buckets = image->hash + 16 + (uint64_t)bloom * 8;
    uint64_t chains = buckets + (uint64_t)count * 4;
    if (!read_u32(image, buckets + (uint64_t)(hash % count) * 4, &at) || at < first)
        return 0;
    for (uint32_t i = 0; i < SYMBOL_CHAIN_MAX; i++, at++) {
        if (!read_u32(image, chains + (uint64_t)(at - first) * 4, &value))
            return 0;
        if ((value | 1) == (hash | 1) &&
            read_memory(image, image->symbols + (uint64_t)at * 24, symbol, sizeof symbol) ==
                sizeof symbol &&
            name_is(image, ew_load_u32(symbol), name))
            return ew_load_u64(symbol + 8);
        if ((value & 1) != 0)
            return 0;
    }
    return 0;
}

/* What a pointer in the file holds when the library has been loaded at address 0. */
static uint64_t pointer_at(const struct image *image, uint64_t address)
{
    uint8_t bytes[8];
    for (uint64_t at = 0; image->relocations != NULL && at + 24 <= image->rela_size; at += 24) {
        const uint8_t *entry = image->relocations + at;
        uint32_t type = ew_load_u32(entry + 8);
        if (ew_load_u64(entry) == address && (type == 8 || type == 1027)) /* relative */
            return ew_load_u64(entry + 16);
    }
    /* Packed relocations keep the value in its place. */
    return read_memory(image, address, bytes, sizeof bytes) == sizeof bytes ? ew_load_u64(bytes)
                                                                            : 0;
}

/* The address that the instruction at p (size bytes are readable) forms, with the pages that
 * earlier ones loaded (arm64); 0: none. */
static uint64_t formed_address(uint32_t machine, const uint8_t *p, size_t size, uint64_t address,
                               uint64_t pages[32])
{
    if (machine == MACHINE_X86) {
        bool lea = size >= 7 && (p[0] & 0xfb) == 0x48 && p[1] == 0x8d && (p[2] & 0xc7) == 5;
        return lea ? address + 7 + (uint64_t)(int64_t)(int32_t)ew_load_u32(p + 3) : 0;
    }
    if (size < 4 || (address & 3) != 0)
        return 0;
    uint32_t word = ew_load_u32(p), to = word & 31, from = word >> 5 & 31;
    if ((word & 0x9f000000) == 0x90000000) { /* adrp */
        uint64_t high = word >> 5 & 0x7ffff, low = word >> 29 & 3;
        int64_t count = (int64_t)((high << 2 | low) << 43) >> 43;
        pages[to] = ((address & ~UINT64_C(4095)) + (uint64_t)count * 4096) | 1; /* known */
        return 0;
    }
    if ((word & 0xffc00000) == 0x91000000 && pages[from] != 0) /* add */
        return (pages[from] & ~UINT64_C(1)) + (word >> 10 & 4095);
    return 0;
}

static bool is_table(const struct image *image, uint64_t address)
{
    if (segment_of(image, address) == NULL || is_code(image, address))
        return false;
    for (uint32_t i = 0; i < API_CHECKED; i++)
        if (!is_code(image, pointer_at(image, address + (uint64_t)i * 8)))
            return false;
    return true;
}

/* The first address that the function forms and that is accepted; 0: none. */
static uint64_t address_in(const struct image *image, uint64_t function,
                           bool (*accept)(const struct image *image, uint64_t address))
{
    uint8_t code[CODE_MAX];
    uint64_t pages[32] = {0};
    size_t size = is_code(image, function) ? read_memory(image, function, code, sizeof code) : 0;
    for (size_t i = 0; i < size; i++) {
        uint64_t found = formed_address(image->machine, code + i, size - i, function + i, pages);
        if (found != 0 && accept(image, found))
            return found;
    }
    return 0;
}

static bool is_base(const struct image *image, uint64_t address)
{
    return !is_code(image, address) && is_code(image, pointer_at(image, address));
}

static void find_api(const struct image *image, uint64_t ret_offsets[EW_ONNX_FUNCTIONS])
{
    uint64_t base = address_in(image, find_symbol(image, "OrtGetApiBase"), is_base);
    uint64_t table = base == 0 ? 0 : address_in(image, pointer_at(image, base), is_table);
    if (table == 0)
        return;
    ret_offsets[EW_ONNX_CREATE] = offset_of(image, pointer_at(image, table + API_CREATE * 8));
    ret_offsets[EW_ONNX_CREATE_ARRAY] =
        offset_of(image, pointer_at(image, table + API_CREATE_ARRAY * 8));
    ret_offsets[EW_ONNX_API_RUN] = offset_of(image, pointer_at(image, table + API_RUN * 8));
}

int ew_onnx_find_api(const struct ew_onnx_file *file, uint64_t ret_offsets[EW_ONNX_FUNCTIONS])
{
    struct image image;
    int rc = open_image(&image, file);
    if (rc < 0)
        return rc;
    image.relocations = read_table(&image, image.rela, image.rela_size);
    find_api(&image, ret_offsets);
    ew_free(image.relocations);
    return 0;
}

/* ------------------------------------------------------------------- the methods */

/* A string, and the function that refers to it. */
struct text {
    uint64_t address, function;
    enum ew_onnx_function which;
};

struct search {
    struct image image;
    uint8_t *chunk;
    struct text texts[TEXTS_MAX];
    uint32_t text_count;
    uint8_t *frames; /* entries of 8 bytes: where a function begins */
    uint64_t frames_at;
    uint32_t frame_count;
};

static void find_text(struct search *search, const uint8_t *bytes, size_t size, uint64_t address,
                      const char *name, enum ew_onnx_function which)
{
    size_t len = strlen(name) + 1; /* with its end, */
    for (size_t i = 1; i + len <= size; i++) {
        const uint8_t *at = memchr(bytes + i, name[0], size - i - len + 1);
        if (at == NULL)
            return;
        i = (size_t)(at - bytes);
        /* and after the end of another one */
        if (memcmp(at, name, len) == 0 && at[-1] == '\0' && search->text_count < TEXTS_MAX)
            search->texts[search->text_count++] =
                (struct text){.address = address + i, .which = which};
    }
}

static bool frames_open(struct search *search)
{
    const struct image *image = &search->image;
    for (uint32_t i = 0; i < image->segment_count; i++) {
        const struct segment *segment = &image->segments[i];
        uint8_t head[12];
        if (segment->type != EH_FRAME_HDR || !read_at(image, segment->offset, head, sizeof head))
            continue;
        /* Version 1; the usual encodings: 4 bytes, relative to this header. */
        uint64_t size = (uint64_t)ew_load_u32(head + 8) * 8;
        if (head[0] != 1 || head[1] != 0x1b || head[2] != 3 || head[3] != 0x3b ||
            size + 12 > segment->size)
            return false;
        search->frames = read_table(image, segment->address + 12, size);
        search->frames_at = segment->address;
        search->frame_count = search->frames == NULL ? 0 : (uint32_t)(size / 8);
        return search->frames != NULL;
    }
    return false;
}

static uint64_t frame_start(const struct search *search, uint32_t i)
{
    return search->frames_at +
           (uint64_t)(int64_t)(int32_t)ew_load_u32(search->frames + (size_t)i * 8);
}

static uint64_t function_of(const struct search *search, uint64_t address)
{
    uint32_t low = 0, high = search->frame_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (frame_start(search, middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? 0 : frame_start(search, low - 1);
}

static void note_reference(struct search *search, uint64_t target, uint64_t address)
{
    for (uint32_t i = 0; i < search->text_count; i++)
        if (search->texts[i].address == target) {
            uint64_t function = function_of(search, address), *known = &search->texts[i].function;
            /* Two functions: which is the method is unknown. */
            *known = *known == 0 || *known == function ? function : UINT64_MAX;
        }
}

/* memchr for the second byte of the instruction is much faster than a look at each byte. */
static void find_references_x86(struct search *search, const uint8_t *code, size_t size,
                                uint64_t address)
{
    uint64_t unused[32];
    for (size_t i = 1; i + 6 <= size; i++) {
        const uint8_t *at = memchr(code + i, 0x8d, size - i - 5);
        if (at == NULL)
            return;
        i = (size_t)(at - code);
        if ((at[-1] & 0xfb) != 0x48 || (at[1] & 0xc7) != 5)
            continue;
        uint64_t formed = formed_address(MACHINE_X86, at - 1, 7, address + i - 1, unused);
        if (formed != 0)
            note_reference(search, formed, address + i - 1);
    }
}

static void find_references_arm64(struct search *search, const uint8_t *code, size_t size,
                                  uint64_t address)
{
    uint64_t pages[32] = {0};
    for (size_t i = 0; i + 4 <= size; i += 4) {
        uint64_t formed = formed_address(MACHINE_ARM64, code + i, 4, address + i, pages);
        if (formed != 0)
            note_reference(search, formed, address + i);
    }
}

/* Calls `use` with every segment of code, or of data, in pieces that overlap a little. */
static void for_each_chunk(struct search *search, bool code,
                           void (*use)(struct search *search, const uint8_t *bytes, size_t size,
                                       uint64_t address))
{
    const struct image *image = &search->image;
    for (uint32_t i = 0; i < image->segment_count; i++) {
        const struct segment *segment = &image->segments[i];
        bool has_code = (segment->flags & EXECUTABLE) != 0;
        if (segment->type != LOAD || has_code != code || segment->size > UINT32_MAX)
            continue;
        for (uint64_t at = 0; at < segment->size; at += CHUNK - OVERLAP) {
            uint64_t left = segment->size - at;
            size_t size = left < CHUNK ? (size_t)left : CHUNK;
            if (!read_at(image, segment->offset + at, search->chunk, size))
                break;
            use(search, search->chunk, size, segment->address + at);
        }
    }
}

static void use_data(struct search *search, const uint8_t *bytes, size_t size, uint64_t address)
{
    find_text(search, bytes, size, address, "model_run", EW_ONNX_RUN);
    find_text(search, bytes, size, address, "session_initialization", EW_ONNX_INIT);
}

static void use_code(struct search *search, const uint8_t *bytes, size_t size, uint64_t address)
{
    if (search->image.machine == MACHINE_X86)
        find_references_x86(search, bytes, size, address);
    else
        find_references_arm64(search, bytes, size, address);
}

static void keep_methods(const struct search *search, uint64_t ret_offsets[EW_ONNX_FUNCTIONS])
{
    bool several[EW_ONNX_FUNCTIONS] = {false};
    for (uint32_t i = 0; i < search->text_count; i++) {
        const struct text *text = &search->texts[i];
        uint64_t *offset = &ret_offsets[text->which];
        if (text->function == 0)
            continue;
        uint64_t found =
            text->function == UINT64_MAX ? 0 : offset_of(&search->image, text->function);
        several[text->which] =
            several[text->which] || found == 0 || (*offset != 0 && *offset != found);
        *offset = found;
    }
    for (uint32_t i = 0; i < EW_ONNX_FUNCTIONS; i++)
        if (several[i])
            ret_offsets[i] = 0;
}

int ew_onnx_find_methods(const struct ew_onnx_file *file, uint64_t ret_offsets[EW_ONNX_FUNCTIONS])
{
    struct search *search = ew_calloc(1, sizeof *search);
    int rc = search == NULL ? ETWATCH_ENOMEM : open_image(&search->image, file);
    if (rc == 0) {
        search->chunk = ew_calloc(1, CHUNK);
        rc = search->chunk == NULL ? ETWATCH_ENOMEM : 0;
    }
    if (rc == 0 && frames_open(search)) {
        for_each_chunk(search, false, use_data);
        if (search->text_count > 0)
            for_each_chunk(search, true, use_code);
        keep_methods(search, ret_offsets);
    }
    if (search != NULL) {
        ew_free(search->chunk);
        ew_free(search->frames);
    }
    ew_free(search);
    return rc;
}
