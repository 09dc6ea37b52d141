/* SPDX-License-Identifier: MIT */
/*
 * Parsing of what clients send. Every function takes arbitrary bytes up to a terminator and
 * rejects what it does not know, instead of guessing.
 */
#include "serve/request.h"

#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"

/* ------------------------------------------------------------------------- target */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes up to a '&', '=' (in a key) or the end. NULL: malformed. */
static const char *decode(const char *from, bool key, char **at)
{
    for (; *from != '\0' && *from != '&' && !(key && *from == '='); from++) {
        int c = (uint8_t)*from;
        if (c == '%') {
            int high = hex_digit(from[1]);
            int low = high < 0 ? -1 : hex_digit(from[2]);
            if (low < 0)
                return NULL;
            c = high << 4 | low;
            from += 2;
        } else if (c == '+') {
            c = ' ';
        }
        if (c < 0x20 || c == 0x7f)
            return NULL;
        *(*at)++ = (char)c;
    }
    *(*at)++ = '\0';
    return from;
}

static bool is_utf8(const char *text)
{
    return ew_utf8_is_valid(text, strlen(text));
}

static bool split_query(const char *from, struct ew_query *query)
{
    char *at = query->text;
    while (*from != '\0') {
        if (query->count == EW_QUERY_KEYS_MAX)
            return false;
        const char *key = at;
        from = decode(from, true, &at);
        if (from == NULL || key[0] == '\0' || *from != '=' || !is_utf8(key))
            return false;
        const char *value = at;
        from = decode(from + 1, false, &at);
        if (from == NULL || !is_utf8(value) || ew_query_get(query, key) != NULL)
            return false;
        query->pairs[query->count].key = key;
        query->pairs[query->count++].value = value;
        if (*from == '&' && from[1] == '\0')
            return false;
        from += *from == '&';
    }
    return true;
}

