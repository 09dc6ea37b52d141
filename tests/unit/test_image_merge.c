/* SPDX-License-Identifier: MIT */
/*
 * Identities of program files in recordings: read from made files, added to made recordings, and
 * compared byte for byte with those in recordings that Windows itself merged.
 */
#include <stdio.h>

#include "etl_reader_kit.h"
#include "source/etl/image_merge.c"
#include "system.h"

/* ---------------------------------------------------------------- program files */

enum { PE_BYTES = 1024, NT_OFFSET = 128, SECTION_RVA = 0x2000, SECTION_OFFSET = 512 };

struct program {
    uint8_t bytes[PE_BYTES];
    size_t size;
};

/* With one section, in it the debug directory with an entry of another type and one of CodeView. */
static void make_program(struct program *p, bool wide, uint32_t timestamp, const char *pdb)
{
    uint8_t *nt = p->bytes + NT_OFFSET, *optional = nt + 24;
    uint32_t optional_bytes = wide ? 240 : 224;
    uint8_t *directory = optional + (wide ? 112 : 96) + 6 * 8;
    uint8_t *section = optional + optional_bytes, *debug = p->bytes + SECTION_OFFSET + 16;
    uint8_t *view = debug + 2 * 28;
    memset(p, 0, sizeof *p);
    p->size = PE_BYTES;
    memcpy(p->bytes, "MZ", 2);
    kit_set(p->bytes + 0x3C, 4, NT_OFFSET);
    memcpy(nt, "PE", 2);
    kit_set(nt + 6, 2, 1); /* sections */
    kit_set(nt + 8, 4, timestamp);
    kit_set(nt + 20, 2, optional_bytes);
    kit_set(optional, 2, wide ? 0x20B : 0x10B);
    kit_set(optional + 56, 4, 0x9000); /* SizeOfImage */
    kit_set(optional + (wide ? 108 : 92), 4, 16);
    kit_set(directory, 4, SECTION_RVA + 16);
    kit_set(directory + 4, 4, 2 * 28);
    kit_set(section + 8, 4, 512);
    kit_set(section + 12, 4, SECTION_RVA);
    kit_set(section + 16, 4, 512);
    kit_set(section + 20, 4, SECTION_OFFSET);
    kit_set(debug + 12, 4, 13); /* POGO */
    kit_set(debug + 28 + 12, 4, 2);
    kit_set(debug + 28 + 16, 4, (uint32_t)(24 + strlen(pdb) + 1));
    kit_set(debug + 28 + 24, 4, (uint32_t)(view - p->bytes));
    memcpy(view, "RSDS0123456789abcdef", 20);
    kit_set(view + 20, 4, 3);
    memcpy(view + 24, pdb, strlen(pdb) + 1);
}

static int64_t read_program(void *ctx, uint64_t offset, void *bytes, size_t size)
{
    const struct program *p = ctx;
    if (offset >= p->size)
        return 0;
    if (size > p->size - offset)
        size = p->size - (size_t)offset;
    memcpy(bytes, p->bytes + offset, size);
    return (int64_t)size;
}

static bool identify(struct program *p, struct ew_etl_image_identity *identity)
{
    const struct ew_image_source source = {.ctx = p, .read = read_program};
    return ew_etl_image_identity_read(&source, identity);
}

TEST(the_identity_of_a_program_file_is_read)
{
    for (int wide = 0; wide < 2; wide++) {
        static struct program p;
        struct ew_etl_image_identity identity;
        test_row(wide ? "64 bits" : "32 bits");
        make_program(&p, wide != 0, 0x12345678, "C:\\build\\app.pdb");
        CHECK(identify(&p, &identity));
        CHECK_EQ_UINT(identity.image_bytes, 0x9000);
        CHECK_EQ_UINT(identity.timestamp, 0x12345678);
        CHECK(identity.has_pdb);
        CHECK_EQ_MEM(identity.guid, "0123456789abcdef", 16);
        CHECK_EQ_UINT(identity.age, 3);
        CHECK_EQ_STR(identity.pdb, "C:\\build\\app.pdb");
        /* No debug directory: the rest is known. */
        kit_set(p.bytes + NT_OFFSET + 24 + (wide ? 108 : 92), 4, 6);
        CHECK(identify(&p, &identity));
        CHECK(!identity.has_pdb);
        CHECK_EQ_UINT(identity.timestamp, 0x12345678);
    }
}

