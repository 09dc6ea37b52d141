/* SPDX-License-Identifier: MIT */
/* Numbers formatted for display, and the grid that contains them. */
#include <string.h>

#include "base/grid.h"
#include "base/units.h"
#include "sink/columns.h"
#include "test.h"

static const char *text_of(struct ew_buf *buf)
{
    ew_buf_char(buf, '\0');
    return buf->data;
}

static void check_unit(void (*put)(struct ew_buf *, uint64_t), uint64_t value, const char *want)
{
    struct ew_buf buf;
    ew_buf_init(&buf, 0, NULL, NULL);
    test_row(want);
    put(&buf, value);
    CHECK_EQ_STR(text_of(&buf), want);
    ew_buf_done(&buf);
}

TEST(bytes_have_three_digits_and_a_unit)
{
    check_unit(ew_units_bytes, 0, "0 B");
    check_unit(ew_units_bytes, 999, "999 B");
    check_unit(ew_units_bytes, 1000, "0.98 KB");
    check_unit(ew_units_bytes, 1024, "1.00 KB");
    check_unit(ew_units_bytes, 10 * 1024 + 512, "10.5 KB");
    check_unit(ew_units_bytes, 1023 * 1024, "1.00 MB");
    check_unit(ew_units_bytes, (uint64_t)3 << 30, "3.00 GB");
    check_unit(ew_units_bytes, UINT64_MAX, "16.0 EB");
}

TEST(durations_are_in_milliseconds_or_seconds)
{
    check_unit(ew_units_ns, 0, "0 ms");
    check_unit(ew_units_ns, 999, "0.001 ms");
    check_unit(ew_units_ns, 250000, "0.250 ms");
    check_unit(ew_units_ns, 1000000, "1.00 ms");
    check_unit(ew_units_ns, 12345678, "12.3 ms");
    check_unit(ew_units_ns, 999400000, "999 ms");
    check_unit(ew_units_ns, 999600000, "1.00 s");
    check_unit(ew_units_ns, (uint64_t)3600 * 1000000000, "3600 s");
}

static int32_t offset_s;

static int32_t offset_of(uint64_t unix_ns)
{
    (void)unix_ns;
    return offset_s;
}

static void put_utc(struct ew_buf *out, uint64_t unix_ns)
{
    ew_units_time(out, unix_ns, NULL);
}

static void put_local(struct ew_buf *out, uint64_t unix_ns)
{
    ew_units_time(out, unix_ns, offset_of);
}

TEST(a_local_time_has_its_offset)
{
    static const struct {
        int32_t offset_s;
        uint64_t unix_s;
        const char *text;
    } rows[] = {
        {0, 1763269862, "2025-11-16 05:11:02 UTC"},
        {3600, 1763269862, "2025-11-16 06:11:02 +01:00"},
        {-8 * 3600, 1763269862, "2025-11-15 21:11:02 -08:00"},
        {5 * 3600 + 45 * 60, 1704067199, "2024-01-01 05:44:59 +05:45"},
        {-(9 * 3600 + 30 * 60), 1709210096, "2024-02-29 03:04:56 -09:30"},
        /* Before 1970, or no offset of any zone: UTC. */
        {-3600, 60, "1970-01-01 00:01:00 UTC"},
        {INT32_MIN, 1763269862, "2025-11-16 05:11:02 UTC"},
        {86400, 1763269862, "2025-11-16 05:11:02 UTC"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        offset_s = rows[i].offset_s;
        check_unit(put_local, rows[i].unix_s * 1000000000, rows[i].text);
    }
}

TEST(times_are_dates_in_utc)
{
    check_unit(put_utc, 0, "1970-01-01 00:00:00 UTC");
    check_unit(put_utc, (uint64_t)1763269862 * 1000000000, "2025-11-16 05:11:02 UTC");
    check_unit(put_utc, (uint64_t)1709210096 * 1000000000, "2024-02-29 12:34:56 UTC");
    check_unit(put_utc, (uint64_t)1704067199 * 1000000000, "2023-12-31 23:59:59 UTC");
    check_unit(put_utc, (uint64_t)951868800 * 1000000000, "2000-03-01 00:00:00 UTC");
}

TEST(a_field_is_shown_by_the_unit_in_its_name)
{
    struct ew_buf buf;
    struct ew_value unknown = {0};
    struct ew_value value = {.kind = EW_VALUE_U64, .u64 = 2048};
    ew_buf_init(&buf, 0, NULL, NULL);
    ew_field_put(&buf, EW_WHICH_COUNT + ETWATCH_M_rss_bytes, &value, NULL);
    ew_buf_char(&buf, '|');
    ew_field_put(&buf, EW_WHICH_COUNT + ETWATCH_M_cpu_ns, &value, NULL);
    ew_buf_char(&buf, '|');
    ew_field_put(&buf, EW_WHICH_COUNT + ETWATCH_M_threads, &value, NULL);
    ew_buf_char(&buf, '|');
    ew_field_put(&buf, EW_WHICH_COUNT + ETWATCH_M_threads, &unknown, NULL);
    CHECK_EQ_STR(text_of(&buf), "2.00 KB|0.002 ms|2048|-");
    ew_buf_done(&buf);
}

static void add_cell(struct ew_grid *grid, const char *text)
{
    ew_buf_text(ew_grid_cell(grid), text);
    ew_grid_end(grid);
}

static const struct ew_grid_column columns[] = {
    {.heading = "PID", .min_width = 5},
    {.heading = "NAME", .left = true, .max_width = 6},
    {.heading = "RSS"},
};

TEST(a_grid_is_as_wide_as_its_cells)
{
    struct ew_grid grid;
    struct ew_buf out;
    ew_buf_init(&out, 0, NULL, NULL);
    ew_grid_init(&grid, columns, 3);
    const char *const cells[] = {"1", "ab", "10.5 KB", "1234567", "abcdefgh", "", "3", "x\ny", "1"};
    for (size_t i = 0; i < 9; i++)
        add_cell(&grid, cells[i]);
    CHECK_EQ_INT(ew_grid_print(&grid, &out, 0), 0);
    CHECK_EQ_STR(text_of(&out), "    PID  NAME        RSS\n"
                                "      1  ab      10.5 KB\n"
                                "1234567  abcde+\n"
                                "      3  x?y           1\n");
    ew_grid_done(&grid);
    ew_buf_done(&out);
}

TEST(a_grid_is_limited_to_the_requested_width_and_rows)
{
    struct ew_grid grid;
    struct ew_buf out;
    ew_buf_init(&out, 0, NULL, NULL);
    ew_grid_init(&grid, columns, 3);
    grid.width = 10;
    grid.color = true;
    for (int i = 0; i < 9; i++)
        add_cell(&grid, "abc");
    CHECK_EQ_INT(ew_grid_print(&grid, &out, 1), 0);
    CHECK_EQ_STR(text_of(&out), "\033[1m  PID  NA+\033[0m\n"
                                "  abc  ab+\n");
    ew_grid_done(&grid);
    ew_buf_done(&out);
}
