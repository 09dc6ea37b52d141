/* SPDX-License-Identifier: MIT */
/* The /proc files about the whole machine: any bytes, every parser. */
#include <stdlib.h>

#include "sensor/system_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ew_system_text text;
    text = (struct ew_system_text){0};
    ew_system_parse_stat(data, size, &text);
    ew_system_parse_meminfo(data, size, &text);
    ew_system_parse_vmstat(data, size, &text);
    ew_system_parse_diskstats(data, size, &text);
    ew_system_parse_net_dev(data, size, &text);
    ew_system_parse_loadavg(data, size, &text);
    if (text.cpu_count > EW_SYSTEM_CPUS_MAX)
        abort();
    return 0;
}
