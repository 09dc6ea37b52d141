/* SPDX-License-Identifier: MIT */
/*
 * Owns the wait analysis of one command and the list of processes to show. The text is made from
 * its results alone. A chain leads from a thread to the thread that ended most of its waiting, and
 * on from there, until a thread repeats.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"
#include "cli/cli.h"

enum { ROWS_SHOWN = 40, CHAIN_LONGEST = 8, CHAINS_SHOWN = 10 };

int ew_cli_waits_init(struct ew_waits_view *view)
{
    *view = (struct ew_waits_view){0};
    return etwatch_waits_new(&view->waits);
}

void ew_cli_waits_done(struct ew_waits_view *view)
{
    etwatch_waits_free(view->waits);
    ew_ids_done(&view->pids);
    *view = (struct ew_waits_view){0};
}

static bool is_shown(const struct ew_waits_view *view, uint32_t pid)
{
    if (view->all)
        return pid != UINT32_MAX;
    for (uint32_t i = 0; i < view->pids.count; i++)
        if (view->pids.ids[i] == pid)
            return true;
    return false;
}

int ew_cli_waits_add(struct ew_waits_view *view, uint32_t pid)
{
    return view->all || is_shown(view, pid) ? 0 : ew_ids_add(&view->pids, pid);
}

int ew_cli_waits_sample(struct ew_waits_view *view, const struct etwatch_sample *sample)
{
    return sample->type == ETWATCH_TYPE_START ? ew_cli_waits_add(view, sample->pid) : 0;
}

void ew_cli_waits_events(struct ew_waits_view *view, const struct etwatch_events *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        (void)etwatch_waits_add(view->waits, etwatch_event_at(batch, i));
}

void ew_cli_waits_end(struct ew_waits_view *view, const struct ew_options *options)
{
    struct etwatch_waits_info info = {.size = sizeof info};
    (void)etwatch_waits_end(view->waits);
    if (etwatch_waits_info(view->waits, &info) == 0 && info.dropped > 0)
        ew_print_info(options,
                      "%llu events were dropped: there are more threads than the table of "
                      "waits can hold",
                      (unsigned long long)info.dropped);
}

/* ----------------------------------------------------------------------- results */

struct numbered_edge {
    struct etwatch_waits_edge edge;
    uint32_t number; /* in the order in which edges were first seen */
};

struct results {
    struct etwatch_waits_thread *threads; /* to show, sorted */
    struct numbered_edge *edges;          /* all, sorted */
    uint32_t thread_count, edge_count;
};

static uint64_t waited(const struct etwatch_waits_thread *thread)
{
    return thread->sleep_ns + thread->blocked_ns;
}

static int by_process(const void *a, const void *b)
{
    const struct etwatch_waits_thread *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (waited(x) != waited(y))
        return waited(x) > waited(y) ? -1 : 1;
    return (x->tid > y->tid) - (x->tid < y->tid);
}

