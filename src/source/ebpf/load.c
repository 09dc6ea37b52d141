/* SPDX-License-Identifier: MIT */
/*
 * Loads the programs by system calls alone: creates the maps, looks up the fields of kernel types
 * that the programs read (CO-RE), patches the instructions, hands them over.
 *
 * libbpf does the same for any object on any kernel, in 30 ms and with 11 MB; this handles one
 * object and takes 3 ms. A case that it does not handle is an error, and the caller then uses
 * libbpf: see load_libbpf.c. The rules of relocation are those of libbpf's relo_core.c.
 */
#include "source/ebpf/load.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "source/ebpf/kernel_btf.h"

enum { WANTED_MAX = 96, ATTEMPTS = 5 };

/* enum bpf_core_relo_kind, which older headers lack. */
enum {
    CORE_FIELD_BYTE_OFFSET = 0,
    CORE_FIELD_BYTE_SIZE = 1,
    CORE_FIELD_EXISTS = 2,
    CORE_FIELD_SIGNED = 3,
    CORE_FIELD_LSHIFT_U64 = 4,
    CORE_FIELD_RSHIFT_U64 = 5,
    CORE_TYPE_ID_TARGET = 7,
    CORE_TYPE_EXISTS = 8,
};

/* The result of a relocation. */
struct value {
    bool known;
    bool missing;  /* the instruction must not be reached */
    bool adjusted; /* the field has another size than the program loads, */
    bool loadable; /* and a load of that size means the same */
    uint64_t value;
    uint64_t size;
};

struct loader {
    const struct ew_load_plan *plan;
    struct ew_loaded *loaded;
    struct ew_ebpf_btf btf;
    struct ew_kernel_type wanted[WANTED_MAX];
    uint32_t wanted_count;
    char names[EW_IMAGE_FUNCTIONS_MAX][64]; /* of what programs attach to */
    struct value values[EW_IMAGE_FIELDS_MAX];
    int btf_fd, rodata_fd;
    /* The program that is being assembled. */
    struct bpf_insn *insns;
    uint32_t insn_count;
    uint32_t order[EW_IMAGE_FUNCTIONS_MAX], order_count;
    uint32_t
        base[EW_IMAGE_FUNCTIONS_MAX]; /* where each function begins; UINT32_MAX: not part of it */
};

static int sys_bpf(enum bpf_cmd command, union bpf_attr *attr)
{
    long fd = 0;
    int attempts = ATTEMPTS;
    do {
        fd = syscall(SYS_bpf, command, attr, sizeof *attr);
    } while (fd < 0 && errno == EAGAIN && --attempts > 0); /* interrupted by a signal */
    return fd < 0 ? -errno : (int)fd;
}

/* A descriptor below 3 would be taken for the standard ones. */
static int sys_bpf_fd(enum bpf_cmd command, union bpf_attr *attr)
{
    int fd = sys_bpf(command, attr);
    if (fd < 0 || fd > 2)
        return fd;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int error = errno;
    (void)close(fd);
    return copy < 0 ? -error : copy;
}

