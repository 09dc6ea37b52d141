/* SPDX-License-Identifier: MIT */
/* The probes of doctor on recorded trees, and how a refused system call is interpreted. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/doctor.h"
#include "test.h"

static void put_check(void *ctx, const struct etwatch_check *check)
{
    static const char *const states[] = {"ok", "warn", "fail"};
    struct ew_buf *out = ctx;
    ew_buf_text(out, states[check->state]);
    ew_buf_char(out, ' ');
    ew_buf_text(out, check->id);
    ew_buf_text(out, ": ");
    ew_buf_text(out, check->found);
    ew_buf_char(out, '\n');
    if (check->cost[0] != '\0' || check->fix[0] != '\0') {
        ew_buf_text(out, "  ");
        ew_buf_text(out, check->cost);
        ew_buf_text(out, "\n  ");
        ew_buf_text(out, check->fix);
        ew_buf_char(out, '\n');
    }
}

static int works(void)
{
    return 0;
}

static int refused(void)
{
    return EPERM;
}

static int missing(void)
{
    return ENOSYS;
}

static void probe(const char *tree, int (*try_bpf)(void), struct ew_buf *out)
{
    char folder[512], proc_root[600], sys_root[600];
    (void)snprintf(folder, sizeof folder, "golden/doctor/%s", tree);
    const char *path = test_path(folder);
    (void)snprintf(proc_root, sizeof proc_root, "%s/proc", path);
    (void)snprintf(sys_root, sizeof sys_root, "%s/sys", path);
    struct ew_doctor_config config = {.proc_root = proc_root,
                                      .sys_root = sys_root,
                                      .try_bpf = try_bpf,
                                      .on_check = put_check,
                                      .ctx = out};
    ew_buf_init(out, 0, NULL, NULL);
    CHECK_EQ_INT(ew_doctor_probe(&config), 0);
    ew_buf_char(out, '\0');
    CHECK_EQ_INT(out->error, 0);
}

/* The root of the trees differs between machines. */
static void hide_root(char *text)
{
    char root[512];
    (void)snprintf(root, sizeof root, "%s", test_path("golden/doctor"));
    size_t len = strlen(root);
    for (char *at = text; (at = strstr(at, root)) != NULL;)
        memmove(at, at + len, strlen(at + len) + 1);
}

static void check_tree(const char *tree, int (*try_bpf)(void))
{
    char name[128], want[16384] = "";
    struct ew_buf out;
    probe(tree, try_bpf, &out);
    hide_root(out.data);
    (void)snprintf(name, sizeof name, "golden/doctor/%s.txt", tree);
    if (getenv("ETWATCH_UPDATE") != NULL) {
        FILE *file = fopen(test_path(name), "wb");
        CHECK(file != NULL);
        CHECK(fputs(out.data, file) >= 0);
        CHECK_EQ_INT(fclose(file), 0);
    } else {
        FILE *file = fopen(test_path(name), "rb");
        CHECK(file != NULL);
        size_t len = fread(want, 1, sizeof want - 1, file);
        fclose(file);
        want[len] = '\0';
        CHECK_EQ_STR(out.data, want);
    }
    ew_buf_done(&out);
}

TEST(with_all_rights_everything_is_fine)
{
    check_tree("root", works);
}

TEST(without_rights_each_missing_one_is_reported_with_its_fix)
{
    check_tree("nobody", refused); /* words-ok: a user's name */
}

TEST(missing_features_of_an_old_locked_down_kernel_are_reported)
{
    check_tree("old_locked", missing);
}

TEST(in_a_container_the_fix_is_an_option_of_the_container)
{
    check_tree("container", refused);
}

TEST(before_5_8_the_setcap_line_has_cap_sys_admin)
{
    check_tree("kernel57", refused);
}

TEST(the_setcap_line_has_what_locked_memory_needs_and_what_the_program_has)
{
    check_tree("kernel510", refused);
}

/* The setcap lines of the output. NULL: there are two different ones. */
static const char *only_setcap_line(const char *text, char *buffer, size_t size)
{
    buffer[0] = '\0';
    for (const char *at = text; (at = strstr(at, "sudo setcap ")) != NULL; at++) {
        size_t len = strcspn(at, ")\n") + 1;
        char line[256];
        (void)snprintf(line, sizeof line, "%.*s", (int)len, at);
        if (buffer[0] != '\0' && strcmp(buffer, line) != 0)
            return NULL;
        (void)snprintf(buffer, size, "%s", line);
    }
    return buffer;
}

