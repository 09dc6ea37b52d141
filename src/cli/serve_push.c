/* SPDX-License-Identifier: MIT */
/*
 * serve --otlp: where and how to push, from the options and from the variables that OpenTelemetry
 * defines for every exporter. An option wins over a variable, a variable for metrics over the
 * general one. Headers come only from variables: they carry secrets, and options are visible in the
 * process list. Files of certificates are read here, before rights are dropped.
 */
#include "cli/serve_push.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "serve/gzip.h"

enum { TIMEOUT_MS = 10000, TEXT_MAX = 8192 };

static const char metrics_path[] = "/v1/metrics";

/* OTEL_EXPORTER_OTLP_METRICS_<name>, else OTEL_EXPORTER_OTLP_<name>; NULL: neither is set. An empty
 * variable counts as not set. */
static const char *variable(const char *name, const char **ret_from)
{
    static const char *const prefixes[] = {"OTEL_EXPORTER_OTLP_METRICS_", "OTEL_EXPORTER_OTLP_"};
    static char from[80];
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(from, sizeof from, "%s%s", prefixes[i], name);
        const char *value = getenv(from);
        if (value == NULL || value[0] == '\0')
            continue;
        if (ret_from != NULL)
            *ret_from = from;
        return value;
    }
    return NULL;
}

/* ------------------------------------------------------------------------------- URL */

static bool is_url(const char *url)
{
    size_t scheme = strncmp(url, "http://", 7) == 0 ? 7 : strncmp(url, "https://", 8) == 0 ? 8 : 0;
    if (scheme == 0 || url[scheme] == '\0' || url[scheme] == '/')
        return false;
    for (const char *at = url; *at != '\0'; at++)
        if ((unsigned char)*at <= ' ' || (unsigned char)*at > '~')
            return false;
    /* Credentials would be shown in messages and in the process list. */
    return memchr(url + scheme, '@', strcspn(url + scheme, "/?#")) == NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* The address of metrics below a base address. */
static char *below(const char *base)
{
    size_t len = strlen(base);
    char *url = ew_calloc(len + sizeof metrics_path, 1);
    while (len > 0 && base[len - 1] == '/')
        len--;
    if (url != NULL)
        (void)snprintf(url, len + sizeof metrics_path, "%.*s%s", (int)len, base, metrics_path);
    return url;
}

static int load_url(struct ew_serve_push *push, const char *option)
{
    const char *metrics = getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
    const char *base = getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    const char *from = "--otlp", *given = option;
    if (given == NULL && metrics != NULL && metrics[0] != '\0') {
        from = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
        given = metrics;
    } else if (given == NULL && base != NULL && base[0] != '\0') {
        from = "OTEL_EXPORTER_OTLP_ENDPOINT";
        given = base;
    }
    if (given == NULL)
        return EW_EXIT_OK;
    if (!is_url(given)) {
        ew_print_error("%s needs an address such as http://127.0.0.1:4318 or https://HOST/PATH, "
                       "without a user and password (use OTEL_EXPORTER_OTLP_HEADERS), not \"%s\"",
                       from, given);
        return EW_EXIT_USAGE;
    }
    bool whole = given == metrics || (given == option && ends_with(given, metrics_path));
    push->url = whole ? ew_strdup(given) : below(given);
    push->options.post.url = push->url;
    return push->url != NULL ? EW_EXIT_OK : EW_EXIT_FAILED;
}

/* -------------------------------------------------------------------- lists of pairs */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In place. False: an escape that is none, or a control character. */
static bool decode(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0'; at++) {
        char c = *at;
        if (c == '%') {
            int high = hex(at[1]), low = high < 0 ? -1 : hex(at[2]);
            if (low < 0)
                return false;
            c = (char)(high * 16 + low);
            at += 2;
        }
        if ((unsigned char)c < ' ' || c == 0x7f)
            return false;
        *to++ = c;
    }
    *to = '\0';
    return true;
}

static char *trim(char *text)
{
    text += strspn(text, " \t");
    for (size_t len = strlen(text); len > 0 && strchr(" \t", text[len - 1]) != NULL; len--)
        text[len - 1] = '\0';
    return text;
}