static uint64_t address(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

/* -------------------------------------------------------------------- kernel types */

static struct ew_kernel_type *find_wanted(struct loader *loader, const char *name, uint32_t kind)
{
    for (uint32_t i = 0; i < loader->wanted_count; i++)
        if (loader->wanted[i].kind == kind && strcmp(loader->wanted[i].name, name) == 0)
            return &loader->wanted[i];
    return NULL;
}

static int want(struct loader *loader, const char *name, uint32_t kind)
{
    if (find_wanted(loader, name, kind) != NULL)
        return 0;
    if (loader->wanted_count == WANTED_MAX)
        return E2BIG;
    loader->wanted[loader->wanted_count++] = (struct ew_kernel_type){.name = name, .kind = kind};
    return 0;
}

struct attach_kind {
    const char *prefix; /* of the section */
    const char *target; /* of the name in BTF */
    uint32_t target_kind;
    uint32_t program_type, attach_type;
};

static const struct attach_kind attach_kinds[] = {
    {"tp_btf/", "btf_trace_", BTF_KIND_TYPEDEF, BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP},
    {"fexit/", "", BTF_KIND_FUNC, BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT},
    {"iter/", "bpf_iter_", BTF_KIND_FUNC, BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER},
    {"raw_tp/", NULL, 0, BPF_PROG_TYPE_RAW_TRACEPOINT, 0},
    {"perf_event", NULL, 0, BPF_PROG_TYPE_PERF_EVENT, 0},
    /* Kernels before 6.6 ignore the attach type of such a program. */
    {"uprobe", NULL, 0, BPF_PROG_TYPE_KPROBE, EW_LOAD_UPROBE_MULTI},
};

static const struct attach_kind *attach_kind_of(const struct ew_image_function *program)
{
    for (size_t i = 0; i < sizeof attach_kinds / sizeof *attach_kinds; i++)
        if (strncmp(program->section, attach_kinds[i].prefix, strlen(attach_kinds[i].prefix)) == 0)
            return &attach_kinds[i];
    return NULL;
}

static int want_attach_target(struct loader *loader, uint32_t index)
{
    const struct ew_image_function *program = &loader->plan->image->functions[index];
    const struct attach_kind *kind = attach_kind_of(program);
    if (kind == NULL)
        return ENOTSUP;
    if (kind->target == NULL)
        return 0;
    char *name = loader->names[index];
    (void)snprintf(name, sizeof loader->names[index], "%s%s", kind->target,
                   program->section + strlen(kind->prefix));
    return want(loader, name, kind->target_kind);
}

static int find_types(struct loader *loader)
{
    const struct ew_image *image = loader->plan->image;
    int error = 0;
    for (size_t i = 0; error == 0 && i < image->field_count; i++)
        error = want(loader, image->fields[i].type, BTF_KIND_STRUCT);
    for (uint32_t i = 0; error == 0 && image->kfuncs[i] != NULL; i++)
        error = want(loader, image->kfuncs[i], BTF_KIND_FUNC);
    for (uint32_t i = 0; error == 0 && i < image->function_count; i++)
        if (loader->plan->programs[i])
            error = want_attach_target(loader, i);
    if (error == 0 && loader->wanted_count > 0)
        error = ew_ebpf_btf_open(&loader->btf, "/sys/kernel/btf/vmlinux", loader->wanted,
                                 loader->wanted_count);
    for (uint32_t i = 0; error == 0 && image->kfuncs[i] != NULL; i++)
        if (find_wanted(loader, image->kfuncs[i], BTF_KIND_FUNC)->count == 0)
            error = ENOSYS;
    return error;
}

static int evaluate(const struct loader *loader, const struct ew_image_field *field,
                    uint32_t type_id, struct value *ret_value)
{
    struct ew_kernel_field found;
    *ret_value = (struct value){0};
    if (field->kind == CORE_TYPE_EXISTS || field->kind == CORE_TYPE_ID_TARGET) {
        ret_value->missing = type_id == 0 && field->kind == CORE_TYPE_ID_TARGET;
        ret_value->value = field->kind == CORE_TYPE_EXISTS ? type_id != 0 : type_id;
        return 0;
    }
    bool exists = type_id != 0 && ew_ebpf_btf_field(&loader->btf, type_id, field->path, &found);
    ret_value->missing = !exists && field->kind != CORE_FIELD_EXISTS;
    if (!exists)
        return 0;
    switch (field->kind) {
    case CORE_FIELD_BYTE_OFFSET:
        ret_value->value = found.offset;
        ret_value->size = found.size;
        ret_value->adjusted = !found.bits && field->size != 0 && found.size != field->size;
        /* The last letter of the path's last shape is that of the field itself. */
        ret_value->loadable = !found.is_signed && strrchr(field->path, ':')[-1] == 'u';
        return 0;
    case CORE_FIELD_BYTE_SIZE:
        ret_value->value = found.size;
        return 0;
    case CORE_FIELD_EXISTS:
        ret_value->value = 1;
        return 0;
    case CORE_FIELD_SIGNED:
        ret_value->value = found.is_signed;
        return 0;
    case CORE_FIELD_LSHIFT_U64:
        ret_value->value = found.left_shift;
        return 0;
    case CORE_FIELD_RSHIFT_U64:
        ret_value->value = found.right_shift;
        return 0;
    default:
        return ENOTSUP;
    }
}

/* All types of that name must give the same result. */
static int resolve(struct loader *loader, uint32_t field_index, struct value *ret_value)
{
    const struct ew_image_field *field = &loader->plan->image->fields[field_index];
    const struct ew_kernel_type *type = find_wanted(loader, field->type, BTF_KIND_STRUCT);
    *ret_value = loader->values[field_index];
    if (ret_value->known)
        return 0;
    if (type->count > EW_KERNEL_TYPE_IDS)
        return ENOTSUP;
    int error = evaluate(loader, field, type->count == 0 ? 0 : type->ids[0], ret_value);
    for (uint32_t i = 1; error == 0 && i < type->count; i++) {
        struct value other;
        error = evaluate(loader, field, type->ids[i], &other);
        if (error == 0 && (other.missing != ret_value->missing || other.value != ret_value->value ||
                           other.size != ret_value->size))
            error = ENOTSUP;
    }
    ret_value->known = true;
    if (error == 0)
        loader->values[field_index] = *ret_value;
    return error;
}

/* ---------------------------------------------------------------------------- maps */

static int create_map(const struct ew_image_map *map, uint32_t entries)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.map_type = map->type;
    attr.key_size = map->key_size;
    attr.value_size = map->value_size;
    attr.max_entries = entries;
    attr.map_flags = map->flags;
    (void)snprintf(attr.map_name, sizeof attr.map_name, "%s", map->name);
    return sys_bpf_fd(BPF_MAP_CREATE, &attr);
}