/* With the sanitizers this also finds reads beyond the file. */
TEST(a_damaged_program_file_is_no_program_file_or_has_no_symbols)
{
    static struct program whole, p;
    struct ew_etl_image_identity identity;
    make_program(&whole, true, 1, "app.pdb");
    for (size_t size = 0; size < PE_BYTES; size++) {
        p = whole;
        p.size = size;
        bool known = identify(&p, &identity);
        CHECK(!known || size >= NT_OFFSET + 24 + 112);
        CHECK(!known || !identity.has_pdb || strcmp(identity.pdb, "app.pdb") == 0);
    }
    for (size_t at = 0; at < PE_BYTES; at++) {
        for (unsigned value = 0; value < 256; value += 85) {
            p = whole;
            p.bytes[at] = (uint8_t)value;
            (void)identify(&p, &identity);
            CHECK(memchr(identity.pdb, '\0', sizeof identity.pdb) != NULL);
        }
    }
}

/* ------------------------------------------------------------------- recordings */

enum { IMAGES = 60, BUFFER = 4096, CPUS = 2, TID = 77, PID = 4242, OTHER_EVENTS = 30 };

static bool made_identity(void *ctx, const char *path, struct ew_etl_image_identity *ret)
{
    unsigned *calls = ctx;
    unsigned number;
    (*calls)++;
    if (sscanf(path, "\\Device\\X\\lib%u.dll", &number) != 1 || number % 3 == 0)
        return false;
    memset(ret, 0, sizeof *ret);
    ret->image_bytes = number % 3 == 1 ? 0x1000 + number : 0x7777; /* of 2, 5, …: another file */
    ret->timestamp = 1000 + number;
    ret->has_pdb = number != 4;
    memset(ret->guid, (int)number, sizeof ret->guid);
    ret->age = number;
    (void)snprintf(ret->pdb, sizeof ret->pdb, "lib%u.pdb", number);
    return true;
}

/* Other events, and each library twice, as when it is loaded into two processes. */
static void make_recording(struct etl_memory *memory)
{
    struct ew_etl_writer_config config = {.buffer_bytes = BUFFER, .cpu_count = CPUS};
    struct ew_etl_writer *writer = kit_writer(memory, config);
    uint64_t raw = KIT_START_RAW;
    for (uint32_t i = 0; i < IMAGES * 2; i++) {
        static struct etl_payload payload;
        char path[64];
        (void)snprintf(path, sizeof path, "\\Device\\X\\lib%u.dll", i % IMAGES);
        struct etl_image image = {.base = 0x7FF600000000 + i * 0x10000u,
                                  .size = 0x1000 + i % IMAGES,
                                  .pid = PID,
                                  .path = path};
        for (uint32_t k = 0; k < OTHER_EVENTS; k++)
            kit_put(writer, (uint16_t)(k % CPUS), ++raw, i * OTHER_EVENTS + k);
        etl_clear(&payload);
        etl_image(&payload, 2, 8, &image);
        struct ew_etl_event event = {.header_type = 2,
                                     .group = 0x14,
                                     .opcode = 3,
                                     .version = 2,
                                     .cpu = (uint16_t)(i % CPUS),
                                     .t_raw = ++raw,
                                     .pid = 4,
                                     .tid = TID,
                                     .payload = payload.bytes,
                                     .payload_size = payload.size};
        CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    }
    kit_finish(writer, raw + 1);
}