static int by_wait(const void *a, const void *b)
{
    const struct numbered_edge *x = a, *y = b;
    if (x->edge.wait_ns != y->edge.wait_ns)
        return x->edge.wait_ns > y->edge.wait_ns ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static void drop_results(struct results *results)
{
    ew_free(results->threads);
    ew_free(results->edges);
}

static int collect(const struct ew_waits_view *view, struct results *results)
{
    struct etwatch_waits_info info = {.size = sizeof info};
    int rc = etwatch_waits_info(view->waits, &info);
    if (rc < 0)
        return rc;
    results->threads = ew_calloc(info.thread_count + 1u, sizeof *results->threads);
    results->edges = ew_calloc(info.edge_count + 1u, sizeof *results->edges);
    if (results->threads == NULL || results->edges == NULL)
        return ETWATCH_ENOMEM;
    for (uint32_t i = 0; i < info.thread_count && rc == 0; i++) {
        struct etwatch_waits_thread *thread = &results->threads[results->thread_count];
        thread->size = sizeof *thread;
        rc = etwatch_waits_thread(view->waits, i, thread);
        bool seen = thread->run_ns + thread->ready_ns + waited(thread) > 0;
        results->thread_count += seen && is_shown(view, thread->pid);
    }
    for (uint32_t i = 0; i < info.edge_count && rc == 0; i++) {
        struct numbered_edge *edge = &results->edges[results->edge_count++];
        edge->number = i;
        edge->edge.size = sizeof edge->edge;
        rc = etwatch_waits_edge(view->waits, i, &edge->edge);
    }
    qsort(results->threads, results->thread_count, sizeof *results->threads, by_process);
    qsort(results->edges, results->edge_count, sizeof *results->edges, by_wait);
    return rc;
}

/* ------------------------------------------------------------------------- JSON */

static void put_number(struct ew_buf *out, const char *key, uint64_t value)
{
    ew_buf_text(out, key);
    ew_buf_u64(out, value);
}

static void put_known(struct ew_buf *out, const char *key, uint64_t value)
{
    ew_buf_text(out, key);
    if (value != UINT64_MAX)
        ew_buf_u64(out, value);
    else
        ew_buf_text(out, "null");
}

static void put_text(struct ew_buf *out, const char *key, const char *text)
{
    ew_buf_text(out, key);
    if (text == NULL)
        ew_buf_text(out, "null");
    else
        ew_buf_json_string(out, text, strlen(text));
}

static uint64_t known_pid(uint32_t pid)
{
    return pid == UINT32_MAX ? UINT64_MAX : pid;
}

static void json_thread(struct ew_buf *out, const struct etwatch_waits_thread *thread)
{
    ew_buf_text(out, "{\"type\":\"waits\"");
    put_known(out, ",\"pid\":", known_pid(thread->pid));
    put_number(out, ",\"tid\":", thread->tid);
    put_text(out, ",\"thread_name\":", thread->name);
    put_number(out, ",\"run_ns\":", thread->run_ns);
    put_number(out, ",\"ready_ns\":", thread->ready_ns);
    put_number(out, ",\"sleep_ns\":", thread->sleep_ns);
    put_number(out, ",\"blocked_ns\":", thread->blocked_ns);
    put_known(out, ",\"fault_ns\":", thread->fault_ns);
    put_known(out, ",\"disk_ns\":", thread->disk_ns);
    put_number(out, ",\"switches\":", thread->switches);
    put_number(out, ",\"preempted\":", thread->preempted);
    put_number(out, ",\"sleeps\":", thread->sleeps);
    put_number(out, ",\"blocks\":", thread->blocks);
    put_number(out, ",\"wait_max_ns\":", thread->wait_max_ns);
    ew_buf_text(out, "}\n");
    ew_buf_end_line(out);
}

static void json_edge(struct ew_buf *out, const struct etwatch_waits_edge *edge)
{
    ew_buf_text(out, "{\"type\":\"wake\"");
    put_known(out, ",\"pid\":", known_pid(edge->pid));
    put_number(out, ",\"tid\":", edge->tid);
    put_text(out, ",\"thread_name\":", edge->name);
    put_known(out,
              ",\"waker_pid\":", edge->waker_tid == 0 ? UINT64_MAX : known_pid(edge->waker_pid));
    put_number(out, ",\"waker_tid\":", edge->waker_tid);
    put_text(out, ",\"waker_name\":", edge->waker_name);
    put_number(out, ",\"count\":", edge->count);
    put_number(out, ",\"wait_ns\":", edge->wait_ns);
    put_number(out, ",\"wait_max_ns\":", edge->wait_max_ns);
    put_number(out, ",\"blocked_ns\":", edge->blocked_ns);
    put_number(out, ",\"ready_ns\":", edge->ready_ns);
    ew_buf_text(out, "}\n");
    ew_buf_end_line(out);
}

/* ------------------------------------------------------------------------ tables */

static void put_thread(struct ew_buf *out, uint32_t tid, const char *name)
{
    if (tid == 0) {
        ew_buf_text(out, "(idle, interrupt)");
        return;
    }
    name = name == NULL ? "?" : name;
    (void)ew_buf_screen(out, name, strlen(name), 64);
    ew_buf_text(out, " (");
    ew_buf_u64(out, tid);
    ew_buf_char(out, ')');
}

static void cell_thread(struct ew_grid *grid, uint32_t tid, const char *name)
{
    put_thread(ew_grid_cell(grid), tid, name);
    ew_grid_end(grid);
}

static void cell_ns(struct ew_grid *grid, uint64_t ns)
{
    if (ns != UINT64_MAX)
        ew_units_ns(ew_grid_cell(grid), ns);
    else
        ew_buf_char(ew_grid_cell(grid), '-');
    ew_grid_end(grid);
}

static void cell_count(struct ew_grid *grid, uint64_t count)
{
    ew_units_count(ew_grid_cell(grid), count);
    ew_grid_end(grid);
}

static int table_threads(const struct results *results, struct ew_buf *out, uint32_t width,
                         bool color)
{
    static const struct ew_grid_column columns[] = {
        {"PID", 7, 0, false},    {"THREAD", 20, 32, true}, {"RUN", 9, 0, false},
        {"READY", 9, 0, false},  {"SLEEP", 9, 0, false},   {"BLOCKED", 9, 0, false},
        {"FAULT", 9, 0, false},  {"DISK", 9, 0, false},    {"SLEEPS", 6, 0, false},
        {"BLOCKS", 6, 0, false}, {"LONGEST", 9, 0, false},
    };
    struct ew_grid grid;
    ew_grid_init(&grid, columns, sizeof columns / sizeof columns[0]);
    grid.width = width;
    grid.color = color;
    for (uint32_t i = 0; i < results->thread_count; i++) {
        const struct etwatch_waits_thread *thread = &results->threads[i];
        cell_count(&grid, thread->pid);
        cell_thread(&grid, thread->tid, thread->name);
        cell_ns(&grid, thread->run_ns);
        cell_ns(&grid, thread->ready_ns);
        cell_ns(&grid, thread->sleep_ns);
        cell_ns(&grid, thread->blocked_ns);
        cell_ns(&grid, thread->fault_ns);
        cell_ns(&grid, thread->disk_ns);
        cell_count(&grid, thread->sleeps);
        cell_count(&grid, thread->blocks);
        cell_ns(&grid, thread->wait_max_ns);
    }
    int rc = ew_grid_print(&grid, out, ROWS_SHOWN);
    ew_grid_done(&grid);
    return rc;
}

static int table_edges(const struct ew_waits_view *view, const struct results *results,
                       struct ew_buf *out, uint32_t width, bool color)
{
    static const struct ew_grid_column columns[] = {
        {"THREAD", 20, 32, true},    {"WOKEN BY", 20, 32, true}, {"TIMES", 6, 0, false},
        {"WAITED", 9, 0, false},     {"LONGEST", 9, 0, false},   {"BLOCKED", 9, 0, false},
        {"THEN READY", 9, 0, false},
    };
    struct ew_grid grid;
    ew_grid_init(&grid, columns, sizeof columns / sizeof columns[0]);
    grid.width = width;
    grid.color = color;
    for (uint32_t i = 0; i < results->edge_count; i++) {
        const struct etwatch_waits_edge *edge = &results->edges[i].edge;
        if (!is_shown(view, edge->pid))
            continue;
        cell_thread(&grid, edge->tid, edge->name);
        cell_thread(&grid, edge->waker_tid, edge->waker_name);
        cell_count(&grid, edge->count);
        cell_ns(&grid, edge->wait_ns);
        cell_ns(&grid, edge->wait_max_ns);
        cell_ns(&grid, edge->blocked_ns);
        cell_ns(&grid, edge->ready_ns);
    }
    int rc = ew_grid_print(&grid, out, ROWS_SHOWN);
    ew_grid_done(&grid);
    return rc;
}

/* ------------------------------------------------------------------------ chains */

/* The waker that ended most of the waiting of a thread: edges are sorted, so it is the first. */
static const struct etwatch_waits_edge *main_waker(const struct results *results, uint32_t tid)
{
    for (uint32_t i = 0; i < results->edge_count; i++)
        if (results->edges[i].edge.tid == tid)
            return &results->edges[i].edge;
    return NULL;
}

static void put_chain(const struct results *results, const struct etwatch_waits_thread *thread,
                      struct ew_buf *out)
{
    uint32_t tid = thread->tid;
    uint32_t seen[CHAIN_LONGEST] = {tid};
    put_thread(out, tid, thread->name);
    for (uint32_t length = 1; length < CHAIN_LONGEST; length++) {
        const struct etwatch_waits_edge *edge = main_waker(results, tid);
        if (edge == NULL)
            break;
        ew_buf_text(out, " <- ");
        ew_units_ns(out, edge->wait_ns);
        ew_buf_text(out, " - ");
        put_thread(out, edge->waker_tid, edge->waker_name);
        tid = edge->waker_tid;
        bool again = tid == 0;
        for (uint32_t i = 0; i < length && !again; i++)
            again = seen[i] == tid;
        if (again)
            break;
        seen[length] = tid;
    }
    ew_buf_char(out, '\n');
}

static int write_tables(const struct ew_waits_view *view, const struct results *results,
                        struct ew_buf *out, uint32_t width, bool color)
{
    int rc = table_threads(results, out, width, color);
    ew_buf_char(out, '\n');
    if (rc == 0)
        rc = table_edges(view, results, out, width, color);
    ew_buf_text(out, "\nchains of wakers: each thread was mostly woken by the next\n");
    for (uint32_t i = 0; i < results->thread_count && i < CHAINS_SHOWN; i++)
        if (main_waker(results, results->threads[i].tid) != NULL)
            put_chain(results, &results->threads[i], out);
    return rc;
}

int ew_cli_waits_write(const struct ew_waits_view *view, struct ew_buf *out, bool json,
                       uint32_t width, bool color)
{
    struct results results = {0};
    int rc = collect(view, &results);
    if (rc == 0 && json) {
        for (uint32_t i = 0; i < results.thread_count; i++)
            json_thread(out, &results.threads[i]);
        for (uint32_t i = 0; i < results.edge_count; i++)
            if (is_shown(view, results.edges[i].edge.pid))
                json_edge(out, &results.edges[i].edge);
    } else if (rc == 0) {
        rc = write_tables(view, &results, out, width, color);
    }
    drop_results(&results);
    return rc == 0 ? out->error : rc;
}

int ew_cli_waits_print(const struct ew_waits_view *view, struct ew_output *output, bool json,
                       bool to_screen, int which)
{
    struct ew_buf out;
    uint32_t columns = 0, rows = 0;
    bool screen = to_screen && ew_term_is(which);
    if (screen)
        ew_term_size(&columns, &rows);
    ew_buf_init(&out, 0, ew_output_write, output);
    int rc = ew_cli_waits_write(view, &out, json, columns, screen && ew_term_color(which));
    if (rc == 0)
        rc = ew_buf_flush(&out);
    ew_buf_done(&out);
    return rc;
}