static int create_maps(struct loader *loader)
{
    const struct ew_image *image = loader->plan->image;
    for (size_t i = 0; i < image->map_count; i++) {
        if (loader->plan->map_entries[i] == 0)
            continue;
        int fd = create_map(&image->maps[i], loader->plan->map_entries[i]);
        if (fd < 0)
            return -fd;
        loader->loaded->map_fds[i] = fd;
    }
    return 0;
}

/* Frozen, so that the verifier takes its values for constants. */
static int create_config(struct loader *loader)
{
    const struct ew_image_map map = {".rodata", BPF_MAP_TYPE_ARRAY, 4, sizeof *loader->plan->config,
                                     1,         BPF_F_RDONLY_PROG};
    union bpf_attr attr;
    uint32_t zero = 0;
    loader->rodata_fd = create_map(&map, 1);
    if (loader->rodata_fd < 0)
        return -loader->rodata_fd;
    memset(&attr, 0, sizeof attr);
    attr.map_fd = (uint32_t)loader->rodata_fd;
    attr.key = address(&zero);
    attr.value = address(loader->plan->config);
    int error = sys_bpf(BPF_MAP_UPDATE_ELEM, &attr);
    if (error < 0)
        return -error;
    memset(&attr, 0, sizeof attr);
    attr.map_fd = (uint32_t)loader->rodata_fd;
    return -sys_bpf(BPF_MAP_FREEZE, &attr);
}

static int load_types(struct loader *loader)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.btf = address(loader->plan->image->btf);
    attr.btf_size = (uint32_t)loader->plan->image->btf_size;
    loader->btf_fd = sys_bpf_fd(BPF_BTF_LOAD, &attr);
    return loader->btf_fd < 0 ? -loader->btf_fd : 0;
}

/* ----------------------------------------------------------------------- programs */

/* Adds the function and those that it calls, in the order of libbpf. */
static void place(struct loader *loader, uint32_t index)
{
    const struct ew_image *image = loader->plan->image;
    const struct ew_image_function *function = &image->functions[index];
    if (loader->base[index] != UINT32_MAX)
        return;
    loader->base[index] = loader->insn_count;
    loader->order[loader->order_count++] = index;
    loader->insn_count += function->insn_count;
    for (uint32_t i = 0; i < function->relocation_count; i++) {
        const struct ew_image_relocation *entry = &image->relocations[function->relocation + i];
        if (entry->kind == EW_IMAGE_CALL || entry->kind == EW_IMAGE_CALLBACK)
            place(loader, entry->target);
    }
}

static bool is_wide(const struct bpf_insn *insn)
{
    return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

/* A call of a function that does not exist: the verifier accepts it where it cannot be reached. */
static void forbid(struct bpf_insn *insn)
{
    for (int i = is_wide(insn) ? 1 : 0; i >= 0; i--)
        insn[i] = (struct bpf_insn){.code = BPF_JMP | BPF_CALL, .imm = 0xbad2310};
}

static int set_load_size(struct bpf_insn *insn, uint64_t size)
{
    static const struct {
        uint64_t size;
        uint8_t code;
    } sizes[] = {{1, BPF_B}, {2, BPF_H}, {4, BPF_W}, {8, BPF_DW}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].size == size) {
            insn->code = (uint8_t)((insn->code & ~0x18) | sizes[i].code);
            return 0;
        }
    return ENOTSUP;
}

