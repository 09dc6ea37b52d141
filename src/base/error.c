/* SPDX-License-Identifier: MIT */
/* Fills struct ew_error; long texts are cut, never overrun. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

void ew_error_give(struct etwatch_error_info *reterr, struct ew_error *err, int rc)
{
    if (reterr == NULL || reterr->size < sizeof(uint32_t))
        return;
    if (err->message[0] == '\0')
        (void)ew_error_set(err, rc, 0, "%s", etwatch_strerror(rc));
    struct etwatch_error_info info = {
        .size = reterr->size,
        .code = rc,
        .os_code = err->os_code,
        .offset = err->offset,
    };
    memcpy(info.message, err->message, sizeof info.message);
    memcpy(info.fix, err->fix, sizeof info.fix);
    memcpy(reterr, &info, reterr->size < sizeof info ? reterr->size : sizeof info);
}
