/* SPDX-License-Identifier: MIT */
/*
 * Shared by every bench program: clocks, arguments, one way to fail. Header only, so that each
 * program is one translation unit without any code of the library: a peer must not share code with
 * what it is compared with.
 */
#ifndef BENCH_UTIL_H
#define BENCH_UTIL_H

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

UNUSED __attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    exit(1);
}

UNUSED static uint64_t clock_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

UNUSED static struct timespec to_timespec(uint64_t ns)
{
    struct timespec ts;
    ts.tv_sec = (time_t)(ns / 1000000000u);
    ts.tv_nsec = (long)(ns % 1000000000u);
    return ts;
}

UNUSED static void sleep_until(clockid_t clock, uint64_t ns)
{
    struct timespec ts = to_timespec(ns);
    while (clock_nanosleep(clock, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
}

UNUSED static uint64_t parse_u64(const char *text, const char *what)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-')
        die("%s: a number is needed, not '%s'", what, text);
    return value;
}

/* The value after option argv[*at], which is advanced past it. */
UNUSED static const char *option_value(int argc, char **argv, int *at)
{
    if (*at + 1 >= argc)
        die("%s: a value is missing", argv[*at]);
    return argv[++*at];
}

/* Zeroed pages; never freed, the programs are short. */
UNUSED static void *pages(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        die("mmap of %zu bytes: %s", bytes, strerror(errno));
    return memory;
}

/*
 * Ends this process when its parent exits; `parent` closes the race with a parent that is already
 * gone.
 */
UNUSED static void end_with_parent(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

/* The next line of stdin without its newline; false at the end of input. */
UNUSED static bool read_command(char *line, int size)
{
    if (fgets(line, size, stdin) == NULL)
        return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

#endif
