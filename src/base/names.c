/* SPDX-License-Identifier: MIT */
/* The fixed texts of the public interface: version, error texts, names of sources. */
#include <etwatch/etwatch.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *etwatch_version(void)
{
    return TEXT(ETWATCH_VERSION_MAJOR) "." TEXT(ETWATCH_VERSION_MINOR) "." TEXT(
        ETWATCH_VERSION_PATCH);
}

const char *etwatch_strerror(int code)
{
    switch (code) {
#define ETWATCH_X(name, number, text) \
    case number:                      \
        return text;
        ETWATCH_ERRORS(ETWATCH_X)
#undef ETWATCH_X
    default:
        return code >= 0 ? "no error" : "unknown error";
    }
}

const char *etwatch_source_name(uint32_t source)
{
    static const char *const names[] = {"auto", "etw", "etl", "ebpf", "poll"};
    return source < sizeof names / sizeof names[0] ? names[source] : NULL;
}
