/* SPDX-License-Identifier: MIT */
/* The memory of a ring is bounded by its size, whatever is written and however long it takes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "test.h"

/* The program is no library: its files are part of the test. */
#include "cli/output.c"
#include "cli/output_linux.c"
#include "cli/place_helper_linux.c"
#include "cli/place_linux.c"
#include "cli/record_file.c"

/* No signal arrives here. */
bool ew_signals_insisting(void)
{
    return false;
}

enum { CHUNK = 20000, CHUNKS = 400, MAX = 1 << 20 };

/* What the parts really hold, not what they were counted as. */
static uint64_t held(const struct ew_record_file *file)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < file->part_count; i++)
        bytes += file->parts[i].len;
    return bytes;
}

static char folder[32], path[64];

static void open_ring(struct ew_record_file *file, uint64_t ring_ns)
{
    (void)snprintf(folder, sizeof folder, "/tmp/etwatch-ring-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/ring.pftrace", folder);
    CHECK_EQ_INT(ew_cli_record_file_open(file, path, 0600, MAX, 0, ring_ns), 0);
}

static void close_ring(struct ew_record_file *file)
{
    CHECK_EQ_INT(ew_cli_record_file_close(file, false), 0);
    (void)remove(path);
    CHECK_EQ_INT(rmdir(folder), 0);
}

TEST(a_ring_never_holds_more_than_its_limit)
{
    static char chunk[CHUNK];
    struct ew_record_file file;
    open_ring(&file, UINT64_C(3600) * 1000000000); /* time alone drops nothing */
    for (uint64_t i = 0; i < CHUNKS; i++) {
        CHECK_EQ_INT(ew_cli_record_file_write(&file, chunk, sizeof chunk), 0);
        CHECK(held(&file) <= MAX);
        CHECK_EQ_UINT(file.ring_bytes, held(&file));
        if (ew_cli_record_file_due(&file, i))
            CHECK_EQ_INT(ew_cli_record_file_next(&file, i), 0);
    }
    CHECK(file.dropped_parts > 0);
    CHECK(held(&file) > MAX / 2);
    CHECK_EQ_UINT(file.total_bytes, (uint64_t)CHUNK * CHUNKS);
    CHECK_EQ_INT(ew_cli_record_file_close(&file, false), 0);
    CHECK(access(path, F_OK) != 0);
    CHECK_EQ_INT(rmdir(folder), 0);
}

TEST(a_ring_drops_what_is_older_than_its_time)
{
    static char chunk[CHUNK];
    struct ew_record_file file;
    open_ring(&file, 1000);
    for (uint64_t now = 0; now < 100000; now += 100) {
        CHECK_EQ_INT(ew_cli_record_file_write(&file, chunk, 100), 0);
        CHECK_EQ_INT(ew_cli_record_file_next(&file, now), 0);
        CHECK(now < 2000 || now - file.parts[0].begun_ns <= 1100);
    }
    close_ring(&file);
}

TEST(a_written_ring_has_its_parts_in_order_and_is_then_empty)
{
    struct ew_record_file file;
    char read[8] = "";
    open_ring(&file, UINT64_C(3600) * 1000000000);
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_EQ_INT(ew_cli_record_file_write(&file, &"abcd"[i], 1), 0);
        CHECK_EQ_INT(ew_cli_record_file_next(&file, i), 0);
    }
    CHECK_EQ_INT(ew_cli_record_file_dump(&file), 0);
    CHECK_EQ_UINT(file.ring_bytes, 0);
    FILE *written = fopen(path, "rb");
    CHECK(written != NULL);
    CHECK_EQ_UINT(fread(read, 1, sizeof read - 1, written), 4);
    (void)fclose(written);
    CHECK_EQ_STR(read, "abcd");
    close_ring(&file);
}
