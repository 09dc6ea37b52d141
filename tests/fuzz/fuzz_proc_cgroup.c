/* SPDX-License-Identifier: MIT */
/* /proc/PID/cgroup from any bytes. */
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "model/cgroup.h"
#include "source/poll/proc_text.h"

/* The path shown for it, and what it matches. */
static void use_lines(const char *text, size_t size)
{
    struct ew_span shown, id;
    bool only;
    if (!ew_cgroup_shown(text, size, &shown, &only))
        return;
    require(shown.text >= text && shown.text + shown.len <= text + size,
            "the shown path is part of it");
    if (!ew_cgroup_container(shown, &id))
        return;
    char wanted[sizeof EW_CGROUP_CONTAINER + EW_CONTAINER_ID_LEN] = EW_CGROUP_CONTAINER;
    require(id.len == EW_CONTAINER_ID_LEN, "an ID has this length");
    memcpy(wanted + sizeof EW_CGROUP_CONTAINER - 1, id.text, id.len);
    require(ew_cgroup_matches(shown, wanted), "a path is in its own container");
    require(ew_cgroup_text_matches(text, size, wanted), "and so are its lines");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_span path;
    struct ew_error error;
    use_lines((const char *)data, size);
    int rc = ew_proc_parse_cgroup(data, size, &path, &error);
    if (rc != 0) {
        require(error.code == rc && error.offset <= size, "the error lies within the text");
        return 0;
    }
    const char *text = (const char *)data;
    require(path.len == 0 || (path.text > text && path.text + path.len < text + size),
            "the path lies within the text");
    require(path.len == 0 || memchr(path.text, '\n', path.len) == NULL, "and within its line");
    return 0;
}
