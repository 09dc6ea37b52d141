/* SPDX-License-Identifier: MIT */
/*
 * Loads the programs through libbpf: the fallback of load.c. The bpf_object is closed as soon as
 * the programs are loaded; copies of the descriptors remain.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "source/ebpf/load.h"

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
    (void)level;
    (void)format;
    (void)args;
    return 0;
}

static struct bpf_map *find_rodata(struct bpf_object *bpf)
{
    struct bpf_map *map;
    bpf_object__for_each_map(map, bpf)
    {
        const char *name = bpf_map__name(map);
        size_t length = strlen(name);
        if (length >= 7 && strcmp(name + length - 7, ".rodata") == 0)
            return map;
    }
    return NULL;
}

static int prepare(struct bpf_object *bpf, const struct ew_load_plan *plan)
{
    struct bpf_program *program;
    bpf_object__for_each_program(program, bpf)
    {
        for (size_t i = 0; i < plan->image->function_count; i++)
            if (strcmp(plan->image->functions[i].name, bpf_program__name(program)) == 0)
                (void)bpf_program__set_autoload(program, plan->programs[i]);
    }
    for (size_t i = 0; i < plan->image->map_count; i++) {
        struct bpf_map *map = bpf_object__find_map_by_name(bpf, plan->image->maps[i].name);
        /* A map that is not needed has the smallest size: libbpf 0.5 cannot skip it. */
        uint32_t entries = plan->map_entries[i] != 0            ? plan->map_entries[i]
                           : plan->image->maps[i].key_size == 0 ? (uint32_t)sysconf(_SC_PAGESIZE)
                                                                : 1;
        int error = map == NULL ? -ENOENT : bpf_map__set_max_entries(map, entries);
        if (error != 0)
            return -error;
    }
    struct bpf_map *rodata = find_rodata(bpf);
    return rodata == NULL ? ENOENT
                          : -bpf_map__set_initial_value(rodata, plan->config, sizeof *plan->config);
}

static int copy_descriptor(int fd, int *ret_copy)
{
    *ret_copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return fd >= 0 && *ret_copy < 0 ? errno : 0;
}

static int copy_descriptors(struct bpf_object *bpf, const struct ew_load_plan *plan,
                            struct ew_loaded *loaded)
{
    int error = 0;
    for (size_t i = 0; error == 0 && i < plan->image->map_count; i++)
        error = copy_descriptor(bpf_object__find_map_fd_by_name(bpf, plan->image->maps[i].name),
                                &loaded->map_fds[i]);
    struct bpf_program *program;
    bpf_object__for_each_program(program, bpf)
    {
        for (size_t i = 0; error == 0 && i < plan->image->function_count; i++)
            if (plan->programs[i] &&
                strcmp(plan->image->functions[i].name, bpf_program__name(program)) == 0)
                error = copy_descriptor(bpf_program__fd(program), &loaded->program_fds[i]);
    }
    return error;
}

static int load(const struct ew_load_plan *plan, struct ew_loaded *loaded)
{
    /*
     * With a named file libbpf looks up types in it alone. Without it, a type that the kernel does
     * not have makes libbpf search the modules, which needs CAP_SYS_ADMIN; no type that the
     * programs read is in a module.
     */
    const struct bpf_object_open_opts options = {
        .sz = sizeof options,
        .btf_custom_path = "/sys/kernel/btf/vmlinux",
    };
    struct bpf_object *bpf =
        bpf_object__open_mem(plan->image->object, plan->image->object_size, &options);
    long open_error = libbpf_get_error(bpf);
    if (open_error != 0)
        return (int)-open_error;
    int error = prepare(bpf, plan);
    if (error == 0)
        error = -bpf_object__load(bpf);
    if (error == 0)
        error = copy_descriptors(bpf, plan, loaded);
    bpf_object__close(bpf);
    return error;
}

int ew_load_by_libbpf(const struct ew_load_plan *plan, struct ew_loaded *ret_loaded)
{
    /* libbpf prints to stderr by default. A printer that the program has set is restored. */
    libbpf_print_fn_t printer = libbpf_set_print(quiet);
    ew_loaded_init(ret_loaded);
    int error = load(plan, ret_loaded);
    (void)libbpf_set_print(printer);
    if (error != 0)
        ew_loaded_close(ret_loaded);
    (void)malloc_trim(0); /* the kernel's type information was several MB */
    return error;
}
