/* SPDX-License-Identifier: MIT */
/*
 * Reads the few types that the programs need from the kernel's BTF (5 to 6 MB, some 100,000 types)
 * in one pass.
 *
 * libbpf copies all of it twice and searches it once per type: 25 ms and 11 MB, most of what
 * starting up took. Here it is mapped where the kernel allows that (6.16), else read, and never
 * copied. Types have no index: every MARK_STEP-th one is marked, and the others are found by
 * stepping from the nearest mark.
 *
 * Every access is checked against the size of the data, although the kernel is trusted: damaged
 * data is EINVAL, and the caller then uses libbpf.
 */
#include "source/ebpf/kernel_btf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

enum {
    MARK_STEP = 64,
    DEPTH_MAX = 32, /* typedefs and nested anonymous members */
    KIND_FLOAT = 16,
    KIND_DECL_TAG = 17,
    KIND_TYPE_TAG = 18,
    KIND_ENUM64 = 19,
};

static uint32_t kind_of(const struct btf_type *type)
{
    return type->info >> 24 & 31; /* BTF_INFO_KIND of older headers has four bits */
}

/* The length of a type's record; 0: a kind that did not exist when this was written. */
static size_t record_size(const struct btf_type *type)
{
    static const struct {
        uint8_t fixed, per_member;
    } sizes[32] = {
        [BTF_KIND_INT] = {16, 0},        [BTF_KIND_PTR] = {12, 0},
        [BTF_KIND_ARRAY] = {24, 0},      [BTF_KIND_STRUCT] = {12, 12},
        [BTF_KIND_UNION] = {12, 12},     [BTF_KIND_ENUM] = {12, 8},
        [BTF_KIND_FWD] = {12, 0},        [BTF_KIND_TYPEDEF] = {12, 0},
        [BTF_KIND_VOLATILE] = {12, 0},   [BTF_KIND_CONST] = {12, 0},
        [BTF_KIND_RESTRICT] = {12, 0},   [BTF_KIND_FUNC] = {12, 0},
        [BTF_KIND_FUNC_PROTO] = {12, 8}, [BTF_KIND_VAR] = {16, 0},
        [BTF_KIND_DATASEC] = {12, 12},   [KIND_FLOAT] = {12, 0},
        [KIND_DECL_TAG] = {16, 0},       [KIND_TYPE_TAG] = {12, 0},
        [KIND_ENUM64] = {12, 12},
    };
    uint32_t kind = kind_of(type);
    return sizes[kind].fixed + (size_t)sizes[kind].per_member * BTF_INFO_VLEN(type->info);
}

static const struct btf_type *type_at(const struct ew_ebpf_btf *btf, size_t at)
{
    if (at + sizeof(struct btf_type) > btf->types_size)
        return NULL;
    const struct btf_type *type = (const struct btf_type *)(const void *)(btf->types + at);
    size_t size = record_size(type);
    return size != 0 && at + size <= btf->types_size ? type : NULL;
}

static const struct btf_type *type_by_id(const struct ew_ebpf_btf *btf, uint32_t id)
{
    if (id == 0 || id > btf->type_count)
        return NULL;
    size_t at = btf->marks[(id - 1) / MARK_STEP];
    for (uint32_t step = (id - 1) % MARK_STEP; step > 0; step--)
        at += record_size((const struct btf_type *)(const void *)(btf->types + at));
    return type_at(btf, at);
}

static const char *string_at(const struct ew_ebpf_btf *btf, uint32_t offset)
{
    return offset < btf->strings_size ? (const char *)btf->strings + offset : "";
}

/* ---------------------------------------------------------------------- indexing */

enum { BUCKETS = 256 };

/* Short names are followed by a zero byte and strings end with one: three bytes can always be read.
 */
