/* SPDX-License-Identifier: MIT */
/*
 * The rows of top in the order of the screen: those of the rollup that pass the filter, sorted, or
 * as a tree in which each process is followed by its children. Parents are matched by pid and must
 * have started before the child, so that a reused pid is not a parent; a loop of parents, which
 * only damaged input has, becomes roots.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { DEPTH_MAX = 64 };

static const uint32_t NONE = UINT32_MAX; /* no entry; C11 limits enumerators to int */

void ew_screen_list_done(struct ew_top_list *list)
{
    ew_free(list->entries);
    ew_free(list->nodes);
    ew_free(list->by_pid);
    *list = (struct ew_top_list){0};
}

static bool reserve(struct ew_top_list *list, uint32_t count)
{
    if (count <= list->size)
        return true;
    ew_screen_list_done(list);
    list->entries = ew_calloc(count, sizeof *list->entries);
    list->nodes = ew_calloc(count, sizeof *list->nodes);
    list->by_pid = ew_calloc(count, sizeof *list->by_pid);
    if (list->entries == NULL || list->nodes == NULL || list->by_pid == NULL) {
        ew_screen_list_done(list);
        return false;
    }
    list->size = count;
    return true;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether text contains part; the case of ASCII letters is ignored. */
static bool contains(const char *text, const char *part)
{
    for (; text != NULL && *text != '\0'; text++) {
        size_t i = 0;
        while (part[i] != '\0' && lower(text[i]) == lower(part[i]))
            i++;
        if (part[i] == '\0')
            return true;
    }
    return part[0] == '\0';
}

static bool passes(const struct ew_screen *screen, const struct etwatch_sample *sum)
{
    char *end;
    if (sum->type == ETWATCH_TYPE_THREAD && screen->hide_threads)
        return false;
    if (screen->filter[0] == '\0')
        return true;
    unsigned long pid = strtoul(screen->filter, &end, 10);
    return (*end == '\0' && pid == sum->pid) || contains(sum->name, screen->filter) ||
           contains(sum->user, screen->filter);
}

static int compare_pid(const void *left, const void *right)
{
    const struct ew_top_pid *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* The node of the newest process with this pid that started before the child. */
static uint32_t find_parent(const struct ew_top_list *list, uint32_t count, uint32_t pid,
                            uint64_t child_start_ns)
{
    uint32_t low = 0, high = count, found = NONE;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct ew_top_pid *at = &list->by_pid[middle];
        bool before = at->pid < pid || (at->pid == pid && at->start_ns <= child_start_ns);
        if (before && at->pid == pid)
            found = at->node;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return found;
}

static void append_child(struct ew_top_list *list, uint32_t parent, uint32_t child)
{
    struct ew_top_node *node = &list->nodes[parent];
    if (node->first_child == NONE)
        node->first_child = child;
    else
        list->nodes[node->last_child].next_sibling = child;
    node->last_child = child;
    list->nodes[child].parent = parent;
}

/* Threads follow their process in the sorted rows and become its first children. */
static void link_nodes(struct ew_top_list *list, const struct etwatch_rollup *rollup)
{
    struct etwatch_rollup_row row = {.size = sizeof row};
    uint32_t processes = 0, process = NONE;
    for (uint32_t i = 0; i < list->count; i++) {
        list->nodes[i] = (struct ew_top_node){
            NONE, NONE, NONE, NONE, list->entries[i].row, false, list->entries[i].identity};
        (void)etwatch_rollup_row(rollup, list->entries[i].row, &row);
        if (row.sum->type != ETWATCH_TYPE_THREAD) {
            list->by_pid[processes++] = (struct ew_top_pid){row.sum->pid, i, row.sum->start_ns};
            process = i;
        } else if (process != NONE) {
            append_child(list, process, i);
        }
    }
    qsort(list->by_pid, processes, sizeof *list->by_pid, compare_pid);
    for (uint32_t i = 0; i < list->count; i++) {
        (void)etwatch_rollup_row(rollup, list->entries[i].row, &row);
        if (row.sum->type == ETWATCH_TYPE_THREAD)
            continue;
        uint32_t parent = find_parent(list, processes, row.sum->ppid, row.sum->start_ns);
        if (parent != NONE && parent != i)
            append_child(list, parent, i);
    }
}

/* Writes the entries below root, depth first; nodes that were visited are not entered again. */
static void walk(struct ew_top_list *list, uint32_t root)
{
    uint32_t at = root;
    uint16_t depth = 0;
    while (at != NONE) {
        struct ew_top_node *node = &list->nodes[at];
        if (!node->visited) {
            node->visited = true;
            list->entries[list->count++] = (struct ew_top_entry){
                node->identity, node->row, depth < DEPTH_MAX ? depth : DEPTH_MAX};
            if (node->first_child != NONE) {
                at = node->first_child;
                depth++;
                continue;
            }
        }
        while (at != root && list->nodes[at].next_sibling == NONE) {
            at = list->nodes[at].parent;
            depth--;
        }
        at = at == root ? (uint32_t)NONE : list->nodes[at].next_sibling;
    }
}

static void order_as_tree(struct ew_top_list *list, const struct etwatch_rollup *rollup)
{
    uint32_t count = list->count;
    link_nodes(list, rollup);
    list->count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (list->nodes[i].parent == NONE)
            walk(list, i);
    /* The rest are loops: entered at one node, each is cut where it closes. */
    for (uint32_t i = 0; i < count; i++) {
        if (list->nodes[i].visited)
            continue;
        list->nodes[i].parent = NONE;
        walk(list, i);
    }
}

static struct ew_top_identity identity_of(const struct etwatch_sample *sum)
{
    struct ew_top_identity identity = {sum->pid, sum->tid, sum->start_ns, {0}};
    if (sum->name != NULL)
        (void)snprintf(identity.name, sizeof identity.name, "%s", sum->name);
    return identity;
}

int ew_screen_list_fill(struct ew_top_list *list, const struct ew_screen *screen,
                        struct etwatch_rollup *rollup)
{
    struct etwatch_rollup_row row = {.size = sizeof row};
    int rc = etwatch_rollup_sort(rollup, ew_screen_sort_metric(screen->sort),
                                 screen->active_only ? (uint32_t)ETWATCH_ROLLUP_ACTIVE : 0);
    if (rc < 0)
        return rc;
    if (!reserve(list, (uint32_t)rc))
        return ETWATCH_ENOMEM;
    list->count = 0;
    for (uint32_t i = 0; i < (uint32_t)rc && etwatch_rollup_row(rollup, i, &row) == 0; i++)
        if (passes(screen, row.sum))
            list->entries[list->count++] = (struct ew_top_entry){identity_of(row.sum), i, 0};
    if (screen->tree)
        order_as_tree(list, rollup);
    return 0;
}
