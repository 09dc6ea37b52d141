/* SPDX-License-Identifier: MIT */
/*
 * Registered providers are known to the machine, common ones to our tables. Those that register
 * nowhere (EventSource, most of TraceLogging) derive their GUID from their name by a published
 * rule: the SHA-1 of a fixed namespace and the upper-case name, as big-endian UTF-16; the first 16
 * bytes of the result, with version 5.
 */
#include "source/etw/etw.h"

#include <string.h>

#include "base/sha1.h"
#include "base/utf8.h"
#include "decode/guid.h"
#include "decode/manifests.h"
#include "source/etw/controller.h"

enum { WIDE_MAX = 256 };

static const uint8_t name_space[16] = {0x48, 0x2C, 0x2D, 0xB2, 0xC3, 0x90, 0x47, 0xC8,
                                       0x87, 0xF8, 0x1A, 0x15, 0xBF, 0xC1, 0x30, 0xFB};

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool same(const char *a, const char *b)
{
    while (*a != '\0' && upper(*a) == upper(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

bool ew_provider_hash(const char *name, uint8_t ret_guid[16])
{
    struct ew_sha1 sha1;
    uint8_t digest[20];
    size_t len = strlen(name);
    ew_sha1_init(&sha1);
    ew_sha1_add(&sha1, name_space, sizeof name_space);
    for (size_t i = 0; i < len;) {
        uint32_t code;
        i += ew_utf8_decode(name + i, len - i, &code);
        if (code == EW_UTF8_INVALID || code >= 0x10000)
            return false;
        if (code < 0x80)
            code = (uint32_t)(unsigned char)upper((char)code);
        uint8_t unit[2] = {(uint8_t)(code >> 8), (uint8_t)code};
        ew_sha1_add(&sha1, unit, sizeof unit);
    }
    ew_sha1_end(&sha1, digest);
    memcpy(ret_guid, digest, 16);
    ret_guid[7] = (uint8_t)((ret_guid[7] & 0x0F) | 0x50);
    return len > 0;
}

static bool find_table(const char *name, uint8_t ret_guid[16])
{
    const struct ew_table_provider *provider;
    for (unsigned i = 0; (provider = ew_tables(i)) != NULL; i++)
        if (!provider->classic && same(provider->name, name))
            return ew_guid_parse(provider->guid, strlen(provider->guid), ret_guid);
    return false;
}

static bool find_registered(const struct ew_etw_api *api, const char *name, uint8_t ret_guid[16])
{
    uint16_t wide[EW_ETW_NAME_MAX];
    return api->find_provider != NULL && ew_etw_wide_name(name, wide) &&
           api->find_provider(api->ctx, wide, ret_guid) == 0;
}

int ew_provider_find(const struct ew_etw_api *api, const char *name, uint8_t ret_guid[16],
                     struct ew_error *reterr)
{
    uint8_t guid[16];
    bool found = name[0] == '*' ? ew_provider_hash(name + 1, guid)
                                : ew_guid_parse(name, strlen(name), guid) ||
                                      find_registered(api, name, guid) || find_table(name, guid);
    if (!found) {
        ew_error_set(reterr, ETWATCH_EINVAL, 0, "no provider is named '%.80s'", name);
        ew_error_fix(reterr, "list providers with: logman query providers; or give the GUID, or "
                             "*NAME for a provider with a GUID derived from its name");
        return ETWATCH_EINVAL;
    }
    memcpy(ret_guid, guid, sizeof guid);
    return 0;
}
