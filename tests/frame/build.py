# SPDX-License-Identifier: MIT
"""The build output: an installed library that other programs can use, and nothing more."""
import glob
import os
import re
import shutil
import sys

from lib import BUILD, ETWATCH, ROOT, check, check_eq, check_in, main, run, skip, temp_dir, test

CLIENT = r"""
#include <etwatch/etwatch.h>
#include <stdio.h>
int main(void)
{
    printf("%s %s\n", etwatch_version(), etwatch_strerror(ETWATCH_EPERM));
    return 0;
}
"""


def tool(name):
    path = shutil.which(name)
    return path if path else skip(f"{name} is not installed")


def install(folder):
    done = run(["install", "-C", BUILD, "--no-rebuild", "--quiet"], program=tool("meson"),
               env={**os.environ, "DESTDIR": folder})
    check_eq(done.code, 0, done.out + done.err)
    found = glob.glob(folder + "/**/etwatch.pc", recursive=True)
    check_eq(len(found), 1, "number of pkg-config files")
    return os.path.dirname(os.path.dirname(found[0]))


def pkg_config(folder, lib, *arguments):
    result = run([*arguments, "etwatch"], program=tool("pkg-config"),
                 env={**os.environ, "PKG_CONFIG_PATH": lib + "/pkgconfig",
                      "PKG_CONFIG_SYSROOT_DIR": folder})
    check_eq(result.code, 0, result.err)
    return result.out.split()


def client_output(arguments, library_path):
    with temp_dir() as folder:
        source, program = folder + "/client.c", folder + "/client"
        with open(source, "w", encoding="utf-8") as file:
            file.write(CLIENT)
        done = run(["-Wall", "-Wextra", "-Werror", "-pedantic", source, "-o", program, *arguments],
                   program=tool("cc"))
        check_eq(done.code, 0, done.err)
        return run([], program=program, env={**os.environ, "LD_LIBRARY_PATH": library_path})


@test
def a_program_builds_with_the_installed_shared_library():
    with temp_dir() as folder:
        lib = install(folder)
        result = client_output(pkg_config(folder, lib, "--cflags", "--libs"), lib)
        check_eq((result.code, result.out), (0, "0.1.0 missing rights\n"))


@test
def a_program_builds_with_the_installed_static_library():
    with temp_dir() as folder:
        lib = install(folder)
        os.remove(lib + "/libetwatch.so")
        wanted = pkg_config(folder, lib, "--cflags", "--libs", "--static")
        # The sysroot is also prepended to the folders of the system's own libraries.
        wanted = [w for w in wanted if not w.startswith("-L") or w == "-L" + lib]
        result = client_output(wanted, "")
        check_eq((result.code, result.out), (0, "0.1.0 missing rights\n"))


@test
def the_program_is_installed_and_runs_alone():
    with temp_dir() as folder:
        install(folder)
        found = glob.glob(folder + "/**/bin/etwatch", recursive=True)
        check_eq(len(found), 1, "number of installed programs")
        check_eq(run(["--version"], program=found[0]).code, 0)
    linked = run([ETWATCH], program=tool("ldd"))
    check("libetwatch" not in linked.out, linked.out)


def declared_functions():
    names = set()
    for path in glob.glob(ROOT + "/include/etwatch/*.h"):
        with open(path, encoding="utf-8") as file:
            names |= set(re.findall(r"^ETWATCH_API[^;(]*?\b(etwatch_\w+)\(", file.read(), re.M))
    return names


@test
def the_library_exports_exactly_what_the_headers_declare():
    result = run(["-D", "--defined-only", BUILD + "/libetwatch.so"], program=tool("nm"))
    exported = {line.split()[-1].split("@")[0] for line in result.out.splitlines()
                if line.split()[1] in "TDBRVW"}
    declared = declared_functions()
    check(declared, "the headers declare no function")
    check_eq(sorted(exported - declared), [], "exported but not declared")
    check_eq(sorted(declared - exported), [], "declared but not exported")


