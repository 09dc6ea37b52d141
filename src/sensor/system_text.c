/* SPDX-License-Identifier: MIT */
/*
 * Pure parsers: lines of words in, numbers out. Lines are identified by their first word, so
 * kernels may add some; lines with too few words and invalid lines are ignored. Numbers saturate.
 */
#include "sensor/system_text.h"

#include <string.h>

#include "base/bytes.h"

enum { WORDS_MAX = 20 };

struct line {
    struct ew_span words[WORDS_MAX];
    uint32_t count;
};

static bool next_line(struct ew_bytes *in, struct line *ret_line)
{
    struct ew_span line;
    if (!ew_bytes_line(in, &line))
        return false;
    ret_line->count = 0;
    for (size_t at = 0; at < line.len && ret_line->count < WORDS_MAX;) {
        while (at < line.len && (line.text[at] == ' ' || line.text[at] == ':'))
            at++;
        size_t from = at;
        while (at < line.len && line.text[at] != ' ' && line.text[at] != ':')
            at++;
        if (at > from)
            ret_line->words[ret_line->count++] =
                (struct ew_span){.text = line.text + from, .len = at - from};
    }
    return true;
}

static uint64_t number(const struct line *line, uint32_t i)
{
    uint64_t value = 0;
    if (i >= line->count)
        return 0;
    for (size_t at = 0; at < line->words[i].len; at++) {
        char c = line->words[i].text[at];
        if (c < '0' || c > '9')
            break;
        if (value > (UINT64_MAX - 9) / 10)
            return UINT64_MAX;
        value = value * 10 + (uint64_t)(c - '0');
    }
    return value;
}

static uint64_t times(uint64_t value, uint64_t unit)
{
    return value > UINT64_MAX / unit ? UINT64_MAX : value * unit;
}

static void take_cpu(const struct line *line, struct ew_system_cpu *out)
{
    /* user nice system idle iowait irq softirq steal; guest time is already in user */
    out->total = out->busy = 0;
    for (uint32_t i = 1; i <= 8 && i < line->count; i++) {
        uint64_t ticks = number(line, i) & (UINT64_MAX >> 8);
        out->total += ticks;
        out->busy += i == 4 || i == 5 ? 0 : ticks;
    }
}

static void take_stat(const struct line *line, struct ew_system_text *out)
{
    struct ew_span name = line->words[0];
    if (ew_span_equals(name, "cpu")) {
        take_cpu(line, &out->all);
        out->has |= EW_SYSTEM_STAT;
    } else if (ew_span_starts(name, "cpu")) {
        struct line index = {.words = {{.text = name.text + 3, .len = name.len - 3}}, .count = 1};
        uint64_t cpu = number(&index, 0);
        if (cpu < EW_SYSTEM_CPUS_MAX) {
            take_cpu(line, &out->cpus[cpu]);
            out->cpu_count = cpu >= out->cpu_count ? (uint32_t)cpu + 1 : out->cpu_count;
        }
    } else if (ew_span_equals(name, "ctxt")) {
        out->switches = number(line, 1);
    } else if (ew_span_equals(name, "processes")) {
        out->forks = number(line, 1);
    } else if (ew_span_equals(name, "procs_running")) {
        out->running = number(line, 1);
    }
}

#define EACH_LINE(text, len, line) \
    struct ew_bytes in;            \
    struct line line;              \
    ew_bytes_init(&in, text, len); \
    while (next_line(&in, &line))  \
        if (line.count >= 2)

void ew_system_parse_stat(const void *text, size_t len, struct ew_system_text *out)
{
    EACH_LINE(text, len, line)
    take_stat(&line, out);
}

void ew_system_parse_meminfo(const void *text, size_t len, struct ew_system_text *out)
{
    EACH_LINE(text, len, line)
    {
        uint64_t bytes = times(number(&line, 1), 1024);
        if (ew_span_equals(line.words[0], "MemTotal")) {
            out->memory_total = bytes;
        } else if (ew_span_equals(line.words[0], "MemAvailable")) {
            out->memory_available = bytes;
            out->has |= EW_SYSTEM_MEMORY;
        } else if (ew_span_equals(line.words[0], "SwapTotal")) {
            out->swap_total = bytes;
        } else if (ew_span_equals(line.words[0], "SwapFree")) {
            out->swap_free = bytes;
            out->has |= EW_SYSTEM_SWAP;
        }
    }
}

