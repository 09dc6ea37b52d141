/* SPDX-License-Identifier: MIT */
/*
 * The kernel's driver of RAPL for perf (arch/x86/events/rapl.c; ABI/testing/sysfs-bus-event_source-
 * devices-events):
 *
 *   .../power/type                        the number of the PMU
 *   .../power/cpumask                     one CPU of each package: 0,18
 *   .../power/events/energy-pkg           event=0x02
 *   .../power/events/energy-pkg.scale     joules per count: 2.3283064365386962890625e-10
 *   .../power/events/energy-pkg.unit      Joules
 *
 * The kernel extends the counter of the hardware to 64 bits before it wraps.
 */
#include "sensor/rapl_perf_linux.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "sensor/sysfs_linux.h"

enum { PACKAGES_MAX = 16, FOLDER_SIZE = 1024 };

static const struct {
    const char *event, *part; /* NULL: the package itself; "psys": of the board */
} events[] = {
    {"energy-pkg", NULL},   {"energy-cores", "core"}, {"energy-gpu", "uncore"},
    {"energy-ram", "dram"}, {"energy-psys", "psys"},
};

static int open_event(uint32_t type, uint64_t config, int cpu)
{
    struct perf_event_attr attr = {.type = type, .size = sizeof attr, .config = config};
    return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void folder_of(const char *sys_root, char *folder, size_t size)
{
    (void)snprintf(folder, size, "%.400s/bus/event_source/devices/power", sys_root);
}

bool ew_rapl_perf_has(const char *sys_root)
{
    char folder[FOLDER_SIZE];
    uint64_t type = 0;
    folder_of(sys_root, folder, sizeof folder);
    return ew_sysfs_read_number(folder, "type", &type);
}

static uint32_t digits(struct ew_bytes *in, double *ret_value)
{
    uint32_t count = 0;
    for (uint8_t at; in->pos < in->size && (at = in->data[in->pos]) >= '0' && at <= '9'; count++) {
        *ret_value = *ret_value * 10 + (at - '0');
        in->pos++;
    }
    return count;
}

/* A number as the kernel prints it, in any locale of the program: 2.3283064365386962890625e-10. */
static bool parse_scale(const char *text, double *ret_scale)
{
    struct ew_bytes in;
    double value = 0, exponent = 0;
    uint32_t behind = 0;
    ew_bytes_init(&in, text, strlen(text));
    bool known = digits(&in, &value) > 0;
    if (ew_bytes_accept(&in, "."))
        behind = digits(&in, &value);
    int power = -(int)behind;
    if (ew_bytes_accept(&in, "e")) {
        bool negative = ew_bytes_accept(&in, "-");
        (void)(!negative && ew_bytes_accept(&in, "+"));
        known = digits(&in, &exponent) > 0 && exponent < 100 && known;
        power += known ? (negative ? -(int)exponent : (int)exponent) : 0;
    }
    for (; power > 0; power--)
        value *= 10;
    for (; power < 0; power++)
        value /= 10;
    *ret_scale = value;
    return known && value > 0 && value < 1;
}

/* The event and its scale; false: this machine does not have it. */
static bool read_event(const char *folder, const char *event, uint64_t *ret_config,
                       double *ret_scale)
{
    char name[64], text[64];
    struct ew_bytes in;
    (void)snprintf(name, sizeof name, "events/%s", event);
    if (!ew_sysfs_read_text(folder, name, text, sizeof text))
        return false;
    ew_bytes_init(&in, text, strlen(text));
    if (!ew_bytes_accept(&in, "event=0x"))
        return false;
    *ret_config = ew_bytes_hex_u64(&in);
    (void)snprintf(name, sizeof name, "events/%s.unit", event);
    if (!ew_bytes_ok(&in) || !ew_sysfs_read_text(folder, name, text, sizeof text) ||
        strcmp(text, "Joules") != 0)
        return false;
    (void)snprintf(name, sizeof name, "events/%s.scale", event);
    return ew_sysfs_read_text(folder, name, text, sizeof text) && parse_scale(text, ret_scale);
}

/* "0,18" or "0-1". */
static uint32_t read_cpus(const char *folder, uint32_t *cpus)
{
    char text[256];
    struct ew_bytes in;
    uint32_t count = 0;
    if (!ew_sysfs_read_text(folder, "cpumask", text, sizeof text))
        return 0;
    ew_bytes_init(&in, text, strlen(text));
    do {
        uint64_t first = ew_bytes_dec_u64(&in), last = first;
        if (ew_bytes_accept(&in, "-"))
            last = ew_bytes_dec_u64(&in);
        if (!ew_bytes_ok(&in) || last > 65535)
            break;
        for (; first <= last && count < PACKAGES_MAX; first++)
            cpus[count++] = (uint32_t)first;
    } while (ew_bytes_accept(&in, ","));
    return count;
}

static uint64_t package_of(const struct ew_sensor_config *config, uint32_t cpu, uint32_t otherwise)
{
    char folder[FOLDER_SIZE];
    uint64_t package = 0;
    (void)snprintf(folder, sizeof folder, "%.400s/devices/system/cpu/cpu%u/topology",
                   config->sys_root, cpu);
    return ew_sysfs_read_number(folder, "physical_package_id", &package) ? package : otherwise;
}

uint32_t ew_rapl_perf_open(const struct ew_sensor_config *config, struct ew_rapl_counter *counters,
                           uint32_t max, int *ret_os_code)
{
    int (*open_fn)(uint32_t, uint64_t, int) =
        config->perf_open != NULL ? config->perf_open : open_event;
    char folder[FOLDER_SIZE];
    uint32_t cpus[PACKAGES_MAX], count = 0;
    uint64_t type = 0;
    *ret_os_code = 0;
    folder_of(config->sys_root, folder, sizeof folder);
    if (!ew_sysfs_read_number(folder, "type", &type) || type > UINT32_MAX)
        return 0;
    uint32_t packages = read_cpus(folder, cpus);
    for (uint32_t p = 0; p < packages; p++) {
        uint64_t package = package_of(config, cpus[p], p);
        for (size_t e = 0; e < sizeof events / sizeof events[0] && count < max; e++) {
            const char *part = events[e].part;
            bool board = part != NULL && strcmp(part, "psys") == 0;
            struct ew_rapl_counter *counter = &counters[count];
            uint64_t event = 0;
            double joules = 0;
            if ((board && p > 0) || !read_event(folder, events[e].event, &event, &joules))
                continue;
            counter->fd = open_fn((uint32_t)type, event, (int)cpus[p]);
            if (counter->fd < 0) {
                *ret_os_code = *ret_os_code == 0 ? errno : *ret_os_code;
                continue;
            }
            counter->uj_per_count = joules * 1e6;
            if (board)
                (void)snprintf(counter->id, sizeof counter->id, "psys");
            else
                (void)snprintf(counter->id, sizeof counter->id, "package-%u%s%s", (unsigned)package,
                               part != NULL ? "/" : "", part != NULL ? part : "");
            count++;
        }
    }
    return count;
}

bool ew_rapl_perf_read(int fd, double uj_per_count, uint64_t *ret_uj)
{
    uint64_t count = 0;
    (void)lseek(fd, 0, SEEK_SET); /* for files of tests; a counter has no position */
    if (read(fd, &count, sizeof count) != (ssize_t)sizeof count)
        return false;
    double uj = (double)count * uj_per_count;
    if (!(uj < 9e18))
        return false;
    *ret_uj = (uint64_t)uj;
    return true;
}
