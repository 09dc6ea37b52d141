/* SPDX-License-Identifier: MIT */
/* Where the program begins: arguments come as they are. */
#include "cli/commands.h"

int main(int argc, char **argv)
{
    return ew_main(argc, argv);
}
