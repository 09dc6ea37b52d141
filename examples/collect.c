/* SPDX-License-Identifier: MIT */
/*
 * Samples directly into columns, without caller code per sample.
 *
 * Watches a process and its descendants at 100 Hz for the given time and writes the samples as an
 * Arrow file for pandas, polars and duckdb. Usage: collect PID SECONDS OUT.arrow
 */
#include <etwatch/arrow.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int to_file(void *file, const void *bytes, size_t len)
{
    return fwrite(bytes, 1, len, file) == len ? 0 : ETWATCH_EOS;
}

static void sleep_s(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    nanosleep(&time, NULL);
}

/* The library's own thread fills the collector while this one sleeps. */
static int watch(uint32_t pid, double seconds, struct etwatch_collector *collector,
                 struct etwatch_error_info *error)
{
    struct etwatch_config config = {
        .size = sizeof config,
        .hz = 100,
        .pids = &pid,
        .pid_count = 1,
        .callbacks = {.size = sizeof config.callbacks,
                      .on_samples = etwatch_collector_on_samples,
                      .ctx = collector},
    };
    struct etwatch_monitor *monitor = NULL;
    int rc = etwatch_monitor_new(&config, &monitor, error);
    if (rc == 0)
        rc = etwatch_monitor_start(monitor, error);
    if (rc == 0) {
        sleep_s(seconds);
        rc = etwatch_monitor_stop(monitor);
    }
    etwatch_monitor_free(monitor);
    return rc;
}

int main(int argc, char **argv)
{
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_collector *collector = NULL;
    struct ArrowArrayStream stream;
    uint64_t rows = 0;
    if (argc != 4) {
        fprintf(stderr, "usage: collect PID SECONDS OUT.arrow\n");
        return 2;
    }
    FILE *out = fopen(argv[3], "wb");
    if (out == NULL) {
        perror(argv[3]);
        return 1;
    }
    int rc = etwatch_collector_new(NULL, &collector, &error);
    if (rc == 0)
        rc = watch((uint32_t)strtoul(argv[1], NULL, 10), strtod(argv[2], NULL), collector, &error);
    if (rc == 0)
        rc = etwatch_collector_table(collector, ETWATCH_TABLE_SAMPLES, 0, &stream);
    if (rc == 0)
        rc = etwatch_arrow_write(&stream, to_file, out, &rows, &error);
    etwatch_collector_free(collector);
    if (fclose(out) != 0 && rc == 0)
        rc = ETWATCH_EOS;
    if (rc < 0) {
        fprintf(stderr, "collect: %s\n",
                error.message[0] != '\0' ? error.message : etwatch_strerror(rc));
        return 1;
    }
    printf("%s: %" PRIu64 " samples\n", argv[3], rows);
    return 0;
}
