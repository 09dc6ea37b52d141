/* SPDX-License-Identifier: MIT */
/* Output files: names, temporary files and the helper process. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "cli/cli.h"
#include "os/os.h"
#include "test.h"

/* The program is no library: its files are part of the test. */
#include "cli/place_helper_linux.c"
#include "cli/place_linux.c"

struct folder {
    char path[64], file[128];
};

static void make_folder(struct folder *folder)
{
    (void)snprintf(folder->path, sizeof folder->path, "/tmp/etwatch-place-XXXXXX");
    CHECK(mkdtemp(folder->path) != NULL);
    (void)snprintf(folder->file, sizeof folder->file, "%s/x.arrow", folder->path);
}

static bool has(const struct folder *folder, const char *name)
{
    char path[192];
    struct stat found;
    (void)snprintf(path, sizeof path, "%s/%s", folder->path, name);
    return lstat(path, &found) == 0;
}

static void remove_file(const struct folder *folder, const char *name)
{
    char path[192];
    (void)snprintf(path, sizeof path, "%s/%s", folder->path, name);
    CHECK_EQ_INT(unlink(path), 0);
}

/* Also checks that nothing else is in it. */
static void remove_folder(const struct folder *folder)
{
    CHECK_EQ_INT(rmdir(folder->path), 0);
}

TEST(the_number_of_a_file_stands_before_its_extension)
{
    static const struct {
        const char *path;
        uint32_t number;
        const char *want;
    } rows[] = {
        {"run.pftrace", 1, "run.pftrace"},     {"run.pftrace", 2, "run.2.pftrace"},
        {"/a.b/run", 3, "/a.b/run.3"},         {"/a.b/run.x.y", 12, "/a.b/run.x.12.y"},
        {"c:\\a.b\\run", 2, "c:\\a.b\\run.2"},
    };
    char buffer[64];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].path);
        CHECK(ew_path_numbered(rows[i].path, rows[i].number, buffer, sizeof buffer));
        CHECK_EQ_STR(buffer, rows[i].want);
    }
    CHECK(!ew_path_numbered("run.pftrace", 2, buffer, 13));
    CHECK(ew_path_numbered("run.pftrace", 2, buffer, 14));
}

/* The same with and without a helper. */
static void write_through(bool detached)
{
    struct folder folder;
    struct ew_place *place = NULL;
    int fd = -1;
    make_folder(&folder);
    CHECK_EQ_INT(ew_place_open(folder.file, 0, &place), 0);
    CHECK(!ew_place_is_special(place));
    if (detached)
        CHECK_EQ_INT(ew_place_detach(place), 0);
    CHECK_EQ_INT(ew_place_create(place, 0, &fd), 0);
    CHECK_EQ_INT(write(fd, "data", 4), 4);
    CHECK_EQ_INT(close(fd), 0);
    CHECK(!has(&folder, "x.arrow"));
    CHECK_EQ_INT(ew_place_commit(place), 0);
    CHECK(has(&folder, "x.arrow"));
    CHECK_EQ_INT(ew_place_create(place, 2, &fd), 0);
    CHECK_EQ_INT(close(fd), 0);
    CHECK(has(&folder, "x.2.arrow"));
    CHECK_EQ_INT(ew_place_remove(place, 2), 0);
    CHECK_EQ_INT(ew_place_remove(place, 2), ENOENT);
    CHECK_EQ_INT(ew_place_create(place, 0, &fd), 0);
    CHECK_EQ_INT(close(fd), 0);
    ew_place_close(place);
    remove_file(&folder, "x.arrow");
    remove_folder(&folder);
}

TEST(a_temporary_file_gets_its_name_when_it_is_complete_and_is_removed_otherwise)
{
    write_through(false);
}

TEST(a_helper_process_does_the_same)
{
    write_through(true);
}

TEST(a_helper_creates_files_after_all_rights_are_gone)
{
    struct folder folder;
    struct ew_place *place = NULL;
    int fd = -1, status = -1;
    if (getuid() != 0)
        SKIP("needs root to write into the folder of another user");
    make_folder(&folder);
    CHECK_EQ_INT(chown(folder.path, 65534, 65534), 0);
    pid_t pid = fork();
    if (pid == 0) {
        bool done = ew_place_open(folder.file, 0, &place) == 0 && ew_place_detach(place) == 0;
        ew_os_drop_all_rights();
        done = done && open(folder.file, O_CREAT | O_WRONLY, 0600) < 0 &&
               ew_place_create(place, 2, &fd) == 0;
        _exit(done ? 0 : 1);
    }
    CHECK_EQ_INT(waitpid(pid, &status, 0), pid);
    CHECK_EQ_INT(status, 0);
    CHECK(has(&folder, "x.2.arrow"));
    remove_file(&folder, "x.2.arrow");
    remove_folder(&folder);
}

TEST(a_killed_process_leaves_no_temporary_file)
{
    struct folder folder;
    struct ew_place *place = NULL;
    int fd = -1, status = -1;
    make_folder(&folder);
    pid_t pid = fork();
    if (pid == 0) {
        bool done = ew_place_open(folder.file, 0, &place) == 0 && ew_place_detach(place) == 0 &&
                    ew_place_create(place, 0, &fd) == 0;
        _exit(done ? 7 : 1);
    }
    CHECK_EQ_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    /* The helper ends on its own; only the folder shows when. */
    for (int i = 0; i < 10000 && rmdir(folder.path) != 0; i++)
        (void)usleep(1000);
    CHECK(!has(&folder, "."));
}
