/* SPDX-License-Identifier: MIT */
/*
 * The program with the emulator instead of ETW, on every system:
 *
 *   etwatch_emulated HOW COMMAND…
 *
 * HOW is a list of words separated by commas: a recording, which begins when a session does;
 * buffers (whole buffers are available), no-rights, no-privilege, full (no system logger is free),
 * stuck (a session with our name cannot be ended), logger (the NT Kernel Logger runs), loses (one
 * event of 97), stops (the session is stopped from outside repeatedly), counters, amd, no-counters,
 * busy (the hardware counters: all, those of AMD, none, none that are free). It ends with 99 if a
 * session of etwatch is left.
 *
 * The two functions below replace those of the library, which the linker then omits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etw_emulator.h"
#include "source/etl/reader.h"
#include "source/source.h"

#undef ew_main
int ew_main(int argc, char **argv);       /* the program's main */
int emulated_main(int argc, char **argv); /* the start time of this recording */

enum { LEFT_BEHIND = 99, KERNEL_FLAGS = 0x13 };

static struct etw_emulator *emulator;
static struct etw_emulator_config config = {
    .real_time = true, .to_now = true, .knows_owners = true};
static bool stuck, logger;

static const char *const intel[] = {"Timer",       "TotalIssues",        "BranchInstructions",
                                    "CacheMisses", "TotalCycles",        "UnhaltedCoreCycles",
                                    "LLCMisses",   "InstructionRetired", NULL};
static const char *const amd[] = {"Timer", "TotalIssues", "DcacheMisses", "TotalCycles", NULL};
static const char *const virtual_machine[] = {"Timer", NULL};

const struct ew_etw_api *ew_etw_real_api(struct ew_error *reterr)
{
    (void)reterr;
    return etw_emulator_api(emulator);
}

const struct ew_source_ops *ew_source_native(void)
{
    return &ew_source_etw;
}

static void read_recording(const char *path)
{
    struct ew_etl_reader *reader;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        abort();
    size_t size = (size_t)ftell(file);
    void *bytes = malloc(size);
    rewind(file);
    if (bytes == NULL || fread(bytes, 1, size, file) != size ||
        ew_etl_open_memory(bytes, size, NULL, &reader, NULL) != 0)
        abort();
    (void)fclose(file);
    config.recording = bytes; /* as long as the program */
    config.recording_size = size;
    config.cpu_count = ew_etl_file_info(reader, 0)->cpu_count;
    config.perf_frequency = ew_etl_file_info(reader, 0)->perf_frequency;
    ew_etl_close(reader);
}

static void take_word(const char *word)
{
    if (strcmp(word, "buffers") == 0) {
        config.offers_buffers = true;
    } else if (strcmp(word, "no-rights") == 0) {
        config.no_rights = true;
    } else if (strcmp(word, "no-privilege") == 0) {
        config.no_privilege = true;
    } else if (strcmp(word, "full") == 0) {
        config.loggers_in_use = true;
    } else if (strcmp(word, "stuck") == 0) {
        config.stuck_session = stuck = true;
    } else if (strcmp(word, "logger") == 0) {
        logger = true;
    } else if (strcmp(word, "counters") == 0) {
        config.sources = intel;
    } else if (strcmp(word, "amd") == 0) {
        config.sources = amd;
    } else if (strcmp(word, "no-counters") == 0) {
        config.sources = virtual_machine;
    } else if (strcmp(word, "busy") == 0) {
        config.sources = intel;
        config.counters_busy = true;
    } else if (strcmp(word, "loses") == 0) {
        config.lose_every = 97;
    } else if (strcmp(word, "stops") == 0) {
        config.stop_after = 500;
        config.stop_times = 4;
    } else {
        read_recording(word);
    }
}

int emulated_main(int argc, char **argv)
{
    struct etw_emulator_counts counts;
    char *words = argc > 1 ? argv[1] : NULL;
    while (words != NULL) {
        char *end = strchr(words, ',');
        if (end != NULL)
            *end++ = '\0';
        take_word(words);
        words = end;
    }
    if (config.recording == NULL)
        config.generate = 1;
    emulator = etw_emulator_new(&config);
    if (stuck)
        etw_emulator_add(emulator, "etwatch-watch", 0x02000100, 0x1);
    if (logger)
        etw_emulator_add(emulator, "NT Kernel Logger", 0x100, KERNEL_FLAGS);
    argv[1] = argv[0];
    int code = ew_main(argc - 1, argv + 1);
    etw_emulator_counts(emulator, &counts);
    if (counts.ours > (uint32_t)stuck)
        code = LEFT_BEHIND;
    return code;
}
