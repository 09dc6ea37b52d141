/* SPDX-License-Identifier: MIT */
/*
 * The configuration file: lines of `name = value` with the long names of options, and sections for
 * groups of metrics and for the storage, such as
 *
 *     # watch the inference
 *     name = python,onnx
 *     alert = cpu_percent>80 for 20ms   # may be repeated
 *
 *     [memory]
 *     rate = 2
 *
 * Options of other commands are ignored, so that one file serves all of them; `config --check`
 * checks all of them. Errors name file, line and column. config_keys.c has the meaning of the keys.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/args/args.h"
#include "os/os.h"

enum { FILE_MAX = 64 * 1024, VALUE_MAX = 4096 };

struct place {
    const char *path;
    const char *line; /* its first byte */
    unsigned number;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct ew_span trim(struct ew_span span)
{
    while (span.len > 0 && is_blank(span.text[0])) {
        span.text++;
        span.len--;
    }
    while (span.len > 0 && is_blank(span.text[span.len - 1]))
        span.len--;
    return span;
}

/* A comment begins with a '#' at the start of the line or after a blank. */
static struct ew_span without_comment(struct ew_span line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.text[i] == '#' && (i == 0 || is_blank(line.text[i - 1])))
            line.len = i;
    return line;
}

static void set_place(struct ew_parser *p, const struct place *place, const char *at)
{
    (void)snprintf(p->where, sizeof p->where, "%.200s:%u:%zu: ", place->path, place->number,
                   (size_t)(at - place->line) + 1);
}

/* "name" or "section.name", with each '_' replaced by '-'. */
static bool full_name(const char *section, struct ew_span name, char *key, size_t size)
{
    size_t prefix = strlen(section);
    if (name.len == 0 || prefix + name.len + 2 > size || memchr(name.text, '\0', name.len) != NULL)
        return false;
    (void)snprintf(key, size, "%s%s%.*s", section, prefix > 0 ? "." : "", (int)name.len, name.text);
    for (char *at = key; *at != '\0'; at++)
        *at = *at == '_' ? '-' : *at;
    return true;
}

static int apply_line(struct ew_parser *p, const struct place *place, const char *section,
                      struct ew_span name, struct ew_span value_span)
{
    char value[VALUE_MAX], key[EW_CONFIG_KEY_SIZE];
    set_place(p, place, name.text);
    if (!full_name(section, name, key, sizeof key))
        return ew_parser_fail(p, "a line has the form \"name = value\"");
    int rc = ew_args_config_key_check(p, key);
    if (rc != 0)
        return rc;
    set_place(p, place, value_span.len > 0 ? value_span.text : name.text);
    if (value_span.len >= sizeof value)
        return ew_parser_fail(p, "the value of %s is longer than 4095 bytes", key);
    if (memchr(value_span.text, '\0', value_span.len) != NULL)
        return ew_parser_fail(p, "the value of %s contains a NUL byte", key);
    (void)ew_span_copy(value_span, value, sizeof value);
    return ew_args_config_key_apply(p, key, value);
}

static int take_section(struct ew_parser *p, const struct place *place, struct ew_span line,
                        char *section, size_t size)
{
    set_place(p, place, line.text);
    if (line.len < 3 || line.text[line.len - 1] != ']')
        return ew_parser_fail(p, "a section has the form \"[memory]\"");
    struct ew_span name = trim((struct ew_span){line.text + 1, line.len - 2});
    if (!full_name("", name, section, size) || !ew_args_config_section_known(section))
        return ew_parser_fail(p,
                              "unknown section \"%.*s\"; sections are the groups and names of "
                              "'etwatch metrics' (cpu, memory, io, ...) and storage",
                              (int)(name.len < 64 ? name.len : 64), name.text);
    return 0;
}

int ew_args_config_file_parse(struct ew_parser *p, const char *path, const void *text, size_t size)
{
    struct ew_bytes bytes;
    struct ew_span raw;
    struct place place = {.path = path};
    char section[EW_CONFIG_KEY_SIZE] = "";
    int rc = 0;
    ew_bytes_init(&bytes, text, size);
    while (rc == 0 && ew_bytes_line(&bytes, &raw)) {
        struct ew_span line = trim(without_comment(raw));
        place.line = raw.text;
        place.number++;
        if (line.len == 0)
            continue;
        if (line.text[0] == '[') {
            rc = take_section(p, &place, line, section, sizeof section);
            continue;
        }
        const char *equals = memchr(line.text, '=', line.len);
        if (equals == NULL) {
            set_place(p, &place, line.text);
            rc = ew_parser_fail(p, "a line has the form \"name = value\"");
            break;
        }
        struct ew_span name = {line.text, (size_t)(equals - line.text)};
        struct ew_span value = {equals + 1, line.len - name.len - 1};
        rc = apply_line(p, &place, section, trim(name), trim(value));
    }
    p->where[0] = '\0';
    return rc;
}

int ew_args_config_file_read(struct ew_parser *p, const char *path)
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
    return ew_args_config_file_parse(p, path, text, size);
}
