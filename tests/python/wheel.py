# SPDX-License-Identifier: MIT
"""The wheels that ./dev wheel makes: their content, and that they work without anything else installed."""
import base64
import glob
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import zipfile

from lib import ROOT, cases, check, check_eq, check_in, main, run, skip, temp_dir, test

BACKEND = os.path.join(ROOT, "packaging", "etwatch_build.py")
sys.path.insert(0, os.path.dirname(BACKEND))
import elf  # noqa: E402
import etwatch_build  # noqa: E402


def wheel(platform):
    found = sorted(glob.glob(os.path.join(ROOT, "dist", f"etwatch-{etwatch_build.version()}-py3-none-{platform}*.whl")),
                   key=os.path.getmtime)
    if not found:
        skip(f"no wheel for {platform} in dist/: ./dev wheel makes it")
    return found[-1]


def bare_environment(folder):
    """A PATH without build tools: no compiler, no Meson."""
    return {"PATH": folder, "HOME": folder, "LANG": "C.UTF-8", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INDEX": "1"}


def new_venv(folder):
    """The interpreter of an empty virtual environment."""
    path = os.path.join(folder, "venv")
    made = subprocess.run([sys.executable, "-m", "venv", path], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if made.returncode != 0:
        skip("no virtual environments here: " + made.stdout.strip().splitlines()[-1])
    return os.path.join(path, "bin", "python3")


@cases([
    ("Linux", "manylinux", ["libetwatch.so", "etwatch", "libetwatch-cuda.so"]),
    ("Windows", "win_amd64", ["etwatch.dll", "etwatch.exe"]),
])
def a_wheel_matches_its_record(platform, files):
    with zipfile.ZipFile(wheel(platform)) as archive:
        names = archive.namelist()
        record = next(name for name in names if name.endswith("/RECORD"))
        rows = [line.split(",") for line in archive.read(record).decode().splitlines()]
        check_eq(sorted(row[0] for row in rows), sorted(names), "names in RECORD")
        for name, digest, size in rows:
            if name != record:
                data = archive.read(name)
                want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                check_eq((digest, int(size)), ("sha256=" + want, len(data)), name)
        for file in files:
            check_in("etwatch/lib/" + file, names)
        check_in("etwatch/py.typed", names)
        tags = [line for line in archive.read(record.replace("RECORD", "WHEEL")).decode().splitlines()
                if line.startswith("Tag: ")]
        check(len(tags) == 1 and tags[0].startswith(f"Tag: py3-none-{platform}"), tags)


@test
def the_linux_wheel_needs_only_its_own_and_standard_libraries():
    path = wheel("manylinux")
    tagged = tuple(int(part) for part in re.search(r"manylinux_(\d+)_(\d+)_", path).groups())
    with temp_dir() as folder, zipfile.ZipFile(path) as archive:
        inside = [name for name in archive.namelist() if name.startswith("etwatch/lib/")]
        for name in inside:
            facts = elf.read(archive.extract(name, folder))
            check(facts.glibc <= tagged, f"{name} needs glibc {facts.glibc}, the tag has {tagged}")
            for soname in facts.needed:
                check(etwatch_build.SYSTEM.fullmatch(soname) or f"etwatch/lib/{soname}" in inside,
                      f"{name} needs {soname}")


@test
def no_wheel_contains_its_build_path():
    for platform in ("manylinux", "win_amd64"):
        with zipfile.ZipFile(wheel(platform)) as archive:
            for name in archive.namelist():
                check(ROOT.encode() not in archive.read(name), f"{name} has {ROOT} in it")


@test(seconds=300)
def the_wheel_works_in_an_empty_environment_without_a_compiler():
    path = wheel("manylinux")
    with temp_dir() as folder:
        python = new_venv(folder)
        environment = bare_environment(os.path.dirname(python))
        result = run(["-m", "pip", "install", path], program=python, env=environment, timeout=200, cwd=folder)
        check_eq(result.code, 0, result.out + result.err)
        result = run(["-m", "etwatch", "doctor"], program=python, env=environment, cwd=folder)
        check(result.code in (0, 1), result.err)
        check_in("source", result.out.lower())
        result = run(["--version"], program=os.path.join(folder, "venv", "bin", "etwatch"), env=environment,
                     cwd=folder)
        check_eq(result.out.strip().split()[:2], ["etwatch", etwatch_build.version()], result.err)
        code = ("import etwatch, os; from etwatch import _native; print(etwatch.__version__); "
                "assert os.path.dirname(_native.LIBRARY_PATH).startswith(os.path.dirname(etwatch.__file__))")
        result = run(["-X", "dev", "-c", code], program=python, env=environment, cwd=folder)
        check_eq((result.code, result.out.strip()), (0, etwatch_build.version()), result.err)


@test
def the_exit_status_of_the_program_is_that_of_the_module():
    with temp_dir() as folder, zipfile.ZipFile(wheel("manylinux")) as archive:
        archive.extractall(folder)
        os.chmod(os.path.join(folder, "etwatch", "lib", "etwatch"), 0o755)
        for arguments, code in (["--version"], 0), (["no-such-command"], 2), (["report", folder + "/none.etl"], 1):
            result = run(["-m", "etwatch", *arguments], program=sys.executable, cwd=folder,
                         env={**os.environ, "PYTHONPATH": folder})
            check_eq(result.code, code, f"exit code of {arguments} ({result.err})")


@test(seconds=300)
def pip_builds_the_package_from_the_checkout():
    wheel("manylinux")  # its build folder is reused
    if run(["-m", "pip", "--version"], program=sys.executable).code != 0:
        skip("this Python has no pip")
    with temp_dir() as folder:
        result = run(["-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation", "--no-index", "-w", folder,
                      "--config-settings", f"build={os.path.join(ROOT, 'build-wheel')}"],
                     program=sys.executable, timeout=250, cwd=folder)
        check_eq(result.code, 0, result.out + result.err)
        check_eq(len(glob.glob(os.path.join(folder, "*.whl"))), 1)


@test
def an_sdist_has_what_a_build_needs():
    with temp_dir() as folder:
        name = etwatch_build.build_sdist(folder)
        with tarfile.open(os.path.join(folder, name)) as archive:
            names = archive.getnames()
        base = name[:-len(".tar.gz")]
        for path in ("PKG-INFO", "pyproject.toml", "meson.build", "packaging/etwatch_build.py", "packaging/elf.py",
                     "python/etwatch/__init__.py", "include/etwatch/etwatch.h", "src/meson.build"):
            check_in(f"{base}/{path}", names)
        check(not [n for n in names if n.startswith((f"{base}/build", f"{base}/dist/"))], "build folders in it")


@cases([
    ("nothing", b""),
    ("text", b"#!/bin/sh\n"),
    ("only a header", b"\x7fELF\x02\x01" + bytes(40)),
    ("a segment table past the end", b"\x7fELF\x02\x01" + bytes(26) + b"\xff" * 32),
])
def a_damaged_library_is_an_error_and_gives_no_wheel(data):
    with temp_dir() as folder:
        path = os.path.join(folder, "lib.so")
        with open(path, "wb") as file:
            file.write(data)
        try:
            elf.read(path)
        except ValueError as error:
            check_in(path, str(error))
            return
        check(False, "it was read")


main()