static int patch_field(struct bpf_insn *insn, const struct value *value)
{
    if (value->missing) {
        forbid(insn);
        return 0;
    }
    switch (BPF_CLASS(insn->code)) {
    case BPF_ALU:
    case BPF_ALU64:
        if (BPF_SRC(insn->code) != BPF_K || value->value > INT32_MAX)
            return ENOTSUP;
        insn->imm = (int32_t)value->value;
        return 0;
    case BPF_LDX:
        if (value->value > INT16_MAX || (value->adjusted && !value->loadable))
            return ENOTSUP;
        insn->off = (int16_t)value->value;
        return value->adjusted ? set_load_size(insn, value->size) : 0;
    case BPF_LD:
        if (!is_wide(insn))
            return ENOTSUP;
        insn[0].imm = (int32_t)(uint32_t)value->value;
        insn[1].imm = (int32_t)(uint32_t)(value->value >> 32);
        return 0;
    default:
        return ENOTSUP;
    }
}

static void set_wide(struct bpf_insn *insn, unsigned source, int32_t low, int32_t high)
{
    insn[0].src_reg = source & 15u;
    insn[0].imm = low;
    insn[1].imm = high;
}

static int relocate(struct loader *loader, uint32_t at, const struct ew_image_relocation *entry)
{
    struct bpf_insn *insn = &loader->insns[at];
    int32_t distance = 0;
    if (entry->kind == EW_IMAGE_CALL || entry->kind == EW_IMAGE_CALLBACK)
        distance = (int32_t)loader->base[entry->target] - (int32_t)at - 1;
    switch (entry->kind) {
    case EW_IMAGE_MAP: {
        int fd = loader->loaded->map_fds[entry->target];
        if (fd < 0)
            set_wide(insn, 0, 0, 0); /* see map_entries: never reached */
        else
            set_wide(insn, BPF_PSEUDO_MAP_FD, fd, 0);
        return 0;
    }
    case EW_IMAGE_RODATA:
        set_wide(insn, BPF_PSEUDO_MAP_VALUE, loader->rodata_fd, (int32_t)entry->target);
        return 0;
    case EW_IMAGE_CALL:
        insn->src_reg = BPF_PSEUDO_CALL;
        insn->imm = distance;
        return 0;
    case EW_IMAGE_CALLBACK:
        set_wide(insn, BPF_PSEUDO_FUNC, distance, 0);
        return 0;
    case EW_IMAGE_KFUNC:
        insn->src_reg = BPF_PSEUDO_KFUNC_CALL;
        insn->off = 0;
        insn->imm =
            (int32_t)find_wanted(loader, loader->plan->image->kfuncs[entry->target], BTF_KIND_FUNC)
                ->ids[0];
        return 0;
    case EW_IMAGE_FIELD: {
        struct value value;
        int error = resolve(loader, entry->target, &value);
        return error != 0 ? error : patch_field(insn, &value);
    }
    default:
        return ENOTSUP;
    }
}

static int assemble(struct loader *loader, uint32_t program)
{
    const struct ew_image *image = loader->plan->image;
    const struct bpf_insn *all = (const struct bpf_insn *)(const void *)image->instructions;
    int error = 0;
    memset(loader->base, 0xff, sizeof loader->base);
    loader->order_count = loader->insn_count = 0;
    place(loader, program);
    for (uint32_t i = 0; i < loader->order_count; i++) {
        const struct ew_image_function *function = &image->functions[loader->order[i]];
        memcpy(&loader->insns[loader->base[loader->order[i]]], &all[function->insn],
               function->insn_count * sizeof *all);
    }
    for (uint32_t i = 0; i < loader->order_count; i++) {
        const struct ew_image_function *function = &image->functions[loader->order[i]];
        const struct ew_image_relocation *entries = &image->relocations[function->relocation];
        for (uint32_t j = 0; error == 0 && j < function->relocation_count; j++)
            error = relocate(loader, loader->base[loader->order[i]] + entries[j].insn, &entries[j]);
    }
    return error;
}

