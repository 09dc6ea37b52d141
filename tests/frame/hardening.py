# SPDX-License-Identifier: MIT
"""The binaries carry the protections that the build requests: read from the files, not from the flags."""
import os
import re
import shutil
import subprocess

from lib import BUILD, ETWATCH, check, check_eq, main, skip, test
from winekit import windows_build

LIBRARY = os.path.join(BUILD, "libetwatch.so")


def readelf(path, *options):
    if shutil.which("readelf") is None:
        skip("readelf is not installed")
    return subprocess.run(["readelf", "-W", *options, path], check=True, capture_output=True, text=True).stdout


def is_sanitized():
    return "__asan_" in readelf(ETWATCH, "--dyn-syms") or "__tsan_" in readelf(ETWATCH, "--dyn-syms")


def both(check_one):
    for path in (ETWATCH, LIBRARY):
        check_one(path, os.path.basename(path))


@test
def relocations_are_read_only_after_start():
    def one(path, name):
        check("GNU_RELRO" in readelf(path, "-l"), f"{name}: no RELRO segment")
        check(re.search(r"\bNOW\b|BIND_NOW", readelf(path, "-d")), f"{name}: symbols are bound lazily")
    both(one)


@test
def the_program_is_position_independent():
    check_eq(re.search(r"Type:\s+(\w+)", readelf(ETWATCH, "-h")).group(1), "DYN", "ELF type")


@test
def no_stack_is_executable_and_no_segment_is_writable_and_executable():
    def one(path, name):
        for line in readelf(path, "-l").splitlines():
            flags = re.search(r"0x\S+\s+([RWE ]{3})\s+0x", line)
            if flags:
                check(not ("W" in flags.group(1) and "E" in flags.group(1)), f"{name}: {line.strip()}")
            if "GNU_STACK" in line:
                check("E" not in line.split("GNU_STACK", 1)[1].replace("GNU", ""), f"{name}: executable stack")
    both(one)


@test
def stack_protector_and_checked_functions_are_used():
    if is_sanitized():
        skip("a sanitizer replaces the checked functions")

    def one(path, name):
        symbols = readelf(path, "--dyn-syms")
        check("__stack_chk_fail" in symbols, f"{name}: no stack protector")
        check(re.search(r"__(memcpy|snprintf|vsnprintf|read|pread|readlink)_chk", symbols), f"{name}: no checked function of glibc")
    both(one)


@test
def indirect_branches_have_landing_pads():
    machine = re.search(r"Machine:\s+(.*)", readelf(ETWATCH, "-h")).group(1)
    wanted = {"Advanced Micro Devices X86-64": r"endbr64", "AArch64": r"bti\s|paciasp"}.get(machine)
    if wanted is None or shutil.which("objdump") is None:
        skip(f"{machine} has none, or no objdump")
    # The property of the whole file also depends on the C library's start code, which Debian 12 builds
    # without; so the functions themselves are looked at.
    code = subprocess.run(["objdump", "-d", "--disassemble=etwatch_monitor_new", LIBRARY], check=True,
                          capture_output=True, text=True).stdout
    first = re.search(r"<etwatch_monitor_new[^>]*>:\n(.*)", code)
    check(first is not None, "etwatch_monitor_new is not in the library")
    check(re.search(wanted, first.group(1)), f"no landing pad: {first.group(1)}")


@test
def the_windows_binaries_are_randomized_and_their_data_does_not_execute():
    tool = next(filter(shutil.which, ("x86_64-w64-mingw32-objdump",)), None)
    if tool is None:
        skip("no objdump for Windows")
    for name in ("etwatch.exe", "etwatch.dll"):
        text = subprocess.run([tool, "-p", os.path.join(windows_build(), name)], check=True, capture_output=True, text=True).stdout
        for wanted in ("HIGH_ENTROPY_VA", "DYNAMIC_BASE", "NX_COMPAT"):
            check(wanted in text, f"{name}: no {wanted}")


main()
