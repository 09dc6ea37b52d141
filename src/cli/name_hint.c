/* SPDX-License-Identifier: MIT */
/*
 * What to say when a filter by name matched no process: the pattern, and names of running processes
 * that are like it. The list is read once, after the watch, and only then.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/process.h>

#include "base/alloc.h"
#include "base/buf.h"

enum { PROCESSES_MAX = 4096, NAME_BYTES = 64, SHOWN = 3, FAR = 3 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Letters only: of a pattern its * and ? are left out. */
static size_t simplify(const char *text, char to[NAME_BYTES])
{
    size_t len = 0;
    for (; *text != '\0' && len + 1 < NAME_BYTES; text++)
        if (*text != '*' && *text != '?')
            to[len++] = lower(*text);
    to[len] = '\0';
    return len;
}

/* Levenshtein distance to the beginning of b that is nearest. */
static size_t distance(const char *a, const char *b)
{
    size_t row[NAME_BYTES], len = strlen(b), best;
    for (size_t j = 0; j <= len; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= len; j++) {
            size_t above = row[j], least = (above < row[j - 1] ? above : row[j - 1]) + 1;
            size_t change = corner + (a[i - 1] != b[j - 1]);
            row[j] = least < change ? least : change;
            corner = above;
        }
    }
    best = row[len];
    for (size_t j = 1; j < len; j++)
        best = row[j] < best ? row[j] : best;
    return best;
}

/* 0: contains it; FAR or more: not like it. */
static size_t likeness(const char *pattern, const char *name)
{
    char a[NAME_BYTES], b[NAME_BYTES];
    size_t len = simplify(pattern, a);
    if (len == 0 || simplify(name, b) == 0)
        return FAR;
    if (strstr(b, a) != NULL)
        return 0;
    size_t far = distance(a, b);
    return far * 3 <= len ? far : FAR;
}

struct near {
    size_t far;
    char name[NAME_BYTES];
};

static void keep_nearest(struct near nearest[SHOWN], const char *name, size_t far)
{
    for (int i = 0; i < SHOWN; i++)
        if (strcmp(nearest[i].name, name) == 0)
            return;
    for (int i = 0; i < SHOWN && far < FAR; i++) {
        if (far >= nearest[i].far)
            continue;
        memmove(&nearest[i + 1], &nearest[i], (size_t)(SHOWN - 1 - i) * sizeof nearest[0]);
        nearest[i].far = far;
        (void)snprintf(nearest[i].name, sizeof nearest[i].name, "%s", name);
        return;
    }
}

static void find_near(const char *pattern, struct near nearest[SHOWN])
{
    struct etwatch_process_id *ids = ew_calloc(PROCESSES_MAX, sizeof *ids);
    int count = ids == NULL ? 0 : etwatch_process_list(ids, PROCESSES_MAX, NULL);
    for (int i = 0; i < count && i < PROCESSES_MAX; i++) {
        struct etwatch_sample sample = {.size = sizeof sample};
        char name[NAME_BYTES];
        if (etwatch_process_read(ids[i].pid, 0, &sample, name, sizeof name, NULL, NULL) == 0 &&
            sample.name != NULL)
            keep_nearest(nearest, name, likeness(pattern, name));
    }
    ew_free(ids);
}

void ew_cli_hint_names(const struct ew_options *options, bool live)
{
    for (uint32_t i = 0; i < options->names.count && !options->quiet; i++) {
        struct near nearest[SHOWN];
        char shown[SHOWN * (NAME_BYTES + 2)] = "";
        memset(nearest, 0, sizeof nearest);
        for (int k = 0; k < SHOWN; k++)
            nearest[k].far = FAR;
        if (live)
            find_near(options->names.words[i], nearest);
        size_t used = 0;
        for (int k = 0; k < SHOWN && nearest[k].far < FAR; k++)
            used += (size_t)snprintf(shown + used, sizeof shown - used, "%s%s", k == 0 ? "" : ", ",
                                     nearest[k].name);
        ew_print_info(options, "no process was named \"%s\"%s%s", options->names.words[i],
                      shown[0] != '\0' ? "; similar names: " : "", shown);
    }
}