/* key=value,key=value with percent escapes. The texts point into *ret_copy. False: malformed. */
static bool read_pairs(const char *text, char **ret_copy, struct ew_otlp_attribute *pairs,
                       uint32_t max, uint32_t *ret_count)
{
    char *copy = strlen(text) < TEXT_MAX ? ew_strdup(text) : NULL;
    uint32_t count = 0;
    *ret_copy = copy;
    for (char *at = copy; at != NULL && *at != '\0';) {
        char *end = at + strcspn(at, ",");
        char *next = *end == ',' ? end + 1 : end;
        *end = '\0';
        char *equals = strchr(at, '=');
        if (*trim(at) == '\0') {
            at = next;
            continue;
        }
        if (equals == NULL || count == max)
            return false;
        *equals = '\0';
        pairs[count].key = trim(at);
        char *value = trim(equals + 1);
        if (pairs[count].key[0] == '\0' || !decode(value))
            return false;
        pairs[count++].value = value;
        at = next;
    }
    *ret_count = count;
    return copy != NULL;
}

static bool is_header_name(const char *name)
{
    for (; *name != '\0'; name++)
        if (strchr("!#$%&'*+-.^_`|~", *name) == NULL && !(*name >= '0' && *name <= '9') &&
            !(*name >= 'a' && *name <= 'z') && !(*name >= 'A' && *name <= 'Z'))
            return false;
    return true;
}

static bool add_header(struct ew_serve_push *push, const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + 3;
    char *line = push->header_count < EW_POST_HEADERS_MAX ? ew_calloc(size, 1) : NULL;
    if (line == NULL)
        return false;
    /* libcurl: a name with nothing after its colon removes the header. */
    (void)snprintf(line, size, "%s:%s%s", name, value[0] != '\0' ? " " : "", value);
    push->headers[push->header_count++] = line;
    return true;
}

static int load_headers(struct ew_serve_push *push)
{
    struct ew_otlp_attribute pairs[EW_POST_HEADERS_MAX - 4];
    const char *from = "", *text = variable("HEADERS", &from);
    uint32_t count = 0;
    char *copy = NULL;
    bool good = text == NULL || read_pairs(text, &copy, pairs, EW_POST_HEADERS_MAX - 4, &count);
    for (uint32_t i = 0; i < count && good; i++)
        good = is_header_name(pairs[i].key) && add_header(push, pairs[i].key, pairs[i].value);
    ew_free(copy);
    if (!good) {
        /* The value may be a secret. */
        ew_print_error("%s must be NAME=VALUE,NAME=VALUE with percent escapes, at most %d headers",
                       from, EW_POST_HEADERS_MAX - 4);
        return EW_EXIT_USAGE;
    }
    char agent[64];
    (void)snprintf(agent, sizeof agent, "etwatch/%s", etwatch_version());
    good = add_header(push, "Content-Type",
                      push->options.json ? "application/json" : "application/x-protobuf") &&
           (!push->options.gzip || add_header(push, "Content-Encoding", "gzip")) &&
           add_header(push, "User-Agent", agent) && add_header(push, "Expect", "");
    push->options.post.headers = (const char *const *)push->headers;
    return good ? EW_EXIT_OK : EW_EXIT_FAILED;
}

static int load_attributes(struct ew_serve_push *push)
{
    const char *text = getenv("OTEL_RESOURCE_ATTRIBUTES"), *service = getenv("OTEL_SERVICE_NAME");
    uint32_t count = 0;
    if (text != NULL && !read_pairs(text, &push->attribute_text, push->attributes,
                                    EW_OTLP_ATTRIBUTES_MAX - 1, &count)) {
        ew_print_error("OTEL_RESOURCE_ATTRIBUTES must be KEY=VALUE,KEY=VALUE with percent escapes, "
                       "at most %d pairs, not \"%s\"",
                       EW_OTLP_ATTRIBUTES_MAX - 1, text);
        return EW_EXIT_USAGE;
    }
    if (service != NULL && service[0] != '\0') {
        uint32_t i = 0;
        while (i < count && strcmp(push->attributes[i].key, "service.name") != 0)
            i++;
        push->attributes[i] = (struct ew_otlp_attribute){"service.name", service};
        count += i == count;
    }
    push->options.attributes = push->attributes;
    push->options.attribute_count = count;
    return EW_EXIT_OK;
}

/* ---------------------------------------------------------------------------- choices */

