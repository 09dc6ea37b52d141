/* SPDX-License-Identifier: MIT */
/*
 * A span marked by etwatch_span_begin and _end: without a watcher, where it must cost next to
 * nothing, and with one that reads the ring. CPU time of the marking thread; the best of the
 * rounds, because what interrupts the thread is no cost of a mark.
 */
#include <stdio.h>
#include <stdlib.h>

#include <etwatch/span.h>

#include "os/os.h"
#include "span/ring.h"

enum { ROUNDS = 50, SPANS = 10000 };

static void ignore(void *ctx, const struct etwatch_span *span)
{
    (void)ctx;
    (void)span;
}

/* Nanoseconds of one span. */
static double measure(struct etwatch_marks *marks, struct etwatch_receiver *receiver)
{
    double best_ns = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start_ns = ew_os_thread_cpu_ns();
        for (int i = 0; i < SPANS; i++) {
            uint64_t begun = etwatch_span_begin(marks);
            etwatch_span_end(marks, begun, "step", "session");
        }
        double ns = (double)(ew_os_thread_cpu_ns() - start_ns) / SPANS;
        best_ns = ns < best_ns ? ns : best_ns;
        if (receiver != NULL && etwatch_receiver_read(receiver, 0, 0, ignore, NULL) < SPANS)
            exit(1);
    }
    return best_ns;
}

int main(void)
{
    struct etwatch_receiver *receiver = NULL;
    struct etwatch_marks *marks = NULL;
    if (unsetenv(EW_SPANS_RING_VARIABLE) != 0 || etwatch_marks_new(&marks) < 0)
        return 1;
    printf("{\"name\": \"a span without a watcher\", \"unit\": \"ns\", \"value\": %.1f, "
           "\"bar\": 20}\n",
           measure(marks, NULL));
    etwatch_marks_free(marks);
    if (etwatch_receiver_new(&receiver, NULL) < 0 ||
        setenv(EW_SPANS_RING_VARIABLE, etwatch_receiver_address(receiver), 1) != 0 ||
        etwatch_marks_new(&marks) < 0)
        return 1;
    printf("{\"name\": \"a span with a watcher\", \"unit\": \"ns\", \"value\": %.1f, "
           "\"bar\": 600}\n",
           measure(marks, receiver));
    etwatch_marks_free(marks);
    etwatch_receiver_free(receiver);
    return 0;
}
