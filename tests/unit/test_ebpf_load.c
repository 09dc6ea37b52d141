/* SPDX-License-Identifier: MIT */
/*
 * The loader of the BPF programs: what it reads from BTF, and that it makes the same programs of an
 * image as libbpf does. The kernel's tag of a program is a digest of its instructions.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <grp.h>
#include <linux/btf.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "source/ebpf/kernel_btf.h"
#include "source/ebpf/load.h"
#include "test.h"

/* ----------------------------------------------------------------- programs alike */

/* Everything on, so that no branch and no map is left out. */
static void plan_all(struct ew_load_plan *plan, const struct ew_image *image,
                     struct ew_k_config *config)
{
    memset(config, 0, sizeof *config);
    config->log_mask = 255;
    config->log_wake = 128;
    config->want = 255;
    config->memory = config->optional = config->excludes = 1;
    config->rss_period_ns = 1;
    config->pmu = 7;
    config->uid_count = config->cgroup_count = config->name_count = 1;
    memset(plan, 0, sizeof *plan);
    plan->image = image;
    plan->config = config;
    for (size_t i = 0; i < image->function_count; i++)
        plan->programs[i] = image->functions[i].section != NULL;
    for (size_t i = 0; i < image->map_count; i++)
        plan->map_entries[i] = image->maps[i].max_entries;
}

/* Loads what this machine takes of an image, and leaves the plan of it. */
static void load_directly(struct ew_load_plan *plan, const struct ew_image *image,
                          struct ew_k_config *config, struct ew_loaded *ret_direct)
{
    plan_all(plan, image, config);
    int error = ew_load_directly(plan, ret_direct);
    /* Some machines refuse programs on functions but allow those on tracepoints. */
    for (size_t i = 0; error != 0 && i < image->function_count; i++)
        if (plan->programs[i] && strncmp(image->functions[i].section, "fexit/", 6) == 0)
            plan->programs[i] = false;
    if (error != 0)
        error = ew_load_directly(plan, ret_direct);
    if (error == EPERM)
        SKIP("eBPF cannot be used here");
    if (error == ENOSYS)
        SKIP("the kernel lacks a function of this image");
    if (error == ENOENT)
        SKIP("the kernel lacks a function that a program attaches to");
    CHECK_EQ_INT(error, 0);
}

static void check_same_programs(const struct ew_image *image)
{
    struct ew_load_plan plan;
    struct ew_k_config config;
    struct ew_loaded direct, by_libbpf;
    load_directly(&plan, image, &config, &direct);
    int error = ew_load_by_libbpf(&plan, &by_libbpf);
    if (error == ESRCH) {
        ew_loaded_close(&direct);
        SKIP("libbpf before 1.0 cannot read the BTF of this kernel");
    }
    CHECK_EQ_INT(error, 0);
    for (size_t i = 0; i < image->function_count; i++) {
        struct bpf_prog_info one = {0}, other = {0};
        uint32_t size = sizeof one;
        test_row(image->functions[i].name);
        CHECK_EQ_INT(direct.program_fds[i] >= 0, plan.programs[i]);
        CHECK_EQ_INT(by_libbpf.program_fds[i] >= 0, plan.programs[i]);
        if (!plan.programs[i])
            continue;
        CHECK_EQ_INT(bpf_obj_get_info_by_fd(direct.program_fds[i], &one, &size), 0);
        size = sizeof other;
        CHECK_EQ_INT(bpf_obj_get_info_by_fd(by_libbpf.program_fds[i], &other, &size), 0);
        CHECK_EQ_MEM(one.tag, other.tag, sizeof one.tag);
        CHECK_EQ_UINT(one.xlated_prog_len, other.xlated_prog_len);
        CHECK_EQ_STR(one.name, other.name);
    }
    ew_loaded_close(&direct);
    ew_loaded_close(&by_libbpf);
}

TEST(the_typed_programs_are_those_that_libbpf_makes)
{
    check_same_programs(&ew_ebpf_typed);
}

TEST(the_plain_programs_are_those_that_libbpf_makes)
{
    check_same_programs(&ew_ebpf_plain);
}

enum { CAP_PERFMON_NUMBER = 38, CAP_BPF_NUMBER = 39, OTHER_USER = 65534 };

/* Ordinary user, CAP_BPF and CAP_PERFMON; 0 or an errno. */
static int become_user_with_two_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}, {0, 0, 0}};
    data[1].permitted = data[1].effective =
        1u << (CAP_PERFMON_NUMBER - 32) | 1u << (CAP_BPF_NUMBER - 32);
    bool ok = prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && setgroups(0, NULL) == 0 &&
              setresgid(OTHER_USER, OTHER_USER, OTHER_USER) == 0 &&
              setresuid(OTHER_USER, OTHER_USER, OTHER_USER) == 0 &&
              syscall(SYS_capset, &header, data) == 0;
    return ok ? 0 : errno;
}

