/* SPDX-License-Identifier: MIT */
/*
 * Pure: the sums in, text out. A chain goes from a thread to who woke it after the longest time
 * altogether, and from there on likewise, until it would come back to itself.
 */
#include "cli/waits_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grid.h"
#include "base/units.h"

enum { ROWS_SHOWN = 40, CHAIN_LONGEST = 8, CHAINS_SHOWN = 10 };

int ew_waits_view_add(struct ew_waits_view *view, uint32_t pid)
{
    for (uint32_t i = 0; i < view->pid_count; i++)
        if (view->pids[i] == pid)
            return 0;
    uint32_t *pids = ew_realloc_array(view->pids, (size_t)view->pid_count + 1, sizeof *pids);
    if (pids == NULL)
        return ETWATCH_ENOMEM;
    pids[view->pid_count++] = pid;
    view->pids = pids;
    return 0;
}

void ew_waits_view_done(struct ew_waits_view *view)
{
    ew_waits_free(view->waits);
    ew_free(view->pids);
    *view = (struct ew_waits_view){0};
}

static bool wanted(const struct ew_waits_view *view, uint32_t pid)
{
    if (view->all)
        return pid != UINT32_MAX;
    for (uint32_t i = 0; i < view->pid_count; i++)
        if (view->pids[i] == pid)
            return true;
    return false;
}

/* ------------------------------------------------------------------------ order */

static uint64_t waited(const struct ew_waits_thread *thread)
{
    return thread->sleep_ns + thread->blocked_ns;
}

static int by_time(const void *a, const void *b)
{
    const struct ew_waits_thread *x = *(const struct ew_waits_thread *const *)a;
    const struct ew_waits_thread *y = *(const struct ew_waits_thread *const *)b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (waited(x) != waited(y))
        return waited(x) > waited(y) ? -1 : 1;
    return x->tid < y->tid ? -1 : 1;
}

static int by_wait(const void *a, const void *b)
{
    const struct ew_waits_edge *x = *(const struct ew_waits_edge *const *)a;
    const struct ew_waits_edge *y = *(const struct ew_waits_edge *const *)b;
    if (x->wait_ns != y->wait_ns)
        return x->wait_ns > y->wait_ns ? -1 : 1;
    return x->self < y->self ? -1 : 1;
}

struct lists {
    const struct ew_waits_thread **threads;
    const struct ew_waits_edge **edges;
    uint32_t thread_count, edge_count;
};

static int collect(const struct ew_waits_view *view, struct lists *lists)
{
    uint32_t threads = 0, edges = 0;
    while (ew_waits_thread_at(view->waits, threads) != NULL)
        threads++;
    while (ew_waits_edge_at(view->waits, edges) != NULL)
        edges++;
    lists->threads = ew_calloc(threads + 1, sizeof *lists->threads);
    lists->edges = ew_calloc(edges + 1, sizeof *lists->edges);
    if (lists->threads == NULL || lists->edges == NULL)
        return ETWATCH_ENOMEM;
    for (uint32_t i = 0; i < threads; i++) {
        const struct ew_waits_thread *thread = ew_waits_thread_at(view->waits, i);
        bool seen = thread->run_ns + thread->ready_ns + waited(thread) > 0;
        if (seen && wanted(view, thread->pid))
            lists->threads[lists->thread_count++] = thread;
    }
    for (uint32_t i = 0; i < edges; i++) {
        const struct ew_waits_edge *edge = ew_waits_edge_at(view->waits, i);
        if (wanted(view, edge->pid))
            lists->edges[lists->edge_count++] = edge;
    }
    qsort(lists->threads, lists->thread_count, sizeof *lists->threads, by_time);
    qsort(lists->edges, lists->edge_count, sizeof *lists->edges, by_wait);
    return 0;
}

/* ------------------------------------------------------------------------- JSON */

static void put_number(struct ew_buf *out, const char *key, uint64_t value)
{
    ew_buf_text(out, key);
    ew_buf_u64(out, value);
}

