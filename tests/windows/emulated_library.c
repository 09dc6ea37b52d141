/* SPDX-License-Identifier: MIT */
/*
 * The library with the emulator instead of ETW, for programs that load it (the Python package):
 * ETWATCH_EMULATED configures it as the first argument of etwatch_emulated does.
 */
#include <stdlib.h>
#include <string.h>

int ew_main(int argc, char **argv);
int emulated_main(int argc, char **argv);

/* There is no program to run. */
int ew_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    static char name[] = "etwatch", words[4096];
    char *argv[] = {name, words, NULL};
    const char *given = getenv("ETWATCH_EMULATED");
    if (given == NULL || strlen(given) >= sizeof words)
        abort();
    memcpy(words, given, strlen(given) + 1);
    (void)emulated_main(2, argv);
}
