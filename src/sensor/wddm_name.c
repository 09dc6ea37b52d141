/* SPDX-License-Identifier: MIT */
#include "sensor/wddm_name.h"

#include <string.h>

struct cursor {
    const char *at, *end;
};

static bool take_text(struct cursor *in, const char *text)
{
    size_t len = strlen(text);
    if ((size_t)(in->end - in->at) < len || memcmp(in->at, text, len) != 0)
        return false;
    in->at += len;
    return true;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

static bool take_number(struct cursor *in, uint32_t base, uint32_t *ret_value)
{
    uint64_t value = 0;
    const char *start = in->at;
    for (; in->at < in->end && (uint32_t)digit_of(*in->at) < base; in->at++) {
        value = value * base + (uint32_t)digit_of(*in->at);
        if (value > UINT32_MAX)
            return false;
    }
    *ret_value = (uint32_t)value;
    return in->at > start;
}

static bool take_adapter(struct cursor *in, struct ew_wddm_name *name)
{
    uint32_t high = 0, low = 0;
    if (!take_text(in, "luid_0x") || !take_number(in, 16, &high) || !take_text(in, "_0x") ||
        !take_number(in, 16, &low) || !take_text(in, "_phys_") || !take_number(in, 10, &name->phys))
        return false;
    name->luid = (uint64_t)high << 32 | low;
    return true;
}

/* The type of the engine is free text of the driver; these are Windows' own. Others for video, as
 * AMD's VideoCodec, do both. */
static enum ew_wddm_codec codec_of(struct cursor *in)
{
    if (!take_text(in, "Video"))
        return EW_WDDM_NO_CODEC;
    if (take_text(in, "Encode"))
        return EW_WDDM_ENCODER;
    if (take_text(in, "Decode"))
        return EW_WDDM_DECODER;
    return take_text(in, "Processing") ? EW_WDDM_NO_CODEC : EW_WDDM_BOTH;
}

bool ew_wddm_name_parse(const uint16_t *wide, size_t len, struct ew_wddm_name *ret_name)
{
    char text[EW_WDDM_NAME_MAX];
    uint32_t part = 0;
    if (len > sizeof text)
        return false;
    for (size_t i = 0; i < len; i++)
        text[i] = wide[i] < 0x80 ? (char)wide[i] : '?';
    struct cursor in = {text, text + len};
    memset(ret_name, 0, sizeof *ret_name);
    ret_name->has_pid = take_text(&in, "pid_");
    if (ret_name->has_pid && (!take_number(&in, 10, &ret_name->pid) || !take_text(&in, "_")))
        return false;
    if (!take_adapter(&in, ret_name))
        return false;
    if (take_text(&in, "_part_"))
        return take_number(&in, 10, &part) && in.at == in.end;
    ret_name->has_eng = take_text(&in, "_eng_");
    if (!ret_name->has_eng)
        return in.at == in.end;
    if (!take_number(&in, 10, &ret_name->eng) || !take_text(&in, "_engtype_"))
        return false;
    ret_name->codec = codec_of(&in);
    return true;
}
