/* SPDX-License-Identifier: MIT */
/* Pure functions over cgroup paths and the text of /proc/PID/cgroup. */
#include "model/cgroup.h"

#include <string.h>

const char *ew_cgroup_requested_container(const char *wanted)
{
    size_t len = sizeof EW_CGROUP_CONTAINER - 1;
    return strncmp(wanted, EW_CGROUP_CONTAINER, len) == 0 ? wanted + len : NULL;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* The id in one path component: at its end or before ".scope", preceded by nothing, '-' or ':'. */
static bool id_in(struct ew_span part, struct ew_span *ret_id)
{
    static const char scope[] = ".scope", conmon[] = "conmon-";
    size_t len = part.len, scope_len = sizeof scope - 1, conmon_len = sizeof conmon - 1;
    if (len > scope_len && memcmp(part.text + len - scope_len, scope, scope_len) == 0)
        len -= scope_len;
    if (len < EW_CONTAINER_ID_LEN)
        return false;
    size_t before = len - EW_CONTAINER_ID_LEN;
    for (size_t i = before; i < len; i++)
        if (!is_hex(part.text[i]))
            return false;
    if (before > 0 && part.text[before - 1] != '-' && part.text[before - 1] != ':')
        return false;
    if (before >= conmon_len && memcmp(part.text + before - conmon_len, conmon, conmon_len) == 0)
        return false;
    *ret_id = (struct ew_span){part.text + before, EW_CONTAINER_ID_LEN};
    return true;
}

/* The next path component; false at the end. */
static bool next_part(struct ew_span *path, struct ew_span *ret_part)
{
    while (path->len > 0 && path->text[0] == '/') {
        path->text++;
        path->len--;
    }
    size_t len = 0;
    while (len < path->len && path->text[len] != '/')
        len++;
    *ret_part = (struct ew_span){path->text, len};
    path->text += len;
    path->len -= len;
    return len > 0;
}

bool ew_cgroup_container(struct ew_span path, struct ew_span *ret_id)
{
    struct ew_span part;
    bool found = false;
    while (next_part(&path, &part))
        found |= id_in(part, ret_id);
    return found;
}

static bool in_container(struct ew_span path, const char *wanted)
{
    struct ew_span part, id;
    size_t len = strlen(wanted);
    while (next_part(&path, &part))
        if (id_in(part, &id) && len <= id.len && memcmp(id.text, wanted, len) == 0)
            return true;
    return false;
}

static bool is_below(struct ew_span path, const char *wanted)
{
    wanted += strspn(wanted, "/");
    while (path.len > 0 && *path.text == '/') {
        path.text++;
        path.len--;
    }
    size_t len = strlen(wanted);
    while (len > 0 && wanted[len - 1] == '/')
        len--;
    if (path.len < len || memcmp(path.text, wanted, len) != 0)
        return false;
    return len == 0 || path.len == len || path.text[len] == '/';
}

bool ew_cgroup_matches(struct ew_span path, const char *wanted)
{
    const char *id = ew_cgroup_requested_container(wanted);
    return id != NULL ? in_container(path, id) : is_below(path, wanted);
}

/* Splits "4:memory:/docker/ID"; the path follows the second colon. */
static bool split(struct ew_span line, struct ew_span *ret_controllers, struct ew_span *ret_path)
{
    const char *first = memchr(line.text, ':', line.len);
    if (first == NULL)
        return false;
    size_t at = (size_t)(first - line.text) + 1;
    const char *second = memchr(line.text + at, ':', line.len - at);
    if (second == NULL)
        return false;
    size_t path_at = (size_t)(second - line.text) + 1;
    *ret_controllers = (struct ew_span){line.text + at, path_at - 1 - at};
    *ret_path = (struct ew_span){line.text + path_at, line.len - path_at};
    return true;
}

bool ew_cgroup_text_matches(const char *text, size_t len, const char *wanted)
{
    bool container = ew_cgroup_requested_container(wanted) != NULL;
    struct ew_bytes in;
    struct ew_span line, controllers, path;
    ew_bytes_init(&in, text, len);
    while (ew_bytes_line(&in, &line))
        if (split(line, &controllers, &path) && (controllers.len == 0 || container) &&
            ew_cgroup_matches(path, wanted))
            return true;
    return false;
}

/* How informative a line is; the highest rank is shown. */
static int rank_of(struct ew_span controllers, struct ew_span path)
{
    struct ew_span id;
    bool second = controllers.len == 0;
    if (ew_cgroup_container(path, &id))
        return second ? 5 : 4;
    if (second)
        return path.len > 1 ? 3 : 1;
    return path.len > 1 && ew_span_equals(controllers, "name=systemd") ? 2 : 0;
}

bool ew_cgroup_shown(const char *text, size_t len, struct ew_span *ret_path, bool *ret_only)
{
    struct ew_bytes in;
    struct ew_span line, controllers, path;
    int best = 0;
    bool only = true;
    ew_bytes_init(&in, text, len);
    while (ew_bytes_line(&in, &line)) {
        if (!split(line, &controllers, &path))
            continue;
        int rank = rank_of(controllers, path);
        only = only && (controllers.len == 0 || path.len <= 1);
        if (rank > best)
            *ret_path = path;
        best = rank > best ? rank : best;
    }
    *ret_only = only;
    return best > 0;
}
