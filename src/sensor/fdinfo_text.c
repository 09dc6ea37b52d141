/* SPDX-License-Identifier: MIT */
/*
 * A pure parser. The keys are those of Documentation/gpu/drm-usage-stats.rst of the Linux kernel:
 *
 *   drm-driver:     amdgpu
 *   drm-pdev:       0000:03:00.0
 *   drm-client-id:  7
 *   drm-engine-gfx: 123456789 ns
 *   drm-resident-vram: 2048 KiB
 */
#include "sensor/fdinfo_text.h"

#include <string.h>

#include "base/bytes.h"

/* The number after the key, times its unit; false: none, or too large. */
static bool number(struct ew_span value, uint64_t *ret_number)
{
    struct ew_bytes in;
    ew_bytes_init(&in, value.text, value.len);
    uint64_t count = ew_bytes_dec_u64(&in);
    if (!ew_bytes_ok(&in))
        return false;
    ew_bytes_skip_spaces(&in);
    uint64_t unit = ew_bytes_accept(&in, "KiB")   ? UINT64_C(1) << 10
                    : ew_bytes_accept(&in, "MiB") ? UINT64_C(1) << 20
                    : ew_bytes_accept(&in, "GiB") ? UINT64_C(1) << 30
                                                  : 1;
    if (count > UINT64_MAX / 2 / unit)
        return false;
    *ret_number = count * unit;
    return true;
}

/* Sums of foreign numbers do not wrap. */
static void add(uint64_t *sum, uint64_t count)
{
    *sum = count > UINT64_MAX - *sum ? UINT64_MAX : *sum + count;
}

struct sums {
    uint64_t resident, memory;
    bool has_resident, has_memory;
};

/* amdgpu: dec, enc, enc_1. Those of Intel (video) do both. */
static void take_codec(struct ew_fdinfo *info, struct ew_span key, uint64_t count)
{
    bool encodes = ew_span_starts(key, "drm-engine-enc");
    if (!encodes && !ew_span_starts(key, "drm-engine-dec"))
        return;
    add(encodes ? &info->encoder_ns : &info->decoder_ns, count);
    info->has_codecs = true;
}

static void take(struct ew_fdinfo *info, struct sums *sums, struct ew_span key,
                 struct ew_span value)
{
    uint64_t count = 0;
    if (ew_span_equals(key, "drm-driver")) {
        (void)ew_span_copy(value, info->driver, sizeof info->driver);
    } else if (ew_span_equals(key, "drm-pdev")) {
        (void)ew_span_copy(value, info->pdev, sizeof info->pdev);
    } else if (!number(value, &count)) {
        return;
    } else if (ew_span_equals(key, "drm-client-id")) {
        info->client = count;
        info->has_client = true;
    } else if (ew_span_starts(key, "drm-engine-capacity-")) {
        return;
    } else if (ew_span_starts(key, "drm-engine-")) {
        add(&info->engines_ns, count);
        info->has_engines = true;
        take_codec(info, key, count);
    } else if (ew_span_starts(key, "drm-total-cycles-")) {
        info->total_cycles = count > info->total_cycles ? count : info->total_cycles;
        info->has_cycles = true;
    } else if (ew_span_starts(key, "drm-cycles-")) {
        add(&info->cycles, count);
    } else if (ew_span_starts(key, "drm-resident-")) {
        add(&sums->resident, count);
        sums->has_resident = true;
    } else if (ew_span_starts(key, "drm-memory-") && !ew_span_equals(key, "drm-memory-cpu")) {
        add(&sums->memory, count);
        sums->has_memory = true;
    }
}

bool ew_fdinfo_parse(const void *text, size_t len, struct ew_fdinfo *ret_info)
{
    struct ew_bytes in;
    struct ew_span line;
    struct sums sums = {0};
    memset(ret_info, 0, sizeof *ret_info);
    ew_bytes_init(&in, text, len);
    while (ew_bytes_line(&in, &line)) {
        size_t at = 0;
        while (at < line.len && line.text[at] != ':')
            at++;
        if (at == line.len)
            continue;
        struct ew_span key = {line.text, at};
        for (at++; at < line.len && (line.text[at] == ' ' || line.text[at] == '\t');)
            at++;
        take(ret_info, &sums, key, (struct ew_span){line.text + at, line.len - at});
    }
    ret_info->has_memory = sums.has_resident || sums.has_memory;
    ret_info->memory_bytes = sums.has_resident ? sums.resident : sums.memory;
    return ret_info->driver[0] != '\0' && ret_info->has_client;
}