static void put_known(struct ew_buf *out, const char *key, bool known, uint64_t value)
{
    ew_buf_text(out, key);
    if (known)
        ew_buf_u64(out, value);
    else
        ew_buf_text(out, "null");
}

static void put_who(struct ew_buf *out, const char *pid_key, const char *tid_key,
                    const char *name_key, const struct ew_waits_view *view, uint32_t pid,
                    uint32_t tid)
{
    const struct ew_waits_thread *thread = ew_waits_find(view->waits, tid);
    ew_buf_text(out, pid_key);
    if (pid == UINT32_MAX)
        ew_buf_text(out, "null");
    else
        ew_buf_u64(out, pid);
    put_number(out, tid_key, tid);
    ew_buf_text(out, name_key);
    if (thread == NULL || thread->name[0] == '\0')
        ew_buf_text(out, "null");
    else
        ew_buf_json_string(out, thread->name, strlen(thread->name));
}

static void json_thread(struct ew_buf *out, const struct ew_waits_view *view,
                        const struct ew_waits_thread *thread)
{
    ew_buf_text(out, "{\"type\":\"waits\"");
    put_who(out, ",\"pid\":", ",\"tid\":", ",\"thread_name\":", view, thread->pid, thread->tid);
    put_number(out, ",\"run_ns\":", thread->run_ns);
    put_number(out, ",\"ready_ns\":", thread->ready_ns);
    put_number(out, ",\"sleep_ns\":", thread->sleep_ns);
    put_number(out, ",\"blocked_ns\":", thread->blocked_ns);
    put_known(out, ",\"fault_ns\":", view->faults, thread->fault_ns);
    put_known(out, ",\"disk_ns\":", view->disks, thread->disk_ns);
    put_number(out, ",\"switches\":", thread->switches);
    put_number(out, ",\"preempted\":", thread->preempted);
    put_number(out, ",\"sleeps\":", thread->sleeps);
    put_number(out, ",\"blocks\":", thread->blocks);
    put_number(out, ",\"wait_max_ns\":", thread->wait_max_ns);
    ew_buf_text(out, "}\n");
    ew_buf_end_line(out);
}

static void json_edge(struct ew_buf *out, const struct ew_waits_view *view,
                      const struct ew_waits_edge *edge)
{
    ew_buf_text(out, "{\"type\":\"wake\"");
    put_who(out, ",\"pid\":", ",\"tid\":", ",\"thread_name\":", view, edge->pid, edge->tid);
    put_who(out, ",\"waker_pid\":", ",\"waker_tid\":", ",\"waker_name\":", view,
            edge->waker_tid == 0 ? UINT32_MAX : edge->waker_pid, edge->waker_tid);
    put_number(out, ",\"count\":", edge->count);
    put_number(out, ",\"wait_ns\":", edge->wait_ns);
    put_number(out, ",\"wait_max_ns\":", edge->wait_max_ns);
    put_number(out, ",\"blocked_ns\":", edge->blocked_ns);
    put_number(out, ",\"ready_ns\":", edge->ready_ns);
    ew_buf_text(out, "}\n");
    ew_buf_end_line(out);
}

/* ------------------------------------------------------------------------ tables */

static void put_thread_name(struct ew_buf *out, const struct ew_waits_view *view, uint32_t tid)
{
    const struct ew_waits_thread *thread = ew_waits_find(view->waits, tid);
    if (tid == 0)
        ew_buf_text(out, "(idle, interrupt)");
    else
        ew_buf_text(out, thread == NULL || thread->name[0] == '\0' ? "?" : thread->name);
    if (tid == 0)
        return;
    ew_buf_text(out, " (");
    ew_buf_u64(out, tid);
    ew_buf_char(out, ')');
}

static void cell_ns(struct ew_grid *grid, uint64_t ns)
{
    ew_units_ns(ew_grid_cell(grid), ns);
    ew_grid_end(grid);
}

