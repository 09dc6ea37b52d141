/* SPDX-License-Identifier: MIT */
/* DRM fdinfo: any bytes. */
#include <stdlib.h>
#include <string.h>

#include "sensor/fdinfo_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_fdinfo info;
    bool client = ew_fdinfo_parse(data, size, &info);
    if (client != (info.driver[0] != '\0' && info.has_client))
        abort();
    if (memchr(info.driver, '\0', sizeof info.driver) == NULL ||
        memchr(info.pdev, '\0', sizeof info.pdev) == NULL)
        abort();
    if (!info.has_memory && info.memory_bytes != 0)
        abort();
    return 0;
}