static uint32_t bucket_of(const char *name)
{
    const unsigned char *bytes = (const unsigned char *)name;
    uint32_t hash = bytes[0];
    if (bytes[0] != 0)
        hash = hash * 7 + bytes[1] * 31u + (bytes[1] != 0 ? bytes[2] * 3u : 0);
    return hash % BUCKETS;
}

static int add_mark(struct ew_ebpf_btf *btf, uint32_t *size, size_t at)
{
    uint32_t index = btf->type_count / MARK_STEP;
    if (index == *size) {
        uint32_t larger = *size == 0 ? 2048 : *size * 2;
        uint32_t *marks = ew_realloc_array(btf->marks, larger, sizeof *marks);
        if (marks == NULL)
            return ENOMEM;
        btf->marks = marks;
        *size = larger;
    }
    btf->marks[index] = (uint32_t)at;
    return 0;
}

int ew_ebpf_btf_index(struct ew_ebpf_btf *btf, const void *data, size_t size,
                      struct ew_kernel_type *wanted, uint32_t wanted_count)
{
    struct btf_header header;
    memset(btf, 0, sizeof *btf);
    if (size < sizeof header)
        return EINVAL;
    memcpy(&header, data, sizeof header);
    if (header.magic != BTF_MAGIC || header.hdr_len < sizeof header || header.hdr_len > size ||
        header.type_len > UINT32_MAX / 2 || (header.hdr_len | header.type_off) % 4 != 0 ||
        (uint64_t)header.type_off + header.type_len > size - header.hdr_len ||
        (uint64_t)header.str_off + header.str_len > size - header.hdr_len)
        return EINVAL;
    btf->types = (const unsigned char *)data + header.hdr_len + header.type_off;
    btf->types_size = header.type_len;
    btf->strings = (const unsigned char *)data + header.hdr_len + header.str_off;
    btf->strings_size = header.str_len;
    if (btf->strings_size == 0 || btf->strings[btf->strings_size - 1] != 0)
        return EINVAL;

    uint16_t first[BUCKETS] = {0}; /* index in `wanted` + 1 */
    for (uint32_t i = 0; i < wanted_count; i++) {
        wanted[i].count = 0;
        wanted[i].next = first[bucket_of(wanted[i].name)];
        first[bucket_of(wanted[i].name)] = (uint16_t)(i + 1);
    }
    uint32_t mark_size = 0;
    for (size_t at = 0; at < btf->types_size;) {
        const struct btf_type *type = type_at(btf, at);
        if (type == NULL)
            return EINVAL;
        if (btf->type_count % MARK_STEP == 0 && add_mark(btf, &mark_size, at) != 0)
            return ENOMEM;
        uint32_t id = ++btf->type_count, kind = kind_of(type);
        at += record_size(type);
        if (kind != BTF_KIND_STRUCT && kind != BTF_KIND_FUNC && kind != BTF_KIND_TYPEDEF)
            continue;
        const char *name = string_at(btf, type->name_off);
        for (uint32_t i = first[bucket_of(name)]; i != 0; i = wanted[i - 1].next) {
            struct ew_kernel_type *entry = &wanted[i - 1];
            if (entry->kind != kind || strcmp(entry->name, name) != 0)
                continue;
            if (entry->count < EW_KERNEL_TYPE_IDS)
                entry->ids[entry->count] = id;
            entry->count++;
        }
    }
    return 0;
}

int ew_ebpf_btf_open(struct ew_ebpf_btf *btf, const char *path, struct ew_kernel_type *wanted,
                     uint32_t wanted_count)
{
    struct stat status;
    memset(btf, 0, sizeof *btf);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || status.st_size <= 0) {
        int error = fd < 0 ? errno : EINVAL;
        if (fd >= 0)
            (void)close(fd);
        return error;
    }
    size_t size = (size_t)status.st_size, got = 0;
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        while (data != MAP_FAILED && got < size) {
            ssize_t count = read(fd, (char *)data + got, size - got);
            if (count <= 0 && !(count < 0 && errno == EINTR))
                break;
            got += count > 0 ? (size_t)count : 0;
        }
    } else {
        got = size;
    }
    (void)close(fd);
    if (data == MAP_FAILED)
        return ENOMEM;
    int error = got == size ? ew_ebpf_btf_index(btf, data, size, wanted, wanted_count) : EIO;
    btf->data = data;
    btf->size = size;
    if (error != 0)
        ew_ebpf_btf_close(btf);
    return error;
}