static int wrong(const char *from, const char *value, const char *wanted)
{
    ew_print_error("%s must be %s, not \"%s\"", from, wanted, value);
    return EW_EXIT_USAGE;
}

static int load_choices(struct ew_serve_push *push)
{
    const char *from = "", *value = variable("PROTOCOL", &from);
    if (value != NULL && strcmp(value, "http/json") == 0)
        push->options.json = true;
    else if (value != NULL && strcmp(value, "http/protobuf") != 0)
        return wrong(from, value, "http/protobuf or http/json (port 4318; gRPC is not supported)");
    value = variable("COMPRESSION", &from);
    push->options.gzip = ew_gzip_available();
    if (value != NULL && strcmp(value, "none") == 0)
        push->options.gzip = false;
    else if (value != NULL && strcmp(value, "gzip") != 0)
        return wrong(from, value, "gzip or none");
    value = variable("TEMPORALITY_PREFERENCE", &from);
    if (value != NULL && strcmp(value, "delta") == 0)
        push->options.delta = true;
    else if (value != NULL && strcmp(value, "cumulative") != 0 && strcmp(value, "lowmemory") != 0)
        return wrong(from, value, "cumulative or delta");
    uint32_t ms = TIMEOUT_MS;
    value = variable("TIMEOUT", &from);
    if (value != NULL && (!ew_value_u32(value, &ms) || ms == 0 || ms > 600000))
        return wrong(from, value, "a number of milliseconds from 1 to 600000");
    push->options.post.timeout_ms = ms;
    value = getenv("OTEL_METRIC_EXPORT_INTERVAL");
    if (push->options.interval_ns == 0 && value != NULL && value[0] != '\0') {
        if (!ew_value_u32(value, &ms) || ms < 1000 || ms > 60000)
            return wrong("OTEL_METRIC_EXPORT_INTERVAL", value,
                         "a number of milliseconds from 1000 to 60000");
        push->options.interval_ns = (uint64_t)ms * 1000000;
    }
    return EW_EXIT_OK;
}

static int load_file(const char *name, char **ret_text)
{
    const char *path = variable(name, NULL);
    if (path == NULL)
        return EW_EXIT_OK;
    *ret_text = ew_cli_read_secret(path);
    return *ret_text != NULL ? EW_EXIT_OK : EW_EXIT_FAILED;
}

static int load_certificates(struct ew_serve_push *push)
{
    int code = load_file("CERTIFICATE", &push->ca);
    if (code == EW_EXIT_OK)
        code = load_file("CLIENT_CERTIFICATE", &push->cert);
    if (code == EW_EXIT_OK)
        code = load_file("CLIENT_KEY", &push->key);
    push->options.post.ca = push->ca;
    push->options.post.cert = push->cert;
    push->options.post.key = push->key;
    return code;
}

static void say(const char *text)
{
    ew_print_error("%s", text);
}

static bool is_disabled(void)
{
    const char *disabled = getenv("OTEL_SDK_DISABLED"), *exporter = getenv("OTEL_METRICS_EXPORTER");
    return (disabled != NULL && strcmp(disabled, "true") == 0) ||
           (exporter != NULL && strcmp(exporter, "none") == 0);
}

int ew_serve_push_load(struct ew_serve_push *push, const struct ew_serve_options *options)
{
    *push = (struct ew_serve_push){.options = {.interval_ns = options->otlp_interval_ns,
                                               .queue_bytes = options->otlp_queue_bytes,
                                               .say = say}};
    if (options->otlp == NULL && is_disabled())
        return EW_EXIT_OK;
    int code = load_url(push, options->otlp);
    if (code != EW_EXIT_OK || push->url == NULL)
        return code;
    if (ew_post_unavailable() != NULL) {
        ew_print_error("%s", ew_post_unavailable());
        return EW_EXIT_FAILED;
    }
    code = load_choices(push);
    if (code == EW_EXIT_OK)
        code = load_headers(push);
    if (code == EW_EXIT_OK)
        code = load_attributes(push);
    return code == EW_EXIT_OK ? load_certificates(push) : code;
}

void ew_serve_push_done(struct ew_serve_push *push)
{
    for (uint32_t i = 0; i < push->header_count; i++)
        ew_free(push->headers[i]);
    ew_free(push->url);
    ew_free(push->attribute_text);
    ew_free(push->ca);
    ew_free(push->cert);
    ew_free(push->key);
}
