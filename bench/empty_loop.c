/* SPDX-License-Identifier: MIT */
/*
 * The floor: a loop that wakes H times a second and does nothing. A monitor that delivers every
 * sample at once cannot cost less than this.
 */
#include "util.h"

int main(int argc, char **argv)
{
    if (argc != 3 || strcmp(argv[1], "--hz") != 0)
        die("usage: empty_loop --hz N");
    uint64_t hz = parse_u64(argv[2], "--hz");
    if (hz == 0)
        die("--hz: at least 1");
    uint64_t wakeups = 0, next_ns = clock_ns(CLOCK_MONOTONIC);
    volatile uint64_t seen = 0;
    printf("ready %ld\n", (long)getpid());
    fflush(stdout);
    end_with_parent(getppid());
    for (;;) {
        next_ns += 1000000000u / hz;
        sleep_until(CLOCK_MONOTONIC, next_ns);
        seen = ++wakeups;
    }
    return (int)seen;
}