static void cell_known(struct ew_grid *grid, bool known, uint64_t ns)
{
    if (known)
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

static int table_threads(const struct ew_waits_view *view, const struct lists *lists,
                         struct ew_buf *out, uint32_t width, bool color)
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
    for (uint32_t i = 0; i < lists->thread_count; i++) {
        const struct ew_waits_thread *thread = lists->threads[i];
        cell_count(&grid, thread->pid);
        put_thread_name(ew_grid_cell(&grid), view, thread->tid);
        ew_grid_end(&grid);
        cell_ns(&grid, thread->run_ns);
        cell_ns(&grid, thread->ready_ns);
        cell_ns(&grid, thread->sleep_ns);
        cell_ns(&grid, thread->blocked_ns);
        cell_known(&grid, view->faults, thread->fault_ns);
        cell_known(&grid, view->disks, thread->disk_ns);
        cell_count(&grid, thread->sleeps);
        cell_count(&grid, thread->blocks);
        cell_ns(&grid, thread->wait_max_ns);
    }
    int rc = ew_grid_print(&grid, out, ROWS_SHOWN);
    ew_grid_done(&grid);
    return rc;
}

static int table_edges(const struct ew_waits_view *view, const struct lists *lists,
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
    for (uint32_t i = 0; i < lists->edge_count; i++) {
        const struct ew_waits_edge *edge = lists->edges[i];
        put_thread_name(ew_grid_cell(&grid), view, edge->tid);
        ew_grid_end(&grid);
        put_thread_name(ew_grid_cell(&grid), view, edge->waker_tid);
        ew_grid_end(&grid);
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

/* Who ended most of its waiting; edges are of any process. */
static const struct ew_waits_edge *main_waker(const struct ew_waits_view *view, uint32_t tid)
{
    const struct ew_waits_edge *best = NULL, *edge;
    for (uint32_t i = 0; (edge = ew_waits_edge_at(view->waits, i)) != NULL; i++)
        if (edge->tid == tid && (best == NULL || edge->wait_ns > best->wait_ns))
            best = edge;
    return best;
}

static void put_chain(const struct ew_waits_view *view, uint32_t tid, struct ew_buf *out)
{
    uint32_t seen[CHAIN_LONGEST] = {tid};
    put_thread_name(out, view, tid);
    for (uint32_t length = 1; length < CHAIN_LONGEST; length++) {
        const struct ew_waits_edge *edge = main_waker(view, tid);
        if (edge == NULL)
            break;
        ew_buf_text(out, " <- ");
        ew_units_ns(out, edge->wait_ns);
        ew_buf_text(out, " - ");
        put_thread_name(out, view, edge->waker_tid);
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

static int write_tables(const struct ew_waits_view *view, const struct lists *lists,
                        struct ew_buf *out, uint32_t width, bool color)
{
    int rc = table_threads(view, lists, out, width, color);
    ew_buf_char(out, '\n');
    if (rc == 0)
        rc = table_edges(view, lists, out, width, color);
    ew_buf_text(out, "\nchains: who ended most of the waiting of whom\n");
    for (uint32_t i = 0; i < lists->thread_count && i < CHAINS_SHOWN; i++)
        if (main_waker(view, lists->threads[i]->tid) != NULL)
            put_chain(view, lists->threads[i]->tid, out);
    return rc;
}

int ew_waits_view_write(const struct ew_waits_view *view, struct ew_buf *out, bool json,
                        uint32_t width, bool color)
{
    struct lists lists = {0};
    int rc = collect(view, &lists);
    if (rc == 0 && json) {
        for (uint32_t i = 0; i < lists.thread_count; i++)
            json_thread(out, view, lists.threads[i]);
        for (uint32_t i = 0; i < lists.edge_count; i++)
            json_edge(out, view, lists.edges[i]);
    } else if (rc == 0) {
        rc = write_tables(view, &lists, out, width, color);
    }
    ew_free(lists.threads);
    ew_free(lists.edges);
    return rc == 0 ? out->error : rc;
}
