/* SPDX-License-Identifier: MIT */
/*
 * The configuration file: lines of `name = value` with the long names of options, such as
 *
 *     # watch the inference
 *     hz = 100
 *     name = python,onnx
 *     threads = true
 *
 * Options of other commands are allowed and ignored, so that one file serves all of them. Errors
 * name file and line.
 */
#include "cli/parser.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "os/os.h"

enum { FILE_MAX = 64 * 1024, VALUE_MAX = 4096 };

static struct ew_span trim(struct ew_span span)
{
    while (span.len > 0 && strchr(" \t\r", span.text[0]) != NULL && span.text[0] != '\0') {
        span.text++;
        span.len--;
    }
    while (span.len > 0 && strchr(" \t\r", span.text[span.len - 1]) != NULL &&
           span.text[span.len - 1] != '\0')
        span.len--;
    return span;
}

static int apply_switch(struct ew_parser *p, const struct ew_option_info *info, const char *value)
{
    static const char *const yes[] = {"true", "yes", "on", "1"};
    static const char *const no[] = {"false", "no", "off", "0"};
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(value, yes[i]) == 0)
            return ew_option_apply(p, info, info->name, NULL);
        if (strcmp(value, no[i]) == 0)
            return 0;
    }
    return ew_parser_fail(p, "%s needs true or false, not \"%s\"", info->name, value);
}

static int apply_line(struct ew_parser *p, struct ew_span name, struct ew_span value_span)
{
    char value[VALUE_MAX];
    const struct ew_option_info *info = ew_option_find(name.text, name.len, p->options->command);
    bool meaningless = info == NULL || strcmp(info->name, "config") == 0 ||
                       strcmp(info->name, "help") == 0 || strcmp(info->name, "version") == 0;
    if (meaningless)
        return ew_parser_fail(p,
                              "unknown option \"%.*s\"; use the long names of options, such as "
                              "\"hz = 100\"",
                              (int)(name.len < 64 ? name.len : 64), name.text);
    if (value_span.len >= sizeof value)
        return ew_parser_fail(p, "the value of %s is too long", info->name);
    if (memchr(value_span.text, '\0', value_span.len) != NULL)
        return ew_parser_fail(p, "the value of %s holds a NUL byte", info->name);
    (void)ew_span_copy(value_span, value, sizeof value);
    if (value[0] == '\0')
        return ew_parser_fail(p, "%s needs a value: %s = %s", info->name, info->name,
                              info->value != NULL ? info->value : "true");
    if ((info->commands & p->options->command) == 0)
        return 0;
    return info->value == NULL ? apply_switch(p, info, value)
                               : ew_option_apply(p, info, info->name, value);
}

int ew_config_file_parse(struct ew_parser *p, const char *path, const void *text, size_t size)
{
    struct ew_bytes bytes;
    struct ew_span line;
    int rc = 0;
    ew_bytes_init(&bytes, text, size);
    for (unsigned number = 1; rc == 0 && ew_bytes_line(&bytes, &line); number++) {
        line = trim(line);
        if (line.len == 0 || line.text[0] == '#')
            continue;
        (void)snprintf(p->where, sizeof p->where, "%.200s:%u: ", path, number);
        const char *equals = memchr(line.text, '=', line.len);
        if (equals == NULL) {
            rc = ew_parser_fail(p, "a line has the form \"name = value\"");
            break;
        }
        struct ew_span name = {line.text, (size_t)(equals - line.text)};
        struct ew_span value = {equals + 1, line.len - name.len - 1};
        rc = apply_line(p, trim(name), trim(value));
    }
    p->where[0] = '\0';
    return rc;
}

int ew_config_file_read(struct ew_parser *p, const char *path)
{
    char text[FILE_MAX];
    FILE *file = ew_os_stream_open(path);
    if (file == NULL)
        return ew_parser_fail(p, "cannot read --config %s: %s", path, strerror(errno));
    size_t size = fread(text, 1, sizeof text, file);
    int failed = ferror(file) ? errno : 0;
    fclose(file);
    if (failed != 0)
        return ew_parser_fail(p, "cannot read --config %s: %s", path, strerror(failed));
    if (size == sizeof text)
        return ew_parser_fail(p, "--config %s is larger than %d bytes", path, FILE_MAX - 1);
    return ew_config_file_parse(p, path, text, size);
}
