/* SPDX-License-Identifier: MIT */
/* The screen of top without a terminal: keys, the order of the rows, what fits on a screen. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/cli.h"
#include "sample_maker.h"
#include "test.h"

/* The program is no library: its files are part of the test. */
#include "cli/keys.c"
#include "cli/process_table.c"
#include "cli/top_list.c"
#include "cli/top_screen.c"

/* -------------------------------------------------------------------------- keys */

TEST(sequences_of_a_terminal_become_keys)
{
    static const struct {
        const char *bytes;
        int code;
        size_t taken;
        const char *remark;
    } rows[] = {
        {"q", 'q', 1, "a letter"},
        {"\033[A", EW_KEY_UP, 3, "an arrow"},
        {"\033OB", EW_KEY_DOWN, 3, "an arrow in application mode"},
        {"\033[6~x", EW_KEY_PAGE_DOWN, 4, "a key with a number, then a letter"},
        {"\033[1;5A", 0, 6, "an unknown combination is skipped whole"},
        {"\033[<0;12;7M", EW_KEY_CLICK, 10, "a click"},
        {"\033[<0;12;7m", 0, 10, "a released button"},
        {"\033[<64;1;1M", EW_KEY_WHEEL_UP, 10, "the wheel"},
        {"\033[<0;;7M", 0, 8, "a click without a column"},
        {"\033[<99999999999;1;1M", 0, 19, "a number that is too large"},
        {"\033x", EW_KEY_ESCAPE, 1, "Esc, then a letter"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_key key;
        size_t taken = ew_keys_parse(rows[i].bytes, strlen(rows[i].bytes), false, &key);
        test_row(rows[i].remark);
        CHECK_EQ_UINT(taken, rows[i].taken);
        CHECK_EQ_INT(key.code, rows[i].code);
    }
}

TEST(a_click_has_its_position)
{
    struct ew_key key;
    (void)ew_keys_parse("\033[<0;12;7M", 10, true, &key);
    CHECK_EQ_UINT(key.column, 11);
    CHECK_EQ_UINT(key.row, 6);
}

TEST(the_end_of_a_sequence_is_waited_for_once)
{
    struct ew_key key;
    CHECK_EQ_UINT(ew_keys_parse("\033[", 2, true, &key), 0);
    CHECK_EQ_UINT(ew_keys_parse("\033", 1, true, &key), 0);
    CHECK_EQ_UINT(ew_keys_parse("\033", 1, false, &key), 1);
    CHECK_EQ_INT(key.code, EW_KEY_ESCAPE);
}

/* -------------------------------------------------------------------------- rows */

static void add(struct etwatch_rollup *rollup, uint32_t pid, uint32_t ppid, const char *name,
                uint64_t cpu_ns)
{
    struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, pid, name, 1000);
    sample.ppid = ppid;
    set_cpu(&sample, cpu_ns);
    CHECK_EQ_INT(etwatch_rollup_add(rollup, &sample), 0);
}

static struct etwatch_rollup *family(void)
{
    struct etwatch_rollup *rollup;
    CHECK_EQ_INT(etwatch_rollup_new(NULL, &rollup), 0);
    add(rollup, 10, 1, "init", 1000);
    add(rollup, 30, 20, "leaf", 9000);
    add(rollup, 20, 10, "shell", 2000);
    add(rollup, 40, 10, "Python", 5000);
    return rollup;
}

static void check_order(const struct ew_screen *screen, struct etwatch_rollup *rollup,
                        const char *expected)
{
    struct ew_top_list list = {0};
    char text[128] = "";
    CHECK_EQ_INT(ew_screen_list_fill(&list, screen, rollup), 0);
    for (uint32_t i = 0; i < list.count; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%u@%u", i > 0 ? " " : "",
                       list.entries[i].identity.pid, list.entries[i].depth);
    CHECK_EQ_STR(text, expected);
    ew_screen_list_done(&list);
}

TEST(rows_are_sorted_or_form_a_tree)
{
    struct etwatch_rollup *rollup = family();
    struct ew_screen screen = {.sort = EW_SORT_CPU};
    check_order(&screen, rollup, "30@0 40@0 20@0 10@0");
    screen.tree = true;
    check_order(&screen, rollup, "10@0 40@1 20@1 30@2");
    etwatch_rollup_free(rollup);
}

TEST(a_filter_matches_names_without_case_and_pids)
{
    struct etwatch_rollup *rollup = family();
    struct ew_screen screen = {.filter = "pyth"};
    check_order(&screen, rollup, "40@0");
    (void)snprintf(screen.filter, sizeof screen.filter, "20");
    check_order(&screen, rollup, "20@0");
    (void)snprintf(screen.filter, sizeof screen.filter, "nothing");
    check_order(&screen, rollup, "");
    etwatch_rollup_free(rollup);
}