/* An exit status below 200 is the errno of the load. */
enum { NO_RIGHTS_TO_CHANGE_USER = 200 };

static int load_by_libbpf_with_two_capabilities(const struct ew_load_plan *plan)
{
    struct ew_loaded loaded;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (become_user_with_two_capabilities() != 0)
            _exit(NO_RIGHTS_TO_CHANGE_USER);
        _exit(ew_load_by_libbpf(plan, &loaded));
    }
    CHECK_EQ_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(the_fallback_through_libbpf_needs_no_more_than_the_documented_capabilities)
{
    static const struct ew_image *const images[] = {&ew_ebpf_typed, &ew_ebpf_plain};
    struct ew_load_plan plan;
    struct ew_k_config config;
    struct ew_loaded direct;
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        test_row(i == 0 ? "typed" : "plain");
        load_directly(&plan, images[i], &config, &direct);
        ew_loaded_close(&direct);
        int error = load_by_libbpf_with_two_capabilities(&plan);
        if (error == NO_RIGHTS_TO_CHANGE_USER)
            SKIP("needs root to become an ordinary user with two capabilities");
        if (error == ESRCH)
            SKIP("libbpf before 1.0 cannot read the BTF of this kernel");
        CHECK_EQ_INT(error, 0);
    }
}

TEST(maps_that_are_not_needed_are_not_created)
{
    struct ew_load_plan plan;
    struct ew_k_config config;
    struct ew_loaded loaded;
    plan_all(&plan, &ew_ebpf_plain, &config);
    config.optional = config.pmu = config.excludes = 0;
    config.all = 1;
    for (size_t i = 0; i < plan.image->function_count; i++)
        plan.programs[i] =
            plan.programs[i] && strcmp(plan.image->functions[i].name, "ew_switch") == 0;
    for (size_t i = 0; i < plan.image->map_count; i++)
        if (strncmp(plan.image->maps[i].name, "pmu", 3) == 0 ||
            strstr(plan.image->maps[i].name, "watched") != NULL)
            plan.map_entries[i] = 0;
    int error = ew_load_directly(&plan, &loaded);
    if (error == EPERM)
        SKIP("eBPF cannot be used here");
    CHECK_EQ_INT(error, 0);
    for (size_t i = 0; i < plan.image->map_count; i++)
        CHECK_EQ_INT(loaded.map_fds[i] >= 0, plan.map_entries[i] != 0);
    ew_loaded_close(&loaded);
}

/* ------------------------------------------------------------------------ BTF */

enum { LONG = 1, CHAR, ARRAY, INNER, OUTER, ALIAS, POINTER, FLEXIBLE, TYPE_COUNT = 8 };

static const char strings[] = "\0long\0char\0inner\0outer\0a\0b\0bits\0list\0tail\0alias\0";

static uint32_t name_off(const char *name)
{
    for (uint32_t at = 1; at < sizeof strings; at += (uint32_t)strlen(strings + at) + 1)
        if (strcmp(strings + at, name) == 0)
            return at;
    return 0;
}

static uint32_t info(uint32_t kind, uint32_t flag, uint32_t count)
{
    return flag << 31 | kind << 24 | count;
}

struct blob {
    struct btf_header header;
    uint32_t words[128 + sizeof strings];
    size_t count;
};

static void put(struct blob *blob, uint32_t a, uint32_t b, uint32_t c)
{
    blob->words[blob->count++] = a;
    blob->words[blob->count++] = b;
    blob->words[blob->count++] = c;
}

/*
 * struct inner { long a; char list[3]; };
 * struct outer { long a; union { struct inner b; }; unsigned long bits : 3 (at bit 137); alias *…;
 * long tail[]; };
 */
static size_t make_blob(struct blob *blob)
{
    memset(blob, 0, sizeof *blob);
    put(blob, name_off("long"), info(BTF_KIND_INT, 0, 0), 8);
    blob->words[blob->count++] = 64;
    put(blob, name_off("char"), info(BTF_KIND_INT, 0, 0), 1);
    blob->words[blob->count++] = BTF_INT_SIGNED << 24 | 8;
    put(blob, 0, info(BTF_KIND_ARRAY, 0, 0), 0);
    put(blob, CHAR, LONG, 3);
    put(blob, name_off("inner"), info(BTF_KIND_STRUCT, 0, 2), 16);
    put(blob, name_off("a"), LONG, 0);
    put(blob, name_off("list"), ARRAY, 64);
    put(blob, name_off("outer"), info(BTF_KIND_STRUCT, 1, 5), 40);
    put(blob, name_off("a"), LONG, 0);
    put(blob, 0, INNER, 64); /* anonymous */
    put(blob, name_off("bits"), LONG, 3 << 24 | 201);
    put(blob, name_off("b"), POINTER, 256);
    put(blob, name_off("tail"), FLEXIBLE, 320);
    put(blob, name_off("alias"), info(BTF_KIND_TYPEDEF, 0, 0), OUTER);
    put(blob, 0, info(BTF_KIND_PTR, 0, 0), ALIAS);
    put(blob, 0, info(BTF_KIND_ARRAY, 0, 0), 0);
    put(blob, LONG, LONG, 0);
    memcpy(&blob->words[blob->count], strings, sizeof strings);
    blob->header = (struct btf_header){
        .magic = BTF_MAGIC,
        .version = 1,
        .hdr_len = sizeof blob->header,
        .type_len = (uint32_t)(blob->count * sizeof(uint32_t)),
        .str_off = (uint32_t)(blob->count * sizeof(uint32_t)),
        .str_len = sizeof strings,
    };
    return sizeof blob->header + blob->header.type_len + sizeof strings;
}

