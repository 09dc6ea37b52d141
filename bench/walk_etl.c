/* SPDX-License-Identifier: MIT */
/*
 * The C reader's own time: every event of a recording by etwatch_trace_next, in order and with its
 * names: the reference for tables of the same events.
 *
 * walk_etl FILE [fields]      with "fields", the fields of every event are decoded too
 */
#include <stdio.h>
#include <time.h>

#include <etwatch/trace.h>

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

int main(int argc, char **argv)
{
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_trace_event event = {.size = sizeof event};
    struct etwatch_trace *trace;
    const char *path = argc > 1 ? argv[1] : "";
    int fields = argc > 2;
    double began = now_s();
    if (etwatch_trace_open(&path, 1, NULL, &trace, &error) != 0) {
        fprintf(stderr, "walk_etl: %s\n", error.message);
        return 1;
    }
    uint64_t count = 0;
    int rc;
    while ((rc = etwatch_trace_next(trace, &event, &error)) > 0) {
        count++;
        if (fields && etwatch_trace_fields(trace, &event) < 0)
            continue; /* some have no schema */
    }
    if (rc < 0)
        fprintf(stderr, "walk_etl: %s\n", error.message);
    else
        printf("{\"events\": %llu, \"seconds\": %.6f}\n", (unsigned long long)count,
               now_s() - began);
    etwatch_trace_free(trace);
    return rc < 0;
}
