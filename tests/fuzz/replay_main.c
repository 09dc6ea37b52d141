/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target over its corpus folder as an ordinary test, with any compiler and under Wine.
 * Each input is in a block of exactly its size, so that the address sanitizer detects a read past
 * the end. An empty corpus is a failure: it would test nothing.
 *
 * With a file instead of a folder it runs that input alone: to examine a crash, and for AFL, which
 * starts it again for each input.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "fuzz.h"

enum { MAX_INPUT_BYTES = 16 * 1024 * 1024 };

static int replay_file(const char *path)
{
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (file == NULL || stat(path, &info) != 0 || info.st_size > MAX_INPUT_BYTES) {
        printf("# cannot read %s\n", path);
        if (file != NULL)
            fclose(file);
        return -1;
    }
    size_t size = (size_t)info.st_size;
    uint8_t *data = ew_calloc(size > 0 ? size : 1, 1);
    int rc = -1;
    if (data != NULL && fread(data, 1, size, file) == size) {
        (void)LLVMFuzzerTestOneInput(data, size);
        rc = 0;
    }
    ew_free(data);
    fclose(file);
    return rc;
}

static int replay_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return 0;
    int count = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char path[1024];
        if (entry->d_name[0] == '.')
            continue;
        int len = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (len < 0 || (size_t)len >= sizeof path || replay_file(path) != 0) {
            count = -1;
            break;
        }
        count++;
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    struct stat info;
    if (argc == 2 && stat(argv[1], &info) == 0 && !S_ISDIR(info.st_mode))
        return replay_file(argv[1]) == 0 ? 0 : 1;
    printf("1..1\n");
    (void)fflush(stdout);
    int count = argc == 2 ? replay_folder(argv[1]) : 0;
    printf("%sok 1 - replays_the_corpus_of_%d_inputs\n", count > 0 ? "" : "not ", count);
    return count > 0 ? 0 : 1;
}