bool ew_request_split(const char *target, char *ret_path, size_t path_size,
                      struct ew_query *ret_query)
{
    size_t len = strlen(target);
    const char *mark = strchr(target, '?');
    size_t path_len = mark != NULL ? (size_t)(mark - target) : len;
    ret_query->count = 0;
    if (len > EW_TARGET_MAX || path_len >= path_size || target[0] != '/')
        return false;
    for (size_t i = 0; i < path_len; i++) {
        char c = target[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '/' || c == '-' || c == '_' || c == '.';
        if (!plain)
            return false;
    }
    memcpy(ret_path, target, path_len);
    ret_path[path_len] = '\0';
    return mark == NULL || split_query(mark + 1, ret_query);
}

const char *ew_query_get(const struct ew_query *query, const char *key)
{
    for (uint32_t i = 0; i < query->count; i++)
        if (strcmp(query->pairs[i].key, key) == 0)
            return query->pairs[i].value;
    return NULL;
}

bool ew_query_only(const struct ew_query *query, const char *const *keys, const char **ret_key)
{
    for (uint32_t i = 0; i < query->count; i++) {
        const char *const *key = keys;
        while (*key != NULL && strcmp(*key, query->pairs[i].key) != 0)
            key++;
        if (*key == NULL) {
            *ret_key = query->pairs[i].key;
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------------- values */

bool ew_request_u64(const char *text, uint64_t max, uint64_t *ret_number)
{
    struct ew_bytes bytes;
    ew_bytes_init(&bytes, text, strlen(text));
    uint64_t number = ew_bytes_dec_u64(&bytes);
    if (!ew_bytes_ok(&bytes) || ew_bytes_left(&bytes) != 0 || number > max)
        return false;
    *ret_number = number;
    return true;
}

bool ew_request_time_ms(const char *text, uint64_t now_ms, uint64_t *ret_ms)
{
    const uint64_t max_ms = UINT64_C(18446744073709);
    uint64_t number = 0;
    bool before = text[0] == '-';
    if (!ew_request_u64(text + before, max_ms, &number))
        return false;
    *ret_ms = !before ? number : number > now_ms ? 0 : now_ms - number;
    return true;
}

bool ew_request_process(const char *text, size_t len, uint32_t *ret_pid, uint64_t *ret_start_ns)
{
    struct ew_bytes bytes;
    ew_bytes_init(&bytes, text, len);
    uint64_t pid = ew_bytes_dec_u64(&bytes);
    ew_bytes_expect(&bytes, "-");
    uint64_t start_ns = ew_bytes_dec_u64(&bytes);
    if (!ew_bytes_ok(&bytes) || ew_bytes_left(&bytes) != 0 || pid > UINT32_MAX)
        return false;
    *ret_pid = (uint32_t)pid;
    *ret_start_ns = start_ns;
    return true;
}

/* ----------------------------------------------------------------------- security */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool equal_nocase(const char *text, size_t len, const char *name)
{
    if (strlen(name) != len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (lower(text[i]) != lower(name[i]))
            return false;
    return true;
}

/* The name in NAME, NAME:PORT or [ADDRESS]:PORT. False: malformed. */
static bool host_name(const char *host, size_t *ret_len)
{
    size_t len = strcspn(host, ":");
    if (host[0] == '[') {
        const char *close = strchr(host, ']');
        if (close == NULL)
            return false;
        len = (size_t)(close - host) + 1;
    }
    const char *port = host + len;
    if (*port == ':')
        port++;
    size_t digits = strspn(port, "0123456789");
    *ret_len = len;
    return len > 0 && port[digits] == '\0' && digits <= 5 && (digits > 0 || port == host + len);
}

bool ew_request_host_allowed(const char *host, const char *const *names)
{
    static const char *const loopback[] = {"127.0.0.1", "localhost", "[::1]", NULL};
    size_t len;
    if (host == NULL || !host_name(host, &len))
        return false;
    for (const char *const *name = loopback; *name != NULL; name++)
        if (equal_nocase(host, len, *name))
            return true;
    for (const char *const *name = names; name != NULL && *name != NULL; name++)
        if (equal_nocase(host, len, *name))
            return true;
    return false;
}

bool ew_request_same_origin(const struct ew_request *request)
{
    const char *site = request->fetch_site;
    if (site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return false;
    if (request->origin == NULL)
        return true;
    const char *origin = request->origin;
    if (strncmp(origin, "http://", 7) == 0)
        origin += 7;
    else if (strncmp(origin, "https://", 8) == 0)
        origin += 8;
    else
        return false;
    return request->host != NULL && equal_nocase(origin, strlen(origin), request->host);
}

bool ew_request_token_equal(const char *given, size_t given_len, const char *token)
{
    size_t token_len = strlen(token);
    volatile uint8_t different = (uint8_t)(given_len != token_len);
    for (size_t i = 0; i < given_len; i++) {
        uint8_t wanted = token_len == 0 ? 0 : (uint8_t)token[i % token_len];
        different = (uint8_t)(different | ((uint8_t)given[i] ^ wanted));
    }
    return different == 0;
}

bool ew_request_authorized(const struct ew_request *request, const char *token)
{
    static const char bearer[] = "Bearer ", name[] = "etwatch_token=";
    const char *header = request->authorization;
    if (header != NULL && strncmp(header, bearer, sizeof bearer - 1) == 0) {
        const char *given = header + sizeof bearer - 1;
        return ew_request_token_equal(given, strlen(given), token);
    }
    const char *at = request->cookie;
    while (at != NULL && *at != '\0') {
        at += strspn(at, " ;");
        size_t len = strcspn(at, ";");
        if (len >= sizeof name - 1 && strncmp(at, name, sizeof name - 1) == 0 &&
            ew_request_token_equal(at + sizeof name - 1, len - (sizeof name - 1), token))
            return true;
        at += len;
    }
    return false;
}

/* ------------------------------------------------------------------------- Accept */

/* The weight of one part of an Accept header, in thousandths. */
static uint32_t weight(const char *part, size_t len)
{
    for (size_t i = 0; i + 2 < len; i++) {
        if (part[i] != ';')
            continue;
        size_t at = i + 1;
        while (at < len && part[at] == ' ')
            at++;
        if (at + 2 >= len || lower(part[at]) != 'q' || part[at + 1] != '=')
            continue;
        uint32_t value = part[at + 2] == '1' ? 1000 : 0, place = 100;
        if (at + 3 < len && part[at + 3] == '.')
            for (at += 4; at < len && part[at] >= '0' && part[at] <= '9' && place > 0; at++) {
                value += value < 1000 ? (uint32_t)(part[at] - '0') * place : 0;
                place /= 10;
            }
        return value;
    }
    return 1000;
}

bool ew_request_wants_openmetrics(const char *accept)
{
    static const char open[] = "application/openmetrics-text", plain[] = "text/plain";
    uint32_t open_weight = 0, plain_weight = 0;
    while (accept != NULL && *accept != '\0') {
        accept += strspn(accept, " ,");
        size_t len = strcspn(accept, ",");
        size_t type_len = strcspn(accept, ";, ");
        uint32_t part = weight(accept, len);
        /* Version 0.0.1, which old servers offer, differs from 1.0.0. */
        bool old = false;
        for (size_t i = 0; i + 13 <= len; i++)
            old |= strncmp(accept + i, "version=0.0.1", 13) == 0;
        if (equal_nocase(accept, type_len, open) && !old && part > open_weight)
            open_weight = part;
        if (equal_nocase(accept, type_len, plain) && part > plain_weight)
            plain_weight = part;
        accept += len;
    }
    return open_weight > 0 && open_weight >= plain_weight;
}

bool ew_request_accepts_gzip(const char *accept_encoding)
{
    const char *at = accept_encoding;
    while (at != NULL && *at != '\0') {
        at += strspn(at, " ,");
        size_t len = strcspn(at, ",");
        if (equal_nocase(at, strcspn(at, ";, "), "gzip"))
            return weight(at, len) > 0;
        at += len;
    }
    return false;
}