/* setcap replaces the capabilities of a file: a second line would take back the first. */
TEST(one_setcap_line_fixes_everything_that_capabilities_can)
{
    static const struct {
        const char *caps, *bounds, *want, *remark;
        unsigned mode; /* of the energy counter; 0: none */
    } rows[] = {
        {"0", "1ffffffffff", "sudo setcap cap_bpf,cap_perfmon+ep $(command -v etwatch)",
         "nothing: the smallest set", 0},
        {"0", "1ffffffffff", "sudo setcap cap_bpf,cap_perfmon+ep $(command -v etwatch)",
         "what is optional is not part of it", 0400},
        {"4000000000", "1ffffffffff", "sudo setcap cap_bpf,cap_perfmon+ep $(command -v etwatch)",
         "one of the two", 0},
        {"c000000000", "1ffffffffff",
         "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep $(command -v etwatch)",
         "both: what is optional", 0},
        {"c000000000", "1ffffffffff",
         "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep $(command -v "
         "etwatch)",
         "both, and closed energy counters", 0400},
        {"c000000000", "1ffffffffff",
         "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep $(command -v etwatch)",
         "both, and open energy counters", 0444},
        {"c000000000", "1fffff7ffff",
         "sudo setcap cap_bpf,cap_perfmon,cap_dac_read_search+ep $(command -v etwatch)",
         "what the bounding set lacks is not part of it", 0400},
        {"c000080004", "1ffffffffff", "", "everything", 0400},
        {"0", "7fffffffff", "", "the bounding set lacks what is required", 0},
    };
    char folder[] = "/tmp/etwatch-doctor-XXXXXX", path[512], line[256];
    CHECK(mkdtemp(folder) != NULL);
    static const char *const folders[] = {
        "proc",      "proc/self",          "sys",
        "sys/class", "sys/class/powercap", "sys/class/powercap/intel-rapl:0"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
        CHECK_EQ_INT(mkdir(path, 0700), 0);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char proc_root[128], sys_root[128], meter[256];
        struct ew_buf out;
        test_row(rows[i].remark);
        (void)snprintf(proc_root, sizeof proc_root, "%s/proc", folder);
        (void)snprintf(sys_root, sizeof sys_root, "%s/sys", folder);
        (void)snprintf(meter, sizeof meter, "%s/class/powercap/intel-rapl:0/energy_uj", sys_root);
        (void)snprintf(path, sizeof path, "%s/self/status", proc_root);
        FILE *file = fopen(path, "wb");
        CHECK(file != NULL);
        CHECK(fprintf(file, "Uid:\t7\t1000\t7\t7\nCapEff:\t%s\nCapBnd:\t%s\n", rows[i].caps,
                      rows[i].bounds) > 0);
        CHECK_EQ_INT(fclose(file), 0);
        (void)remove(meter);
        if (rows[i].mode != 0) {
            file = fopen(meter, "wb");
            CHECK(file != NULL);
            CHECK_EQ_INT(fclose(file), 0);
            CHECK_EQ_INT(chmod(meter, rows[i].mode), 0);
        }
        struct ew_doctor_config config = {
            .proc_root = proc_root, .sys_root = sys_root, .on_check = put_check, .ctx = &out};
        ew_buf_init(&out, 0, NULL, NULL);
        CHECK_EQ_INT(ew_doctor_probe(&config), 0);
        ew_buf_char(&out, '\0');
        CHECK_EQ_STR(only_setcap_line(out.data, line, sizeof line), rows[i].want);
        CHECK_EQ_INT(strstr(out.data, "cap_dac_read_search: ") != NULL,
                     rows[i].mode == 0400 && strcmp(rows[i].caps, "c000080004") != 0);
        ew_buf_done(&out);
        (void)remove(meter);
        (void)remove(path);
    }
    for (size_t i = sizeof folders / sizeof folders[0]; i-- > 0;) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
        CHECK_EQ_INT(rmdir(path), 0);
    }
    CHECK_EQ_INT(rmdir(folder), 0);
}

TEST(an_empty_tree_is_handled)
{
    check_tree("nothing", NULL);
}

TEST(a_refusal_in_spite_of_the_capability_points_at_seccomp)
{
    struct ew_buf out;
    probe("root", refused, &out);
    CHECK_CONTAINS(out.data, "fail bpf_syscall: refused: Operation not permitted although the "
                             "capability is present (seccomp?)");
    CHECK_CONTAINS(out.data, "seccomp profile");
    ew_buf_done(&out);
}

TEST(the_public_call_finds_sys_next_to_proc)
{
    char root[600];
    struct ew_buf out;
    (void)snprintf(root, sizeof root, "%s/proc", test_path("golden/doctor/root"));
    ew_buf_init(&out, 0, NULL, NULL);
    CHECK_EQ_INT(etwatch_doctor(root, put_check, &out), 0);
    ew_buf_char(&out, '\0');
    CHECK_CONTAINS(out.data, "ok btf: ");
    CHECK_CONTAINS(out.data, "golden/doctor/root/sys/kernel/btf/vmlinux");
    CHECK(strstr(out.data, "bpf_syscall") == NULL);
    ew_buf_done(&out);
    CHECK_EQ_INT(etwatch_doctor(root, NULL, NULL), ETWATCH_EINVAL);
}
