#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the release for Windows from a build: a zip, a zip with debug information, checksums, and package manifests.

usage: packaging/windows_release.py BUILD-FOLDER OUTPUT-FOLDER [URL]

URL is the folder from which the zip will be downloaded; winget and Scoop manifests, which need it, are written only with it.
The same build gives the same bytes. Called by ./dev windows zip.
"""
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOLS = "x86_64-w64-mingw32-"
EPOCH = (1980, 1, 1, 0, 0, 0)
SUMMARY = "Shows what every process really did: CPU time, memory, I/O, switches and faults from the events of the kernel."


def version():
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as file:
        return re.search(r"version: '([^']+)'", file.read()).group(1)


def tool(name):
    path = shutil.which(TOOLS + name)
    if path is None:
        raise SystemExit(f"windows_release: {TOOLS}{name} is missing; ./dev windows installs it")
    return path


def split_debug(path, folder):
    """The program without debug information, and its debug information, which it names."""
    out, debug = os.path.join(folder, os.path.basename(path)), os.path.join(folder, os.path.basename(path) + ".debug")
    subprocess.run([tool("objcopy"), "-p", "--only-keep-debug", path, debug], check=True)
    subprocess.run([tool("strip"), "-p", "--strip-all", "-o", out, path], check=True)
    # In the folder of the file: only its name is kept.
    subprocess.run([tool("objcopy"), "-p", f"--add-gnu-debuglink={os.path.basename(debug)}", os.path.basename(out)], check=True,
                   cwd=folder)
    return out, debug


def write_zip(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for name, source in sorted(files.items()):
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o755 if name.endswith(".exe") else 0o644) << 16
            with open(source, "rb") as file:
                out.writestr(info, file.read())


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def winget(folder, url, name, number):
    head = f"PackageIdentifier: etwatch.etwatch\nPackageVersion: {number}\n"
    tail = "ManifestVersion: 1.6.0\n"
    texts = {
        "etwatch.etwatch.yaml": head + "DefaultLocale: en-US\nManifestType: version\n" + tail,
        "etwatch.etwatch.locale.en-US.yaml": head + "PackageLocale: en-US\nPublisher: The etwatch authors\n"
        f"PackageName: etwatch\nLicense: MIT\nShortDescription: \"{SUMMARY}\"\nManifestType: defaultLocale\n" + tail,
        "etwatch.etwatch.installer.yaml": head + "InstallerType: zip\nNestedInstallerType: portable\n"
        "NestedInstallerFiles:\n"
        f"- RelativeFilePath: etwatch-{number}\\etwatch.exe\n  PortableCommandAlias: etwatch\n"
        f"Installers:\n- Architecture: x64\n  InstallerUrl: {url}/{name}\n"
        f"  InstallerSha256: {digest(os.path.join(folder, name)).upper()}\nManifestType: installer\n" + tail,
    }
    os.makedirs(os.path.join(folder, "winget"), exist_ok=True)
    for file_name, text in texts.items():
        with open(os.path.join(folder, "winget", file_name), "w", encoding="utf-8", newline="\n") as file:
            file.write(text)


def scoop(folder, url, name, number):
    manifest = {"version": number, "description": SUMMARY, "license": "MIT", "homepage": url,
                "architecture": {"64bit": {"url": f"{url}/{name}", "hash": digest(os.path.join(folder, name)),
                                           "extract_dir": f"etwatch-{number}"}},
                "bin": "etwatch.exe"}
    with open(os.path.join(folder, "etwatch.json"), "w", encoding="utf-8", newline="\n") as file:
        json.dump(manifest, file, indent=4)
        file.write("\n")


def release(build, folder, url):
    number = version()
    base, top = f"etwatch-{number}-windows-x86_64", f"etwatch-{number}"
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        files, debug = {}, {}
        for name in ("etwatch.exe", "etwatch.dll"):
            path = os.path.join(build, name)
            if not os.path.exists(path):
                raise SystemExit(f"windows_release: {path} is missing; ./dev windows makes it")
            files[f"{top}/{name}"], debug[f"{top}/{name}.debug"] = split_debug(path, work)
        for name in ("etwatch.dll.a", "etwatch.cdx.json"):
            if os.path.exists(os.path.join(build, name)):
                files[f"{top}/{name}"] = os.path.join(build, name)
        for name in ("LICENSE", "CHANGELOG.md", "docs/windows.md"):
            files[f"{top}/{os.path.basename(name)}"] = os.path.join(ROOT, name)
        for path in glob.glob(os.path.join(ROOT, "include", "etwatch", "*.h")):
            files[f"{top}/include/etwatch/{os.path.basename(path)}"] = path
        write_zip(os.path.join(folder, base + ".zip"), files)
        write_zip(os.path.join(folder, base + "-debug.zip"), debug)
    if url:
        winget(folder, url, base + ".zip", number)
        scoop(folder, url, base + ".zip", number)
    with open(os.path.join(folder, base + ".sha256"), "w", encoding="utf-8", newline="\n") as file:
        for name in (base + ".zip", base + "-debug.zip"):
            file.write(f"{digest(os.path.join(folder, name))}  {name}\n")
    return base + ".zip"


def main():
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__)
    name = release(sys.argv[1], sys.argv[2], sys.argv[3].rstrip("/") if len(sys.argv) == 4 else None)
    print(os.path.join(sys.argv[2], name))


if __name__ == "__main__":
    main()
