/* SPDX-License-Identifier: MIT */
/* Fills struct ew_error; long texts are truncated. */
#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/sized.h"

int ew_error_set(struct ew_error *err, int code, int64_t os_code, const char *format, ...)
{
    if (err == NULL)
        return code;
    err->code = code;
    err->os_code = os_code;
    err->offset = 0;
    err->fix[0] = '\0';
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

void ew_error_fix(struct ew_error *err, const char *format, ...)
{
    if (err == NULL)
        return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->fix, sizeof err->fix, format, args);
    va_end(args);
}

void ew_error_out(struct etwatch_error_info *reterr, const struct ew_error *err, int rc)
{
    if (reterr == NULL)
        return;
    const bool empty = err->message[0] == '\0';
    struct etwatch_error_info info = {
        .size = sizeof info,
        .code = rc,
        .os_code = empty ? 0 : err->os_code,
        .offset = empty ? 0 : err->offset,
    };
    (void)snprintf(info.message, sizeof info.message, "%s",
                   empty ? etwatch_strerror(rc) : err->message);
    (void)snprintf(info.fix, sizeof info.fix, "%s", empty ? "" : err->fix);
    (void)ew_sized_out(reterr, &info, sizeof info);
}
