/* SPDX-License-Identifier: MIT */
/* A place for output: what place_linux.c shares with its helper process. */
#ifndef EW_CLI_PLACE_LINUX_H
#define EW_CLI_PLACE_LINUX_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define EW_NO_ACTOR UINT32_MAX

struct ew_place {
    int folder_fd;
    char name[NAME_MAX + 1];
    char temporary[NAME_MAX + 1]; /* "": none */
    uint32_t mode;                /* as requested; 0: not */
    uint32_t actor;               /* act as this user; EW_NO_ACTOR: as oneself */
    bool exposed;                 /* others can write to the folder */
    bool special, magic;          /* magic: a link of /proc */
    int socket_fd;                /* to the helper; -1: none */
    int helper;
};

enum ew_place_request { EW_PLACE_CREATE = 1, EW_PLACE_COMMIT, EW_PLACE_REMOVE };

/* Lets the helper perform a request. ret_fd: of a created file, else NULL. 0 or the errno. */
int ew_place_ask(struct ew_place *place, enum ew_place_request request, uint32_t number,
                 int *ret_fd);
/* Ends the helper, which removes an uncommitted temporary file. */
void ew_place_dismiss(struct ew_place *place);

#endif