TEST(a_loop_of_parents_shows_every_process_once)
{
    struct etwatch_rollup *rollup;
    struct ew_screen screen = {.tree = true};
    struct ew_top_list list = {0};
    CHECK_EQ_INT(etwatch_rollup_new(NULL, &rollup), 0);
    add(rollup, 5, 7, "a", 3);
    add(rollup, 6, 5, "b", 2);
    add(rollup, 7, 6, "c", 1);
    add(rollup, 8, 8, "self", 1);
    CHECK_EQ_INT(ew_screen_list_fill(&list, &screen, rollup), 0);
    CHECK_EQ_UINT(list.count, 4);
    ew_screen_list_done(&list);
    etwatch_rollup_free(rollup);
}

/* ------------------------------------------------------------------------ screen */

static size_t widest_line(const char *text, size_t len, size_t *ret_lines)
{
    size_t widest = 0, width = 0;
    *ret_lines = 0;
    for (size_t i = 0; i < len;) {
        uint32_t code;
        i += ew_utf8_decode(text + i, len - i, &code);
        width = code == '\n' ? 0 : width + ew_utf8_columns(code);
        *ret_lines += code == '\n';
        widest = width > widest ? width : widest;
    }
    return widest;
}

TEST(every_screen_fits_its_terminal)
{
    static double cpus[200];
    struct etwatch_rollup *rollup = family();
    struct etwatch_stats stats = {.size = sizeof stats, .self_kernel_percent = -1};
    for (uint32_t i = 0; i < 300; i++)
        add(rollup, 100 + i, 10, "a process with a name that is rather long", i);
    for (uint32_t i = 0; i < 200; i++)
        cpus[i] = i % 7 == 0 ? -1 : i / 2.0;
    for (uint32_t rows = 1; rows < 60; rows += 7)
        for (uint32_t columns = 1; columns < 300; columns += 13)
            for (uint32_t count = 0; count <= 200; count += 50) {
                struct ew_screen screen = {.columns = columns, .rows = rows, .utf8 = columns % 2};
                struct ew_buf out;
                size_t lines;
                screen.system_known = true;
                screen.system = (struct etwatch_system){
                    .size = sizeof screen.system, .cpu_count = count, .cpu_percents = cpus};
                screen.history_count = EW_TOP_HISTORY;
                ew_buf_init(&out, 0, NULL, NULL);
                CHECK_EQ_INT(ew_screen_write(&screen, rollup, &stats, 1000000000, &out), 0);
                size_t widest = widest_line(out.data, out.len, &lines);
                CHECK(widest <= columns);
                CHECK(lines <= (rows < 6 ? 5 : rows));
                ew_buf_done(&out);
                ew_screen_list_done(&screen.list);
            }
    etwatch_rollup_free(rollup);
}

TEST(the_selection_stays_with_its_process_and_on_the_screen)
{
    struct etwatch_rollup *rollup = family();
    struct etwatch_stats stats = {.size = sizeof stats};
    struct ew_screen screen = {.columns = 80, .rows = 8};
    struct ew_buf out;
    for (uint32_t i = 0; i < 50; i++)
        add(rollup, 100 + i, 10, "many", 10 + i);
    ew_buf_init(&out, 0, NULL, NULL);
    CHECK_EQ_INT(ew_screen_write(&screen, rollup, &stats, 1, &out), 0);
    ew_screen_select(&screen, 2);
    uint32_t pid = screen.selected.pid;
    add(rollup, 149, 10, "many", 1000000); /* to the top: the others move down */
    CHECK_EQ_INT(ew_screen_write(&screen, rollup, &stats, 1, &out), 0);
    CHECK_EQ_UINT(screen.at, 3);
    CHECK_EQ_UINT(screen.list.entries[screen.at].identity.pid, pid);
    ew_screen_select(&screen, INT64_MAX);
    CHECK_EQ_INT(ew_screen_write(&screen, rollup, &stats, 1, &out), 0);
    CHECK_EQ_UINT(screen.at, screen.list.count - 1);
    CHECK(screen.first <= screen.at && screen.at < screen.first + screen.page);
    ew_buf_done(&out);
    ew_screen_list_done(&screen.list);
    etwatch_rollup_free(rollup);
}

TEST(a_click_on_a_heading_selects_the_order)
{
    struct etwatch_rollup *rollup = family();
    struct etwatch_stats stats = {.size = sizeof stats};
    struct ew_screen screen = {.columns = 200, .rows = 24};
    struct ew_buf out;
    ew_buf_init(&out, 0, NULL, NULL);
    CHECK_EQ_INT(ew_screen_write(&screen, rollup, &stats, 1, &out), 0);
    ew_buf_char(&out, '\0');
    const char *heading = strstr(out.data, "RSS"), *line = heading;
    while (line > out.data && line[-1] != '\n')
        line--;
    CHECK(ew_screen_sort_at(&screen, (uint32_t)(heading - line)));
    CHECK_EQ_INT(screen.sort, EW_SORT_MEMORY);
    CHECK(!ew_screen_sort_at(&screen, 5000));
    ew_buf_done(&out);
    ew_screen_list_done(&screen.list);
    etwatch_rollup_free(rollup);
}