@test
def header_and_build_agree_on_the_version():
    with open(ROOT + "/include/etwatch/etwatch.h", encoding="utf-8") as file:
        parts = re.findall(r"#define ETWATCH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read())
    with open(ROOT + "/meson.build", encoding="utf-8") as file:
        check_in(f"version: '{'.'.join(parts)}'", file.read(), "meson.build")


@test
def the_public_headers_compile_alone_in_c_and_cplusplus():
    for path in sorted(glob.glob(ROOT + "/include/etwatch/*.h")):
        for language, standard in (("c", "c11"), ("c++", "c++11")):
            done = run(["-x", language, f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra",
                        "-Werror", "-pedantic", f"-I{ROOT}/include", "-include", path, os.devnull],
                       program=tool("clang"))  # included, as by a program: unused inline functions are fine there
            check_eq(done.code, 0, f"{path} as {standard}: {done.err}")


@test(seconds=600)
def a_build_without_ebpf_works_and_reports_how_to_get_it():
    with temp_dir() as folder:
        done = run(["setup", folder, ROOT, "-Debpf=disabled", "-Dtests=false", "-Dwerror=true", "-Doptimization=0"],
                   program=tool("meson"))
        check_eq(done.code, 0, done.out)
        done = run(["-C", folder, "etwatch"], program=tool("ninja"), timeout=500)
        check_eq(done.code, 0, done.out)
        result = run(["stat", "--source", "ebpf", "-a", "--duration", "0.1"], program=folder + "/etwatch")
        check_eq(result.code, 3, result.err)
        check_in("-Debpf=enabled", result.err)


def fake_path(folder, names):
    """A PATH with only these programs, and an `id` that reports a user other than root."""
    for name in names:
        os.symlink(shutil.which(name), os.path.join(folder, name))
    for name, text in (("id", "echo 1000"), ("apt-get", "exit 9")):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(os.path.join(folder, name), 0o755)
    return {**os.environ, "PATH": folder}


@test
def dev_names_the_packages_when_it_may_not_install_them():
    with temp_dir() as folder:
        result = run(["setup"], program=ROOT + "/dev", env=fake_path(folder, ["dirname", "cat", "cut", "sh"]))
        check_eq(result.code, 1)
        for package in ("gcc", "meson", "ninja-build", "clang", "libbpf-dev"):
            check_in(" " + package, result.err)
        check_in("as root: apt-get install", result.err)


@test
def dev_refuses_an_unknown_command():
    result = run(["tset"], program=ROOT + "/dev")
    check_eq((result.code, result.out), (2, ""))
    check_in("usage: ./dev", result.err)


def embed(folder, data):
    with open(folder + "/in", "wb") as file:
        file.write(data)
    return run([ROOT + "/scripts/embed_bpf.py", "blob", "stddef.h", folder + "/in", folder + "/out.c"],
               program=sys.executable)


@test
def an_embedded_object_keeps_every_byte():
    objects = glob.glob(BUILD + "/**/ebpf_*.o", recursive=True)
    if not objects:
        skip("this build has no eBPF object")
    with temp_dir() as folder, open(objects[0], "rb") as file:
        data = file.read()
        done = embed(folder, data)
        check_eq(done.code, 0, done.err)
        with open(folder + "/out.c", encoding="ascii") as file:
            text = file.read()
        tables = [bytes(int(number, 0) & 255 for number in body.split(",") if number.strip())
                  for body in re.findall(r"\{([\d\s,x]*)\}", text) if len(body) > len(data)]
        check(data in tables, "the object is not among the tables")


@test
def embedding_what_is_no_bpf_object_is_an_error():
    for data in (b"", b"\x7fELF", b"not an object" * 100):
        with temp_dir() as folder:
            done = embed(folder, data)
            check_eq(done.code, 1)
            check_in("/in: ", done.err)
            check(not os.path.exists(folder + "/out.c"), "a broken output stays behind")


main()