TEST(fields_are_found_by_name)
{
    struct blob blob;
    struct ew_ebpf_btf btf;
    struct ew_kernel_field field;
    struct ew_kernel_type wanted[] = {{.name = "outer", .kind = BTF_KIND_STRUCT},
                                      {.name = "alias", .kind = BTF_KIND_TYPEDEF},
                                      {.name = "inner", .kind = BTF_KIND_FUNC}};
    size_t size = make_blob(&blob);
    CHECK_EQ_INT(ew_ebpf_btf_index(&btf, &blob, size, wanted, 3), 0);
    CHECK_EQ_UINT(btf.type_count, TYPE_COUNT);
    CHECK_EQ_UINT(wanted[0].count, 1);
    CHECK_EQ_UINT(wanted[0].ids[0], OUTER);
    CHECK_EQ_UINT(wanted[1].ids[0], ALIAS);
    CHECK_EQ_UINT(wanted[2].count, 0);
    const struct {
        const char *path;
        int found; /* at this offset; -1: not */
        uint32_t size;
    } rows[] = {
        {".u:a", 0, 8},         {".au:list[2]", 18, 1}, {".au:list[3]", -1, 0}, {".u:list", -1, 0},
        {".s:list", -1, 0},     {".p:b", 32, 8},        {".u:b", -1, 0},        {".u:none", -1, 0},
        {".au:tail[5]", 80, 8}, {".u:a.u:b", -1, 0},    {".u:a[0]", -1, 0},     {".au:list", 16, 3},
        {".aau:list", -1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        test_row(rows[i].path);
        bool found = ew_ebpf_btf_field(&btf, ALIAS, rows[i].path, &field);
        CHECK_EQ_INT(found ? (int)field.offset : -1, rows[i].found);
        CHECK_EQ_UINT(found ? field.size : 0, rows[i].size);
    }
    test_row(NULL);
    CHECK(ew_ebpf_btf_field(&btf, OUTER, ".u:bits", &field));
    CHECK(field.bits);
    CHECK_EQ_UINT(field.offset, 24);
    CHECK_EQ_UINT(field.size, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    CHECK_EQ_UINT(field.left_shift, 64 - (9 + 3));
#endif
    CHECK_EQ_UINT(field.right_shift, 61);
    CHECK(!ew_ebpf_btf_field(&btf, 0, ".u:a", &field));
    CHECK(!ew_ebpf_btf_field(&btf, TYPE_COUNT + 1, ".u:a", &field));
    ew_ebpf_btf_close(&btf);
}

/* Every length, in memory of just that size, and every byte changed. */
TEST(damaged_type_information_is_refused_or_harmless)
{
    struct blob blob;
    size_t whole = make_blob(&blob);
    for (size_t size = 0; size <= whole; size++)
        for (int byte = -1; byte < (size == whole ? (int)whole : 0); byte++) {
            struct ew_kernel_type wanted[] = {{.name = "outer", .kind = BTF_KIND_STRUCT}};
            struct ew_ebpf_btf btf;
            struct ew_kernel_field field;
            unsigned char *copy = malloc(size == 0 ? 1 : size);
            CHECK(copy != NULL);
            memcpy(copy, &blob, size);
            if (byte >= 0)
                copy[byte] ^= 0xff;
            int error = ew_ebpf_btf_index(&btf, copy, size, wanted, 1);
            CHECK(size == whole || error != 0);
            for (uint32_t id = 0; error == 0 && id <= btf.type_count + 1; id++) {
                (void)ew_ebpf_btf_field(&btf, id, ".au:tail[1]", &field);
                (void)ew_ebpf_btf_field(&btf, id, ".u:bits", &field);
                (void)ew_ebpf_btf_field(&btf, id, ".s:b.u:a", &field);
            }
            ew_ebpf_btf_close(&btf);
            free(copy);
        }
}
