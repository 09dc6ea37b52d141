# SPDX-License-Identifier: MIT
"""The imports and exports of the program and the library for Windows: only DLLs that Windows ships, only the API."""
import os
import re
import shutil
import subprocess
import sys

from lib import ROOT, check, check_eq, main, skip, test
from winekit import windows_build

# Present in every Windows 10 and 11, including Server Core.
SHIPPED = {"kernel32.dll", "advapi32.dll", "ntdll.dll", "msvcrt.dll"}


def objdump(name):
    path = os.path.join(windows_build(), name)
    tool = next(filter(shutil.which, ("x86_64-w64-mingw32-objdump", "objdump")), None)
    if tool is None:
        skip("no objdump")
    done = subprocess.run([tool, "-p", path], capture_output=True, check=True, text=True)
    return done.stdout


def imported(name):
    return {dll.lower() for dll in re.findall(r"DLL Name: (\S+)", objdump(name))}


@test
def the_program_needs_only_dlls_that_windows_ships():
    dlls = imported("etwatch.exe")
    check("kernel32.dll" in dlls, f"imports cannot be parsed: {dlls}")
    check_eq(dlls - SHIPPED, set(), "other imports")


@test
def the_library_needs_only_dlls_that_windows_ships():
    check_eq(imported("etwatch.dll") - SHIPPED, set(), "other imports")


@test
def the_library_exports_what_the_headers_declare_and_nothing_else():
    table = objdump("etwatch.dll").split("[Ordinal/Name Pointer] Table", 1)[1]
    names = re.findall(r"^\s*\[\s*\d+\](?: \+base\[\s*\d+\])?\s+(?:[0-9a-f]+\s+)?(\S+)$", table.split("\n\n", 1)[0],
                       re.MULTILINE)
    folder = os.path.join(ROOT, "include", "etwatch")
    sys.path.insert(0, os.path.join(ROOT, "scripts"))
    from exports import exported
    declared = exported(os.path.join(folder, header) for header in sorted(os.listdir(folder))
                        if header.endswith(".h"))
    check(len(declared) > 20, "the headers cannot be parsed")
    check_eq(sorted(names), declared, "exported functions")


@test
def the_program_is_a_console_program():
    check("(Windows CUI)" in objdump("etwatch.exe"), "not a console program")


main()
