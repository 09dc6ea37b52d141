/* SPDX-License-Identifier: MIT */
/* Opens the output: standard output, or a file by the rules of ew_place. */
#include "cli/cli.h"

enum { STANDARD_OUTPUT = 1 };

void ew_output_init(struct ew_output *output, int fd, const char *path)
{
    *output = (struct ew_output){.fd = path != NULL ? fd : STANDARD_OUTPUT, .path = path};
}

int ew_output_open(struct ew_output *output, const char *path, uint32_t mode)
{
    struct ew_place *place = NULL;
    int fd = -1;
    int error = path != NULL ? ew_place_open(path, mode, &place) : 0;
    if (place != NULL)
        error = ew_place_create(place, 1, &fd);
    ew_place_close(place);
    ew_output_init(output, fd, path);
    return error;
}

int ew_output_open_whole(struct ew_output *output, const char *path, uint32_t mode,
                         struct ew_place **ret_place)
{
    struct ew_place *place = NULL;
    int fd = -1;
    int error = ew_place_open(path, mode, &place);
    *ret_place = NULL;
    if (error != 0)
        return error;
    bool special = ew_place_is_special(place);
    if (!special)
        error = ew_place_detach(place);
    if (error == 0)
        error = ew_place_create(place, special ? 1 : 0, &fd);
    ew_output_init(output, fd, path);
    if (special || error != 0)
        ew_place_close(place);
    else
        *ret_place = place;
    return error;
}

int ew_output_close_whole(struct ew_output *output, struct ew_place *place, bool complete)
{
    int error = output != NULL ? ew_output_close(output) : 0;
    if (place != NULL && complete && error == 0)
        error = ew_place_commit(place);
    ew_place_close(place);
    return error;
}