static int load_program(struct loader *loader, uint32_t index)
{
    const struct ew_image *image = loader->plan->image;
    const struct attach_kind *kind = attach_kind_of(&image->functions[index]);
    struct bpf_func_info functions[EW_IMAGE_FUNCTIONS_MAX];
    union bpf_attr attr;
    int error = assemble(loader, index);
    if (error != 0)
        return error;
    for (uint32_t i = 0; i < loader->order_count; i++)
        functions[i] =
            (struct bpf_func_info){.insn_off = loader->base[loader->order[i]],
                                   .type_id = image->functions[loader->order[i]].type_id};
    memset(&attr, 0, sizeof attr);
    if (kind->target != NULL) {
        const struct ew_kernel_type *target =
            find_wanted(loader, loader->names[index], kind->target_kind);
        if (target->count != 1)
            return ENOENT; /* in a module, perhaps */
        attr.attach_btf_id = target->ids[0];
    }
    attr.prog_type = kind->program_type;
    attr.expected_attach_type = kind->attach_type;
    attr.insns = address(loader->insns);
    attr.insn_cnt = loader->insn_count;
    attr.license = address(image->license);
    attr.prog_btf_fd = (uint32_t)loader->btf_fd;
    attr.func_info = address(functions);
    attr.func_info_cnt = loader->order_count;
    attr.func_info_rec_size = sizeof *functions;
    (void)snprintf(attr.prog_name, sizeof attr.prog_name, "%s", image->functions[index].name);
    loader->loaded->program_fds[index] = sys_bpf_fd(BPF_PROG_LOAD, &attr);
    return loader->loaded->program_fds[index] < 0 ? -loader->loaded->program_fds[index] : 0;
}

static int load_programs(struct loader *loader)
{
    const struct ew_image *image = loader->plan->image;
    uint32_t total = 0;
    int error = 0;
    for (size_t i = 0; i < image->function_count; i++)
        total += image->functions[i].insn_count;
    loader->insns = ew_calloc(total, sizeof *loader->insns);
    if (loader->insns == NULL)
        return ENOMEM;
    for (uint32_t i = 0; error == 0 && i < image->function_count; i++)
        if (loader->plan->programs[i])
            error = load_program(loader, i);
    return error;
}

/* ----------------------------------------------------------------------- interface */

void ew_loaded_init(struct ew_loaded *loaded)
{
    memset(loaded, 0xff, sizeof *loaded);
}

void ew_loaded_close(struct ew_loaded *loaded)
{
    for (size_t i = 0; i < EW_IMAGE_FUNCTIONS_MAX; i++)
        if (loaded->program_fds[i] >= 0)
            (void)close(loaded->program_fds[i]);
    for (size_t i = 0; i < EW_IMAGE_MAPS_MAX; i++)
        if (loaded->map_fds[i] >= 0)
            (void)close(loaded->map_fds[i]);
    ew_loaded_init(loaded);
}

int ew_load_directly(const struct ew_load_plan *plan, struct ew_loaded *ret_loaded)
{
    ew_loaded_init(ret_loaded);
    if (plan->image->function_count > EW_IMAGE_FUNCTIONS_MAX ||
        plan->image->field_count > EW_IMAGE_FIELDS_MAX ||
        plan->image->map_count > EW_IMAGE_MAPS_MAX)
        return E2BIG;
    struct loader *loader = ew_calloc(1, sizeof *loader);
    if (loader == NULL)
        return ENOMEM;
    loader->plan = plan;
    loader->loaded = ret_loaded;
    loader->btf_fd = loader->rodata_fd = -1;
    int error = find_types(loader);
    if (error == 0)
        error = create_maps(loader);
    if (error == 0)
        error = create_config(loader);
    if (error == 0)
        error = load_types(loader);
    if (error == 0)
        error = load_programs(loader);
    /* The programs hold references to both. */
    if (loader->btf_fd >= 0)
        (void)close(loader->btf_fd);
    if (loader->rodata_fd >= 0)
        (void)close(loader->rodata_fd);
    ew_ebpf_btf_close(&loader->btf);
    ew_free(loader->insns);
    ew_free(loader);
    if (error != 0)
        ew_loaded_close(ret_loaded);
    return error;
}

int ew_load_attach(const struct ew_image_function *program, int program_fd)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    if (strncmp(program->section, "iter/", 5) == 0) {
        attr.link_create.prog_fd = (uint32_t)program_fd;
        attr.link_create.attach_type = BPF_TRACE_ITER;
        return sys_bpf_fd(BPF_LINK_CREATE, &attr);
    }
    /* By the BTF id that the program was loaded with. */
    attr.raw_tracepoint.prog_fd = (uint32_t)program_fd;
    return sys_bpf_fd(BPF_RAW_TRACEPOINT_OPEN, &attr);
}
