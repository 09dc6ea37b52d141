/* SPDX-License-Identifier: MIT */
/* The texts and bytes that sensors of Windows read: names of GPU counters (first byte even), and
 * the metadata of energy meters. */
#include <string.h>

#include "fuzz.h"
#include "sensor/emi_metadata.h"
#include "sensor/wddm_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ew_emi_metadata metadata;
    uint16_t wide[EW_WDDM_NAME_MAX + 16];
    struct ew_wddm_name name;
    if (size < 2)
        return 0;
    if ((data[0] & 1) == 0) {
        size_t len = size - 1;
        len = len > sizeof wide / sizeof wide[0] ? sizeof wide / sizeof wide[0] : len;
        for (size_t i = 0; i < len; i++)
            wide[i] = data[1 + i];
        if (ew_wddm_name_parse(wide, len, &name)) {
            require(len <= EW_WDDM_NAME_MAX && len >= strlen("luid_0x0_0x0_phys_0"), "a name");
            require(name.has_pid || !name.has_eng || name.pid == 0, "no process, no id");
        }
        return 0;
    }
    if (!ew_emi_metadata_parse((uint16_t)(data[0] >> 1), data + 1, size - 1, &metadata))
        return 0;
    require(metadata.channel_count > 0 && metadata.channel_count <= EW_EMI_CHANNELS_MAX,
            "as many as there is room for");
    for (uint32_t i = 0; i < metadata.channel_count; i++)
        require(memchr(metadata.channels[i], 0, EW_EMI_NAME_SIZE) != NULL, "terminated");
    return 0;
}
