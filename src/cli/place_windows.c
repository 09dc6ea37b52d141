/* SPDX-License-Identifier: MIT */
/*
 * Output files. Access follows from the folder: Windows inherits it, and only administrators may
 * make symbolic links. Privileges that were removed are not needed to create files, so there is no
 * helper process.
 */
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <windows.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/path.h"
#include "cli/cli.h"
#include "os/windows/text.h"

struct ew_place {
    char *path, *temporary; /* temporary is "" if there is none */
    size_t size;            /* of each buffer */
};

int ew_place_open(const char *path, uint32_t mode, struct ew_place **ret_place)
{
    if (mode != 0)
        return ENOTSUP;
    struct ew_place *place = ew_calloc(1, sizeof *place);
    if (!place)
        return ENOMEM;
    place->size = strlen(path) + 32;
    place->path = ew_calloc(place->size, 1);
    place->temporary = ew_calloc(place->size, 1);
    if (!place->path || !place->temporary) {
        ew_place_close(place);
        return ENOMEM;
    }
    (void)snprintf(place->path, place->size, "%s", path);
    *ret_place = place;
    return 0;
}

bool ew_place_is_special(const struct ew_place *place)
{
    const char *path = place->path;
    wchar_t *wide = ew_wide_path(path);
    DWORD found = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    ew_free(wide);
    DWORD other = FILE_ATTRIBUTE_DEVICE | FILE_ATTRIBUTE_DIRECTORY;
    bool device = path[0] == '\\' && path[1] == '\\' && (path[2] == '.' || path[2] == '?');
    return device || _stricmp(path, "NUL") == 0 ||
           (found != INVALID_FILE_ATTRIBUTES && (found & other) != 0);
}

int ew_place_detach(struct ew_place *place)
{
    (void)place;
    return 0;
}

/* NULL: no memory, or not text. */
static wchar_t *wide_name(const struct ew_place *place, uint32_t number)
{
    char *name = ew_calloc(place->size, 1);
    wchar_t *wide = NULL;
    if (number == 0)
        wide = ew_wide_path(place->temporary);
    else if (name && ew_path_numbered(place->path, number, name, place->size))
        wide = ew_wide_path(name);
    ew_free(name);
    return wide;
}

int ew_place_create(struct ew_place *place, uint32_t number, int *ret_fd)
{
    if (number == 0) {
        int folder = (int)(ew_path_name(place->path) - place->path);
        (void)snprintf(place->temporary, place->size, "%.*s.%016llx", folder, place->path,
                       (unsigned long long)ew_random_u64());
    }
    wchar_t *wide = wide_name(place, number);
    if (!wide)
        return EINVAL;
    /* Not inherited: a command that outlives etwatch would keep the file open. */
    *ret_fd = _wopen(
        wide, _O_WRONLY | _O_CREAT | (number == 0 ? _O_EXCL : _O_TRUNC) | _O_BINARY | _O_NOINHERIT,
        _S_IREAD | _S_IWRITE);
    int error = *ret_fd < 0 ? errno : 0;
    if (error != 0 && number == 0)
        place->temporary[0] = '\0';
    ew_free(wide);
    return error;
}

int ew_place_commit(struct ew_place *place)
{
    wchar_t *old = wide_name(place, 0), *wide = wide_name(place, 1);
    bool done = old && wide && MoveFileExW(old, wide, MOVEFILE_REPLACE_EXISTING);
    ew_free(old);
    ew_free(wide);
    if (done)
        place->temporary[0] = '\0';
    return done ? 0 : EACCES;
}

int ew_place_remove(struct ew_place *place, uint32_t number)
{
    wchar_t *wide = wide_name(place, number);
    bool done = wide && DeleteFileW(wide);
    ew_free(wide);
    return done ? 0 : EACCES;
}

void ew_place_close(struct ew_place *place)
{
    if (!place)
        return;
    if (place->temporary && place->temporary[0] != '\0')
        (void)ew_place_remove(place, 0);
    ew_free(place->path);
    ew_free(place->temporary);
    ew_free(place);
}