void ew_ebpf_btf_close(struct ew_ebpf_btf *btf)
{
    if (btf->data != NULL)
        (void)munmap(btf->data, btf->size);
    ew_free(btf->marks);
    memset(btf, 0, sizeof *btf);
}

/* -------------------------------------------------------------------------- fields */

/* Without typedefs and qualifiers; NULL: void, or not valid. */
static const struct btf_type *bare(const struct ew_ebpf_btf *btf, uint32_t id)
{
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        const struct btf_type *type = type_by_id(btf, id);
        if (type == NULL)
            return NULL;
        switch (kind_of(type)) {
        case BTF_KIND_TYPEDEF:
        case BTF_KIND_VOLATILE:
        case BTF_KIND_CONST:
        case BTF_KIND_RESTRICT:
        case KIND_TYPE_TAG:
            id = type->type;
            break;
        default:
            return type;
        }
    }
    return NULL;
}

static const struct btf_array *array_of(const struct btf_type *type)
{
    return (const struct btf_array *)(const void *)(type + 1);
}

static bool is_composite(const struct btf_type *type)
{
    return kind_of(type) == BTF_KIND_STRUCT || kind_of(type) == BTF_KIND_UNION;
}

/* In bytes; 0: unknown. */
static uint64_t size_of(const struct ew_ebpf_btf *btf, const struct btf_type *type)
{
    uint64_t count = 1;
    for (int depth = 0; type != NULL && depth < DEPTH_MAX; depth++) {
        switch (kind_of(type)) {
        case BTF_KIND_INT:
        case BTF_KIND_STRUCT:
        case BTF_KIND_UNION:
        case BTF_KIND_ENUM:
        case KIND_ENUM64:
        case KIND_FLOAT:
            return count * type->size;
        case BTF_KIND_PTR:
            return count * sizeof(void *);
        case BTF_KIND_ARRAY:
            count *= array_of(type)->nelems;
            type = bare(btf, array_of(type)->type);
            break;
        default:
            return 0;
        }
    }
    return 0;
}

/* Does the kernel's field have the shape that the program expects? */
static bool shape_matches(const struct ew_ebpf_btf *btf, const struct btf_type *type,
                          const char *shape)
{
    for (; *shape == 'a'; shape++) {
        if (type == NULL || kind_of(type) != BTF_KIND_ARRAY)
            return false;
        type = bare(btf, array_of(type)->type);
    }
    if (type == NULL)
        return false;
    switch (*shape) {
    case 's':
        return is_composite(type);
    case 'p':
        return kind_of(type) == BTF_KIND_PTR;
    default:
        return kind_of(type) == BTF_KIND_INT;
    }
}

struct place {
    uint64_t bit_offset;
    uint32_t bit_size; /* of a bit field, else 0 */
    const struct btf_type *type;
    bool last; /* member of its struct */
};

