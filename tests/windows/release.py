# SPDX-License-Identifier: MIT
"""The program for Windows has what Windows expects of one, and the release is made from it (packaging/windows_release.py)."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

from lib import ROOT, check, check_eq, check_in, main, run, skip, temp_dir, test
from winekit import windows_build

URL = "https://127.0.0.1/etwatch"


def objdump(path, *options):
    tool = shutil.which("x86_64-w64-mingw32-objdump")
    if tool is None:
        skip("no objdump")
    return subprocess.run([tool, *options, path], capture_output=True, check=True, text=True).stdout


def release(folder, *more):
    if shutil.which("x86_64-w64-mingw32-objcopy") is None:
        skip("no objcopy")
    result = run([os.path.join(ROOT, "packaging", "windows_release.py"), windows_build(), folder, *more],
                 program=sys.executable, timeout=110)
    check_eq(result.code, 0, f"exit code ({result.err})")


def content(path):
    with open(path, "rb") as file:
        return file.read()


@test
def the_program_has_a_version_an_icon_and_a_manifest():
    data = content(os.path.join(windows_build(), "etwatch.exe"))
    check_in(".rsrc", objdump(os.path.join(windows_build(), "etwatch.exe"), "-h"), "sections")
    for word in ("ProductVersion", "FileDescription", "etwatch.exe"):
        check(word.encode("utf-16-le") in data, f"no {word} in the version")
    manifest = re.search(rb"<assembly.*?</assembly>", data, re.DOTALL)
    check(manifest, "no manifest")
    text = manifest.group(0).decode()
    for word in (">true</longPathAware>", ">UTF-8</activeCodePage>", 'level="asInvoker"', "8e0f7a12-bfb3-4fe8-b9a5-48fd50a15a9a"):
        check_in(word, text, "manifest")
    check(b"@" not in manifest.group(0), "a word was not replaced")
    check(b"\x89PNG\r\n\x1a\n" in data, "no icon")


@test
def the_program_is_aware_of_terminal_servers_and_large_addresses():
    heads = objdump(os.path.join(windows_build(), "etwatch.exe"), "-p")
    for word in ("TERMINAL_SERVICE_AWARE", "NX_COMPAT", "DYNAMIC_BASE", "HIGH_ENTROPY_VA"):
        check_in(word, heads, "headers")


@test
def the_release_has_a_small_program_and_its_debug_information_apart():
    with temp_dir() as folder:
        release(folder)
        (name,) = [n for n in os.listdir(folder) if n.endswith("x86_64.zip")]
        with zipfile.ZipFile(os.path.join(folder, name)) as archive:
            names = archive.namelist()
            archive.extractall(folder)
        top = names[0].split("/")[0]
        for wanted in ("etwatch.exe", "etwatch.dll", "LICENSE", "windows.md", "include/etwatch/etwatch.h"):
            check(f"{top}/{wanted}" in names, f"no {wanted} in {names}")
        small = os.path.join(folder, top, "etwatch.exe")
        check(".debug_info" not in objdump(small, "-h"), "debug information in the program")
        check(os.path.getsize(small) < 2_000_000, f"{os.path.getsize(small)} bytes")
        check(b"etwatch.exe.debug" in content(small), "the program does not name its debug file")
        with zipfile.ZipFile(os.path.join(folder, name.replace(".zip", "-debug.zip"))) as archive:
            archive.extractall(folder)
        check_in(".debug_info", objdump(small + ".debug", "-h"), "sections of the debug file")
        sums = dict(reversed(line.split()) for line in content(os.path.join(folder, name[:-4] + ".sha256")).decode().splitlines())
        check_eq(len(sums), 2, "checksums")
        for file_name, wanted in sums.items():
            check_eq(hashlib.sha256(content(os.path.join(folder, file_name))).hexdigest(), wanted, file_name)
        check(not os.path.exists(os.path.join(folder, "etwatch.json")), "a manifest without a URL")


@test
def the_manifests_name_the_zip_and_its_checksum_and_a_release_is_reproducible():
    with temp_dir() as folder, temp_dir() as again:
        release(folder, URL)
        release(again, URL + "/")
        (name,) = [n for n in os.listdir(folder) if n.endswith("x86_64.zip")]
        data = content(os.path.join(folder, name))
        check(data == content(os.path.join(again, name)), "another zip from the same build")
        scoop = json.loads(content(os.path.join(folder, "etwatch.json")))["architecture"]["64bit"]
        digest = hashlib.sha256(data).hexdigest()
        check_eq((scoop["url"], scoop["hash"]), (f"{URL}/{name}", digest), "Scoop")
        installer = content(os.path.join(folder, "winget", "etwatch.etwatch.installer.yaml")).decode()
        check_in(f"InstallerSha256: {digest.upper()}", installer, "winget")
        check_in(f"InstallerUrl: {URL}/{name}", installer, "winget")
        inside = re.search(r"RelativeFilePath: (\S+)", installer).group(1).replace("\\", "/")
        with zipfile.ZipFile(os.path.join(folder, name)) as archive:
            check(inside in archive.namelist(), f"no {inside} in the zip")


main()