void ew_system_parse_vmstat(const void *text, size_t len, struct ew_system_text *out)
{
    EACH_LINE(text, len, line)
    {
        if (ew_span_equals(line.words[0], "pgpgin")) {
            out->paged_in = times(number(&line, 1), 1024);
        } else if (ew_span_equals(line.words[0], "pgpgout")) {
            out->paged_out = times(number(&line, 1), 1024);
            out->has |= EW_SYSTEM_PAGING;
        }
    }
}

/* Whole disks only: bytes of partitions and stacked devices would count twice. */
static bool is_disk(struct ew_span name)
{
    static const char *const letters[] = {"sd", "hd", "vd", "xvd"};
    char last = name.len > 0 ? name.text[name.len - 1] : '0';
    bool digit = last >= '0' && last <= '9';
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
        if (ew_span_starts(name, letters[i]))
            return !digit;
    if (!ew_span_starts(name, "nvme") && !ew_span_starts(name, "mmcblk"))
        return false;
    return memchr(name.text, 'p', name.len) == NULL;
}

void ew_system_parse_diskstats(const void *text, size_t len, struct ew_system_text *out)
{
    enum { NAME = 2, READ_SECTORS = 5, WRITTEN_SECTORS = 9, SECTOR_BYTES = 512 };
    out->has |= EW_SYSTEM_DISKS;
    EACH_LINE(text, len, line)
    {
        if (line.count <= WRITTEN_SECTORS || !is_disk(line.words[NAME]))
            continue;
        out->disk_read += times(number(&line, READ_SECTORS), SECTOR_BYTES);
        out->disk_write += times(number(&line, WRITTEN_SECTORS), SECTOR_BYTES);
    }
}

void ew_system_parse_net_dev(const void *text, size_t len, struct ew_system_text *out)
{
    enum { RECEIVED = 1, SENT = 9 };
    EACH_LINE(text, len, line)
    {
        if (line.count <= SENT || ew_span_equals(line.words[0], "lo") ||
            memchr(line.words[0].text, '|', line.words[0].len) != NULL)
            continue;
        out->has |= EW_SYSTEM_NET;
        out->net_received += number(&line, RECEIVED);
        out->net_sent += number(&line, SENT);
    }
}

static double decimal(struct ew_span word)
{
    struct line whole = {.words = {word}, .count = 1};
    double value = (double)number(&whole, 0), unit = 1;
    const char *dot = memchr(word.text, '.', word.len);
    for (const char *at = dot; at != NULL && ++at < word.text + word.len;)
        if (*at >= '0' && *at <= '9')
            value += (unit /= 10) * (*at - '0');
    return value;
}

void ew_system_parse_loadavg(const void *text, size_t len, struct ew_system_text *out)
{
    EACH_LINE(text, len, line)
    {
        const char *slash =
            line.count < 4 ? NULL : memchr(line.words[3].text, '/', line.words[3].len);
        if (slash == NULL)
            continue;
        struct line total = {.count = 1};
        total.words[0].text = slash + 1;
        total.words[0].len = line.words[3].len - (size_t)(slash + 1 - line.words[3].text);
        for (uint32_t i = 0; i < 3; i++)
            out->load[i] = decimal(line.words[i]);
        out->threads = number(&total, 0);
        out->has |= EW_SYSTEM_LOAD;
    }
}

void ew_system_average(uint64_t runnable, uint64_t before_ms, uint64_t now_ms, double load[3])
{
    static const double length_ms[3] = {60e3, 300e3, 900e3};
    for (uint32_t i = 0; i < 3; i++) {
        double x = (double)(now_ms - before_ms) / length_ms[i];
        double kept = 1 / (1 + x + x * x / 2 + x * x * x / 6); /* approximates e^-x */
        load[i] =
            before_ms == 0 ? (double)runnable : load[i] * kept + (double)runnable * (1 - kept);
    }
}
