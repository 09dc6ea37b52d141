/* SPDX-License-Identifier: MIT */
/*
 * A fake AMD SMI for tests: the functions of amdsmi.h of ROCm 6 that etwatch calls, written anew
 * after AMD's documentation. The file that FAKE_AMDSMI names is read at every call; it has lines
 * `name value`:
 *   init CODE     amdsmi_init fails        sockets N   so many (a socket has one GPU)
 *   count N       of the energy counter of the first GPU, in units of 15.3 uJ
 *   code CODE     the counter fails        garbage 1   every value is nonsense
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

enum { OK = 0, INVALID = 1, NOT_INITIALIZED = 32 };

static int started;
static char handles[8];

static unsigned long long value(const char *wanted)
{
    const char *path = getenv("FAKE_AMDSMI");
    FILE *file = path == NULL ? NULL : fopen(path, "r");
    char name[20];
    unsigned long long number = 0, found = 0;
    while (file != NULL && fscanf(file, "%19s %llu", name, &number) == 2)
        found = strcmp(name, wanted) == 0 ? number : found;
    if (file != NULL)
        fclose(file);
    return found;
}

int amdsmi_init(uint64_t flags);
int amdsmi_init(uint64_t flags)
{
    int code = (int)value("init");
    started = code == OK && flags == 2;
    return flags == 2 ? code : INVALID;
}

int amdsmi_shut_down(void);
int amdsmi_shut_down(void)
{
    started = 0;
    return OK;
}

int amdsmi_get_socket_handles(uint32_t *count, void **sockets);
int amdsmi_get_socket_handles(uint32_t *count, void **sockets)
{
    uint32_t n = (uint32_t)value("sockets");
    if (!started)
        return NOT_INITIALIZED;
    for (uint32_t i = 0; i < n && i < *count && i < sizeof handles; i++)
        sockets[i] = &handles[i];
    *count = value("garbage") ? 4000000000u : n;
    return OK;
}

int amdsmi_get_processor_handles(void *socket, uint32_t *count, void **processors);
int amdsmi_get_processor_handles(void *socket, uint32_t *count, void **processors)
{
    if (socket == NULL || *count == 0)
        return INVALID;
    processors[0] = socket;
    *count = value("garbage") ? 4000000000u : 1;
    return OK;
}

int amdsmi_get_gpu_bdf_id(void *processor, uint64_t *id);
int amdsmi_get_gpu_bdf_id(void *processor, uint64_t *id)
{
    if (processor == NULL)
        return INVALID;
    *id = (uint64_t)(3 + ((char *)processor - handles)) << 8; /* 0000:03:00.0 */
    return OK;
}

int amdsmi_get_energy_count(void *processor, uint64_t *count, float *resolution, uint64_t *time);
int amdsmi_get_energy_count(void *processor, uint64_t *count, float *resolution, uint64_t *time)
{
    if (processor != &handles[0])
        return INVALID;
    *count = value("count");
    *resolution = value("garbage") ? -1e30f : 15.3f;
    *time = 1;
    return (int)value("code");
}
