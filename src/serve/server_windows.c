/* SPDX-License-Identifier: MIT */
/* serve is part of Linux: its isolation needs fork, and its loop epoll. On Windows it says so. */
#include "serve/server.h"

#include <stdio.h>

const char *ew_server_unavailable(void)
{
    return "serve does not work on Windows yet: use etwatch stat --json, or etwatch record";
}

int ew_server_start(const struct ew_server_options *options, struct ew_server_link *ret_link,
                    char *reterr_text, size_t text_size)
{
    (void)options;
    (void)ret_link;
    (void)snprintf(reterr_text, text_size, "%s", ew_server_unavailable());
    return ETWATCH_ENOTSUP;
}

int ew_server_send(void *link, const void *bytes, size_t len)
{
    (void)link;
    (void)bytes;
    (void)len;
    return ETWATCH_ENOTSUP;
}

void ew_server_stop(struct ew_server_link *link)
{
    (void)link;
}

bool ew_server_alive(const struct ew_server_link *link)
{
    (void)link;
    return false;
}