static void save(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static struct seen_list load(const char *path)
{
    struct ew_etl_options options = {.workers = 1};
    struct ew_etl_reader *reader = NULL;
    struct ew_error error = {0};
    CHECK_EQ_INT(ew_etl_open(&path, 1, &options, &reader, &error), 0);
    struct seen_list list = kit_drain(reader);
    ew_etl_close(reader);
    return list;
}

static bool is_added(const struct seen *s)
{
    return s->kind == EW_RECORD_CLASSIC && (s->opcode == OPCODE_ID || s->opcode == OPCODE_RSDS);
}

static int merge(const char *path, unsigned *calls, struct ew_image_merge *result)
{
    const struct ew_image_files files = {.ctx = calls, .identity = made_identity};
    *calls = 0;
    return ew_etl_image_merge_file(path, &files, result);
}

TEST(identities_stand_before_the_events_of_their_images)
{
    struct etl_memory memory;
    struct ew_image_merge result;
    char folder[320], path[340];
    unsigned calls;
    make_recording(&memory);
    struct seen_list before = kit_read(&memory, 1);
    test_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/x.etl", folder);
    save(path, memory.bytes, memory.size);
    CHECK_EQ_INT(merge(path, &calls, &result), 0);
    CHECK_EQ_UINT(calls, IMAGES); /* each file is read once */
    CHECK_EQ_UINT(result.events, 2 * IMAGES);
    CHECK_EQ_UINT(result.added, 2 * IMAGES / 3);
    CHECK_EQ_UINT(result.files, 2 * IMAGES / 3);
    struct seen_list after = load(path);
    size_t next = 0;
    uint64_t ids = 0, debug = 0;
    for (size_t i = 0; i < after.count; i++) {
        const struct seen *s = &after.items[i];
        if (!is_added(s)) {
            CHECK(next < before.count);
            if (next > 0) /* the header counts the buffers */
                CHECK_EQ_MEM(s, &before.items[next], sizeof *s);
            next++;
            continue;
        }
        const struct seen *image = s;
        while (is_added(image))
            image++;
        CHECK_EQ_UINT(image->group, 0x14);
        CHECK_EQ_UINT(s->t_raw, image->t_raw);
        CHECK_EQ_UINT(s->cpu, image->cpu);
        CHECK_EQ_UINT(s->first, image->first); /* the base */
        CHECK_EQ_UINT(s->pid, PID);
        CHECK_EQ_UINT(s->tid, TID);
        ids += s->opcode == OPCODE_ID;
        debug += s->opcode == OPCODE_RSDS;
    }
    CHECK_EQ_UINT(next, before.count);
    CHECK_EQ_UINT(ids, 2 * IMAGES / 3);
    CHECK_EQ_UINT(debug, 2 * IMAGES / 3 - 2);
    CHECK(after.counts.buffers > before.counts.buffers);
    CHECK_EQ_UINT(after.counts.bad_buffers + after.counts.bad_records + after.counts.late, 0);
    kit_free(&before);
    kit_free(&after);
    etl_memory_free(&memory);
    (void)remove(path);
    test_folder_remove(folder);
}

TEST(numbers_of_buffers_stay_without_gaps_and_the_header_counts_them)
{
    struct etl_memory memory, merged = {0};
    struct ew_image_merge result;
    char folder[320], path[340];
    unsigned calls;
    make_recording(&memory);
    uint32_t written = ew_load_u32(memory.bytes + WRITTEN_AT);
    test_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/x.etl", folder);
    save(path, memory.bytes, memory.size);
    CHECK_EQ_INT(merge(path, &calls, &result), 0);
    FILE *file = fopen(path, "rb");
    uint8_t buffer[BUFFER];
    while (file != NULL && fread(buffer, 1, sizeof buffer, file) == sizeof buffer)
        CHECK_EQ_INT(etl_memory_write(&merged, buffer, sizeof buffer), 0);
    CHECK(file != NULL && fclose(file) == 0);
    size_t more = (merged.size - memory.size) / BUFFER, count = merged.size / BUFFER - 1;
    CHECK(more > 0);
    CHECK_EQ_UINT(ew_load_u32(merged.bytes + WRITTEN_AT), written + more);
    static bool seen[4096];
    memset(seen, 0, sizeof seen);
    uint64_t first = UINT64_MAX;
    for (size_t i = 1; i <= count; i++) {
        uint64_t number = ew_load_u64(kit_buffer(&merged, i) + NUMBER_AT);
        first = number < first ? number : first;
    }
    for (size_t i = 1; i <= count; i++) {
        uint64_t number = ew_load_u64(kit_buffer(&merged, i) + NUMBER_AT) - first;
        CHECK(number < count && !seen[number]);
        seen[number] = true;
    }
    etl_memory_free(&memory);
    etl_memory_free(&merged);
    (void)remove(path);
    test_folder_remove(folder);
}

TEST(a_recording_that_cannot_be_merged_is_unchanged)
{
    static const struct {
        const char *remark;
        size_t at;
        uint32_t value;
        int rc;
    } rows[] = {
        {"a buffer of another size", 2 * BUFFER, 2 * BUFFER, ETWATCH_EFORMAT},
        {"more than its size is filled", 2 * BUFFER + 0x30, BUFFER + 8, ETWATCH_EFORMAT},
        {"no header", 0x36, 0, ETWATCH_EFORMAT},
        {"a size that is too small", 0, 64, ETWATCH_EFORMAT},
        {"a file that ends in a buffer", SIZE_MAX, 0, ETWATCH_EFORMAT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct etl_memory memory;
        struct ew_image_merge result;
        char folder[320], path[340];
        unsigned calls;
        test_row(rows[i].remark);
        make_recording(&memory);
        size_t size = memory.size;
        if (rows[i].at == SIZE_MAX)
            size -= 100;
        else
            kit_set(memory.bytes + rows[i].at, rows[i].at == 0x36 ? 2 : 4, rows[i].value);
        test_folder(folder, sizeof folder);
        (void)snprintf(path, sizeof path, "%s/x.etl", folder);
        save(path, memory.bytes, size);
        CHECK_EQ_INT(merge(path, &calls, &result), rows[i].rc);
        FILE *file = fopen(path, "rb");
        uint8_t *read = malloc(size + 1);
        CHECK(file != NULL && read != NULL && fread(read, 1, size + 1, file) == size);
        CHECK_EQ_MEM(read, memory.bytes, size);
        CHECK_EQ_INT(fclose(file), 0);
        free(read);
        etl_memory_free(&memory);
        (void)remove(path);
        test_folder_remove(folder); /* fails if a temporary file is left */
    }
}

/* Through the functions of the system: paths, files, rename. */
TEST(program_files_of_this_machine_are_found_by_their_kernel_names)
{
    static struct program p;
    struct ew_etl_image_identity identity;
    char name[400], folder[320], path[340];
    make_program(&p, true, 5, "app.pdb");
    test_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/app.exe", folder);
    save(path, p.bytes, p.size);
    if (ew_os_is_windows()) {
        (void)snprintf(name, sizeof name, "\\??\\%s", path);
        for (char *at = name; *at != '\0'; at++)
            *at = *at == '/' ? '\\' : *at;
    } else {
        (void)snprintf(name, sizeof name, "%s", path);
    }
    CHECK(local_identity(NULL, name, &identity));
    CHECK_EQ_STR(identity.pdb, "app.pdb");
    CHECK(!local_identity(NULL, "\\Device\\Mup\\server\\share\\app.exe", &identity));
    CHECK(!local_identity(NULL, "\\??\\UNC\\server\\share\\app.exe", &identity));
    CHECK(!local_identity(NULL, "app.exe", &identity));
    CHECK(!local_identity(NULL, "", &identity));
    (void)remove(path);
    test_folder_remove(folder);
}

/* ---------------------------------------------------------------- real recordings */

struct copy {
    uint8_t bytes[2048];
    size_t size;
};

/* The identity that Windows wrote before the event of this image. */
struct real {
    struct copy id, debug;
    uint64_t t_raw;
};

static bool real_identity(void *ctx, const char *path, struct ew_etl_image_identity *ret)
{
    const struct real *real = ctx;
    (void)path;
    memset(ret, 0, sizeof *ret);
    ret->image_bytes = ew_load_u64(real->id.bytes + FULL_BYTES + 8);
    ret->timestamp = ew_load_u32(real->id.bytes + FULL_BYTES + 20);
    ret->has_pdb = real->debug.size > 0;
    if (!ret->has_pdb)
        return true;
    memcpy(ret->guid, real->debug.bytes + FULL_BYTES + 12, 16);
    ret->age = ew_load_u32(real->debug.bytes + FULL_BYTES + 28);
    (void)snprintf(ret->pdb, sizeof ret->pdb, "%s", (char *)real->debug.bytes + FULL_BYTES + 32);
    return true;
}

static void take_copy(struct copy *copy, const struct ew_record *r)
{
    CHECK(FULL_BYTES + r->payload_size <= sizeof copy->bytes - 1);
    copy->size = FULL_BYTES + r->payload_size;
    memcpy(copy->bytes, r->header, FULL_BYTES);
    memcpy(copy->bytes + FULL_BYTES, r->payload, r->payload_size);
    copy->bytes[copy->size] = 0;
}

/* The name is that in the version of the file there, and that of the file here. */
static void compare(const struct ew_record *image, struct real *real)
{
    static struct known_file *known[FILES_SLOTS];
    const struct ew_image_files files = {.ctx = real, .identity = real_identity};
    struct ew_image_merge result = {0};
    struct merge m = {.files = &files, .result = &result, .known = known};
    uint8_t ids[IDS_BYTES];
    memset(known, 0, sizeof known);
    size_t size = make_ids(&m, image, ids), id_bytes = ew_load_u16(ids);
    CHECK(size > 0);
    CHECK_EQ_MEM(ids + 2, real->id.bytes + 2, FULL_BYTES - 2);
    CHECK_EQ_MEM(ids + FULL_BYTES, real->id.bytes + FULL_BYTES, 24);
    if (real->debug.size > 0)
        CHECK_EQ_MEM(ids + ew_etl_padded((uint32_t)id_bytes), real->debug.bytes, real->debug.size);
    for (size_t i = 0; i < FILES_SLOTS; i++)
        ew_free(known[i]);
}

/* Returns the number of images that were compared. */
static unsigned compare_file(const char *path)
{
    struct ew_etl_options options = {.workers = 1};
    struct ew_etl_reader *reader = NULL;
    struct ew_error error = {0};
    const struct ew_record *records;
    static struct real real;
    unsigned compared = 0;
    int got;
    memset(&real, 0, sizeof real);
    CHECK_EQ_INT(ew_etl_open(&path, 1, &options, &reader, &error), 0);
    while ((got = ew_etl_next(reader, &records)) > 0) {
        for (int i = 0; i < got; i++) {
            const struct ew_record *r = &records[i];
            bool ours = r->kind == EW_RECORD_CLASSIC && r->provider != NULL &&
                        memcmp(r->provider, image_id_guid, 16) == 0;
            if (ours && r->opcode == OPCODE_ID) {
                take_copy(&real.id, r);
                real.debug.size = 0;
                real.t_raw = r->t_raw;
            } else if (ours && r->opcode == OPCODE_RSDS) {
                take_copy(&real.debug, r);
            } else if (is_image(r) && real.id.size > 0 && real.t_raw == r->t_raw) {
                compare(r, &real);
                real.id.size = 0;
                compared++;
            }
        }
    }
    ew_etl_close(reader);
    return compared;
}

TEST(the_events_are_those_of_recordings_that_windows_merged)
{
    const char *corpus = getenv("ETWATCH_CORPUS");
    char path[512];
    if (!corpus || !*corpus)
        SKIP("ETWATCH_CORPUS names no folder of recordings");
    (void)snprintf(path, sizeof path, "%s/etl/perfview-net452-x64.etl", corpus);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        SKIP("there is no perfview-net452-x64.etl in ETWATCH_CORPUS");
    (void)fclose(file);
    CHECK(compare_file(path) > 3000);
}
