/* SPDX-License-Identifier: MIT */
/* Which cgroups a path or a container ID selects, and which path of a process is shown. */
#include "model/cgroup.h"
#include "test.h"

#include <string.h>

#define ID "3f2a9c41d07b6e5580a1c2d3e4f5061728394a5b6c7d8e9f0a1b2c3d4e5f6071"
#define OTHER "4f2a9c41d07b6e5580a1c2d3e4f5061728394a5b6c7d8e9f0a1b2c3d4e5f6071"
#define SHORT "3f2a9c41d07b"

static struct ew_span span(const char *text)
{
    return (struct ew_span){text, strlen(text)};
}

TEST(a_cgroup_contains_the_cgroups_below_it)
{
    static const struct {
        const char *remark, *path, *wanted;
        int below;
    } rows[] = {
        {"the same", "/system.slice", "system.slice", 1},
        {"below", "/system.slice/a.service", "/system.slice/", 1},
        {"a longer name", "/system.slice2", "system.slice", 0},
        {"the root contains everything", "/user.slice", "/", 1},
        {"an empty path is the root", "/a", "", 1},
        {"the root itself", "/", "/", 1},
        {"above", "/system.slice", "system.slice/a.service", 0},
        {"no cgroup contains the root", "/", "/a", 0},
        {"two parts", "/a/b", "a/b/", 1},
        {"part of a part", "/a/bc", "/a/b", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        CHECK_EQ_INT(ew_cgroup_matches(span(rows[i].path), rows[i].wanted), rows[i].below);
    }
}

TEST(a_container_is_found_in_the_paths_of_every_container_runtime)
{
    static const struct {
        const char *remark, *path;
        int found;
    } rows[] = {
        {"docker", "/docker/" ID, 1},
        {"docker under systemd", "/system.slice/docker-" ID ".scope", 1},
        {"podman", "/machine.slice/libpod-" ID ".scope", 1},
        {"podman, the inner group", "/machine.slice/libpod-" ID ".scope/container", 1},
        {"podman of a user",
         "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container",
         1},
        {"the monitor of a container", "/machine.slice/libpod-conmon-" ID ".scope", 0},
        {"containerd in kubernetes",
         "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1c5b.slice/"
         "cri-containerd-" ID ".scope",
         1},
        {"kubernetes without systemd", "/kubepods/burstable/pod1c5b3a2e-90d1/" ID, 1},
        {"containerd's own names", "/system.slice/containerd.service/kubepods:cri-containerd:" ID,
         1},
        {"cri-o", "/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope", 1},
        {"another one", "/docker/" OTHER, 0},
        {"inside of another one", "/docker/" OTHER "/docker/" ID, 1},
        {"outside of another one", "/docker/" ID "/docker/" OTHER, 1},
        {"one digit more", "/docker/" ID "0", 0},
        {"one digit less",
         "/docker/3f2a9c41d07b6e5580a1c2d3e4f5061728394a5b6c7d8e9f0a1b2c3d4e5f607", 0},
        {"no container", "/system.slice/ssh.service", 0},
        {"the root", "/", 0},
        {"nothing", "", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        CHECK_EQ_INT(ew_cgroup_matches(span(rows[i].path), "container:" ID), rows[i].found);
        CHECK_EQ_INT(ew_cgroup_matches(span(rows[i].path), "container:" SHORT), rows[i].found);
    }
}

TEST(the_id_of_a_nested_container_is_that_of_the_inner_one)
{
    struct ew_span id;
    CHECK(ew_cgroup_container(span("/docker/" OTHER "/docker/" ID), &id));
    CHECK(id.len == 64 && memcmp(id.text, ID, 64) == 0);
    CHECK(!ew_cgroup_container(span("/user.slice"), &id));
}

TEST(containers_are_found_in_both_cgroup_versions_and_paths_in_version_2)
{
    static const char first[] = "4:memory:/docker/" ID "\n1:name=systemd:/docker/" ID "\n";
    static const char both[] = "4:memory:/docker/" ID "\n0::/system.slice/containerd.service\n";
    static const char second[] = "0::/system.slice/docker-" ID ".scope\n";
    static const struct {
        const char *text, *wanted;
        int matches;
    } rows[] = {
        {first, "container:" SHORT, 1},
        {first, "docker", 0},
        {both, "container:" SHORT, 1},
        {both, "system.slice", 1},
        {both, "docker", 0},
        {second, "container:" SHORT, 1},
        {second, "system.slice", 1},
        {second, "container:4f2a", 0},
        {"nonsense", "container:3f", 0},
        {"", "/", 0},
        {"4:memory", "/", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].text);
        CHECK_EQ_INT(ew_cgroup_text_matches(rows[i].text, strlen(rows[i].text), rows[i].wanted),
                     rows[i].matches);
    }
}

TEST(the_most_specific_path_is_shown)
{
    static const struct {
        const char *text, *shown; /* NULL: none */
        int only;
    } rows[] = {
        {"0::/user.slice\n", "/user.slice", 1},
        {"0::/\n", "/", 1},
        {"4:memory:/x\n0::/user.slice\n", "/user.slice", 0},
        {"4:memory:/\n0::/user.slice\n", "/user.slice", 1},
        {"4:memory:/docker/" ID "\n0::/system.slice/containerd.service\n", "/docker/" ID, 0},
        {"4:memory:/docker/" ID "\n1:name=systemd:/docker/" ID "\n", "/docker/" ID, 0},
        {"4:memory:/a\n1:name=systemd:/user.slice/a.scope\n", "/user.slice/a.scope", 0},
        {"1:name=systemd:/user.slice/a.scope\n0::/\n", "/user.slice/a.scope", 0},
        {"4:memory:/a\n", NULL, 0},
        {"", NULL, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_span path;
        bool only = false;
        test_row(rows[i].text);
        bool found = ew_cgroup_shown(rows[i].text, strlen(rows[i].text), &path, &only);
        CHECK_EQ_INT(found, rows[i].shown != NULL);
        CHECK_EQ_INT(only, rows[i].only);
        if (found && rows[i].shown != NULL)
            CHECK(path.len == strlen(rows[i].shown) &&
                  memcmp(path.text, rows[i].shown, path.len) == 0);
    }
}