/* Looks in anonymous members too. */
static bool find_member(const struct ew_ebpf_btf *btf, const struct btf_type *type,
                        const char *name, size_t length, int depth, struct place *place)
{
    const struct btf_member *members = (const struct btf_member *)(const void *)(type + 1);
    uint32_t count = BTF_INFO_VLEN(type->info);
    if (depth == DEPTH_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        bool packed = BTF_INFO_KFLAG(type->info);
        uint32_t offset = members[i].offset;
        uint32_t bit_offset = packed ? BTF_MEMBER_BIT_OFFSET(offset) : offset;
        const char *member = string_at(btf, members[i].name_off);
        const struct btf_type *inner = bare(btf, members[i].type);
        if (member[0] == '\0' && inner != NULL && is_composite(inner)) {
            struct place below = {.bit_offset = place->bit_offset + bit_offset};
            if (find_member(btf, inner, name, length, depth + 1, &below)) {
                below.last = below.last && i + 1 == count;
                *place = below;
                return true;
            }
        } else if (strncmp(member, name, length) == 0 && member[length] == '\0') {
            place->bit_offset += bit_offset;
            place->bit_size = packed ? BTF_MEMBER_BITFIELD_SIZE(offset) : 0;
            place->type = inner;
            place->last = i + 1 == count;
            return inner != NULL;
        }
    }
    return false;
}

static bool enter_array(const struct ew_ebpf_btf *btf, struct place *place, uint32_t index)
{
    if (kind_of(place->type) != BTF_KIND_ARRAY)
        return false;
    const struct btf_array *array = array_of(place->type);
    bool flexible = array->nelems == 0 && place->last;
    if (!flexible && index >= array->nelems)
        return false;
    place->type = bare(btf, array->type);
    uint64_t size = size_of(btf, place->type);
    place->bit_offset += index * size * 8;
    place->last = false;
    return place->type != NULL && size != 0;
}

static bool walk(const struct ew_ebpf_btf *btf, const char *path, struct place *place)
{
    while (*path != '\0') {
        if (*path == '[') {
            uint32_t index = 0;
            for (path++; *path >= '0' && *path <= '9'; path++)
                index = index * 10 + (uint32_t)(*path - '0');
            path++; /* ] */
            if (!enter_array(btf, place, index))
                return false;
            continue;
        }
        const char *shape = path + 1, *name = strchr(path, ':') + 1;
        size_t length = strcspn(name, ".[");
        if (!is_composite(place->type) || !find_member(btf, place->type, name, length, 0, place) ||
            !shape_matches(btf, place->type, shape))
            return false;
        path = name + length;
    }
    return true;
}

/* The smallest aligned integer that holds the bits. */
static bool place_bits(const struct place *place, struct ew_kernel_field *ret_field)
{
    uint64_t size = place->type->size;
    if (size == 0 || size > 8)
        return false;
    uint64_t offset = place->bit_offset / 8 / size * size;
    while (place->bit_offset + place->bit_size - offset * 8 > size * 8) {
        if (size >= 8)
            return false;
        size *= 2;
        offset = place->bit_offset / 8 / size * size;
    }
    uint64_t first = place->bit_offset - offset * 8;
    ret_field->offset = offset;
    ret_field->size = size;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    ret_field->left_shift = 64 - (first + place->bit_size);
#else
    ret_field->left_shift = (8 - size) * 8 + first;
#endif
    ret_field->right_shift = 64 - place->bit_size;
    ret_field->bits = true;
    return true;
}

bool ew_ebpf_btf_field(const struct ew_ebpf_btf *btf, uint32_t type_id, const char *path,
                       struct ew_kernel_field *ret_field)
{
    struct place place = {.type = bare(btf, type_id)};
    memset(ret_field, 0, sizeof *ret_field);
    if (place.type == NULL || !walk(btf, path, &place))
        return false;
    ret_field->is_signed =
        kind_of(place.type) == BTF_KIND_INT &&
        (BTF_INT_ENCODING(*(const uint32_t *)(const void *)(place.type + 1)) & BTF_INT_SIGNED) != 0;
    if (place.bit_size != 0)
        return place_bits(&place, ret_field);
    ret_field->offset = place.bit_offset / 8;
    ret_field->size = size_of(btf, place.type);
    ret_field->left_shift = ret_field->right_shift =
        ret_field->size <= 8 ? 64 - ret_field->size * 8 : 0;
    return true;
}
