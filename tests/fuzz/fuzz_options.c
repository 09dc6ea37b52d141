/* SPDX-License-Identifier: MIT */
/*
 * Any words as a command line (separated by NUL), and the same bytes as a configuration file. The
 * parser must end, free everything, and write one line of message exactly when it refuses.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/check.c"
#include "cli/args/config_file.c"
#include "cli/args/config_keys.c"
#include "cli/args/etw_options.c"
#include "cli/args/option_table.c"
#include "cli/args/options.c"
#include "cli/args/value.c"
#include "fuzz.h"

enum { INPUT_MAX = 2048, WORDS_MAX = 64 };

static void check(int rc, const char *message)
{
    if ((rc != 0) != (message[0] != '\0') || strlen(message) >= EW_MESSAGE_SIZE) {
        fprintf(stderr, "broken: status %d with message \"%s\"\n", rc, message);
        abort();
    }
}

/* A path in the input would be opened: files on the fuzzer's disk are not part of the input. */
static bool names_a_file(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 8 <= size; i++)
        if (memcmp(data + i, "--config", 8) == 0)
            return true;
    return false;
}

static void parse_words(const uint8_t *data, size_t size)
{
    char text[INPUT_MAX + 1], message[EW_MESSAGE_SIZE];
    char *words[WORDS_MAX + 2] = {(char *)"etwatch"};
    int count = 1;
    struct ew_options options;
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t at = 0; at < size && count <= WORDS_MAX; at += strlen(text + at) + 1)
        words[count++] = text + at;
    int rc = ew_options_parse(count, words, &options, message);
    check(rc, message);
    ew_options_done(&options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char message[EW_MESSAGE_SIZE] = "";
    if (size > INPUT_MAX || names_a_file(data, size))
        return 0;
    parse_words(data, size);
    struct ew_options options = {.command = EW_CMD_STAT};
    struct ew_parser parser = {.options = &options, .message = message};
    int rc = ew_args_config_file_parse(&parser, "file", data, size);
    check(rc, message);
    ew_options_done(&options);
    return 0;
}
