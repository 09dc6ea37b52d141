/* SPDX-License-Identifier: MIT */
/* Names of programs as Windows logs them: 8-bit in the machine's code page, and the command line in
 * UTF-16. */
#include "make_hand.h"

static const struct {
    uint32_t pid;
    const char *image, *command_line;
} programs[] = {
    {5000, "caf\xE9.exe", "\"C:\\Program Files\\caf\u00E9.exe\" -x"},        /* 1252 */
    {5004, "\x83\x65\x83\x58\x83\x67.exe", "C:\\t\\\u30C6\u30B9\u30C8.exe"}, /* 932 */
    {5008, "????.exe", "\u0442\u0435\u0441\u0442.exe 1"}, /* not in the code page */
    {5012, "plain.exe", "plain.exe"},
    {5016, "na\xEFve.exe", ""}, /* unknown: stays as it is */
};

static void put_process(struct hand *h, unsigned opcode, size_t i)
{
    struct etl_process x = {.key = programs[i].pid,
                            .pid = programs[i].pid,
                            .parent_pid = 400,
                            .exit_status = opcode == 2 ? 0 : 259,
                            .image = programs[i].image,
                            .command_line = programs[i].command_line,
                            .package = "",
                            .application = ""};
    etl_process(&h->payload, 4, 8, &x);
    hand_put_kernel(h, 8, 0x0300u | opcode, 4);
}

static int make_code_page(const struct make_options *o, struct make_output *output)
{
    static struct hand h;
    int rc = hand_begin(&h, o, output);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        put_process(&h, i == 1 ? 3 : 1, i); /* one was there before */
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        put_process(&h, 2, i);
    return hand_end(&h, 0, 0);
}

const struct make_kind make_names_kinds[] = {
    {"code-page", "names of programs in the code page of the machine", make_code_page},
    {NULL, NULL, NULL},
};
