# SPDX-License-Identifier: MIT
"""The binary interface: the symbols, the layout of every public struct, and programs of other releases."""
import glob
import os
import re
import shutil
import sys

from lib import BUILD, ROOT, UPDATE, cases, check, check_eq, main, run, skip, temp_dir, test

sys.path[:0] = [os.path.join(ROOT, "tests", "abi"), os.path.join(ROOT, "scripts")]
import exports  # noqa: E402
import python_abi  # noqa: E402
import versions  # noqa: E402

ABI = os.path.join(ROOT, "tests", "abi")
DUMP = os.path.join(ABI, "etwatch.abi")
PRIVATE = os.path.join(ABI, "private_types.suppr")
HEADERS = sorted(glob.glob(os.path.join(ROOT, "include", "etwatch", "*.h")))


def tool(name, package):
    path = shutil.which(name)
    return path if path else skip(f"{name} is not installed: apt install {package}")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


# ------------------------------------------------------------------------------ symbols

@test
def the_version_script_lists_every_declared_function_in_order():
    declared = exports.exported(HEADERS)
    rows = "".join(f"        {name};\n" for name in declared)
    check_eq(read(os.path.join(ROOT, "src", "etwatch.map")),
             f"ETWATCH_0.1 {{\n    global:\n{rows}    local:\n        *;\n}};\n", "src/etwatch.map")


# -------------------------------------------------------------------------- the headers

def parsed():
    headers = python_abi.Headers(ROOT)
    parser = python_abi.Parser(headers.text, headers.numbers)
    parser.parse()
    return {name: fields for name, fields in parser.structs.items() if fields and name.startswith("etwatch_")}


@test
def every_public_struct_starts_with_its_size_or_is_fixed():
    fixed = set()
    for path in HEADERS:
        for found in re.finditer(r"/\*((?:(?!\*/).)*)\*/\nstruct (etwatch_\w+) \{", read(path), re.S):
            if re.search(r"\bFIXED\b", found.group(1)):
                fixed.add(found.group(2))
    for name, fields in parsed().items():
        sized = fields[0] == ("size", ("plain", "uint32_t", 0, []))
        check(sized != (name in fixed), f"struct {name} must either start with `uint32_t size` or be marked FIXED")
    pinned = set(re.findall(r"^FIXED\((\w+), \d+\);", read(os.path.join(ROOT, "src", "base", "sized.c")), re.M))
    check_eq({f"etwatch_{name}" for name in pinned}, fixed, "structs with a pinned size in src/base/sized.c")


@test
def no_struct_that_may_grow_is_part_of_another():
    structs = parsed()
    for name, fields in structs.items():
        for field, kind in fields:
            inner = kind[1][len("struct "):] if kind[0] == "plain" and kind[2] == 0 else ""
            if inner in structs:
                check(structs[inner][0][0] != "size", f"{name}.{field}: struct {inner} may grow")


@test
def comments_of_the_headers_name_only_what_exists():
    texts = {path: read(path) for path in HEADERS}
    code = " ".join(re.sub(r"/\*.*?\*/", " ", text, flags=re.S) for text in texts.values())
    known = set(re.findall(r"\w+", code))
    for path, text in texts.items():
        for comment in re.findall(r"/\*.*?\*/", text, re.S):
            plain = re.sub(r'"[^"]*"', "", comment)
            for word in re.findall(r"(?<![\w./-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b(?![*\w./-])", plain):
                check(word in known, f"{os.path.basename(path)}: a comment names {word}, which does not exist: {comment}")


# ---------------------------------------------------------------------------- the layout

@test
def the_layout_is_that_of_the_committed_dump_or_extends_it():
    dump, diff = tool("abidw", "abigail-tools"), tool("abidiff", "abigail-tools")
    with temp_dir() as folder:
        made = os.path.join(folder, "etwatch.abi")
        done = run(["--headers-dir", os.path.join(ROOT, "include", "etwatch"), "--drop-private-types",
                    "--exported-interfaces-only", "--suppressions", PRIVATE, "--no-show-locs", "--no-corpus-path",
                    "--no-comp-dir-path", "--no-elf-needed", "--out-file", made,
                    os.path.realpath(os.path.join(BUILD, "libetwatch.so"))], program=dump)
        check_eq(done.code, 0, done.err)
        if "<class-decl" not in read(made):
            skip("the library was built without debug information")
        if UPDATE:
            shutil.copyfile(made, DUMP)
        done = run(["--suppressions", os.path.join(ABI, "additions.suppr"), "--no-added-syms", "--no-show-locs", DUMP,
                    made], program=diff)
        check_eq(done.code, 0, f"abidiff finds an incompatible change (if it is intended: tests/run --update "
                               f"--only frame/abi writes the dump anew):\n{done.out}{done.err}")


@cases([
    ("a field in the middle", "include/etwatch/etwatch.h", "    double hz_reached;", "    double extra, hz_reached;", False),
    ("a field at the end", "include/etwatch/etwatch.h", "    double self_sensor_percent;", "    double self_sensor_percent, x;", True),
    ("another parameter", "include/etwatch/etwatch.h", "void *ctx);\n\n#ifdef", "void *ctx, int x);\n\n#ifdef", False),
])
def abidiff_sees(path, old, new, compatible):
    """The same check on a small library made of the headers alone, so that it is known to be able to fail."""
    dump, diff = tool("abidw", "abigail-tools"), tool("abidiff", "abigail-tools")
    with temp_dir() as folder:
        for name, change in (("before", lambda text: text), ("after", lambda text: text.replace(old, new))):
            include = os.path.join(folder, name, "etwatch")
            os.makedirs(include)
            for header in HEADERS:
                text = read(header)
                if header.endswith(path):
                    check(name == "before" or old in text, f"{path} has no {old!r}")
                    text = change(text)
                with open(os.path.join(include, os.path.basename(header)), "w", encoding="utf-8") as file:
                    file.write(text)
            source = os.path.join(folder, name + ".c")
            extra = ", int x" if name == "after" and "int x" in new else ""
            with open(source, "w", encoding="utf-8") as file:
                file.write("#include <etwatch/etwatch.h>\n"
                           "int etwatch_monitor_stats(struct etwatch_monitor *m, struct etwatch_stats *s)"
                           "{ return m == 0 || s->size == 0; }\n"
                           "int etwatch_doctor(const char *r, void (*f)(void *, const struct etwatch_check *),"
                           f" void *c{extra}) {{ return r == 0 || f == 0 || c == 0; }}\n")
            library = os.path.join(folder, name + ".so")
            done = run(["-g", "-shared", "-fPIC", f"-I{os.path.join(folder, name)}", source, "-o", library],
                       program=tool("cc", "gcc"))
            check_eq(done.code, 0, done.err)
            done = run(["--headers-dir", include, "--drop-private-types", "--no-corpus-path", "--out-file",
                        os.path.join(folder, name + ".abi"), library], program=dump)
            check_eq(done.code, 0, done.err)
        done = run(["--suppressions", os.path.join(ABI, "additions.suppr"), "--no-added-syms",
                    os.path.join(folder, "before.abi"), os.path.join(folder, "after.abi")], program=diff)
        check_eq(done.code == 0, compatible, f"accepted: {done.out}")


# ----------------------------------------------------- programs of other releases

@cases([("the same release", None, []), ("an older release", versions.older, ["-DOLDER"]),
        ("a newer release", versions.newer, ["-DNEWER"])])
def a_program_works_that_was_built_with_the_headers_of(change, flags):
    with temp_dir() as folder:
        include = os.path.join(ROOT, "include")
        if change is not None:
            include = os.path.join(folder, "include")
            names = versions.write(ROOT, include, change)
            check(len(names) > 30, f"only {len(names)} structs that may grow were found")
        program = os.path.join(folder, "client")
        library = os.path.realpath(os.path.join(BUILD, "libetwatch.so"))
        done = run(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", *flags, "-I", include,
                    os.path.join(ABI, "client.c"), "-o", program, library], program=tool("cc", "gcc"))
        check_eq(done.code, 0, done.err)
        done = run([folder], program=program, env={**os.environ, "LD_LIBRARY_PATH": BUILD})
        check_eq((done.code, done.out), (0, "fine\n"), done.err)


@test
def the_program_uses_every_struct_that_may_grow():
    names = {name for path in HEADERS for name, body in versions.structs(read(path)) if versions.grows(body)}
    used = set(re.findall(r"\b(?:struct |GUARDED\()(etwatch_\w+)", read(os.path.join(ABI, "client.c"))))
    check_eq(names - used, {"etwatch_recorder_stats", "etwatch_session_info"}, "structs of Windows only that client.c does not use")


@cases([("older", versions.older), ("newer", versions.newer)])
def every_struct_that_may_grow_has_another_size_in_the_copy(change):
    with temp_dir() as folder:
        names = versions.write(ROOT, folder, change)
        sizes = []
        for include in (os.path.join(ROOT, "include"), folder):
            source, program = os.path.join(folder, "sizes.c"), os.path.join(folder, "sizes")
            with open(source, "w", encoding="utf-8") as file:
                file.write("#include <stdio.h>\n")
                file.write("".join(f"#include <etwatch/{os.path.basename(path)}>\n" for path in HEADERS))
                file.write("int main(void) {\n")
                file.write("".join(f'printf("{name} %zu\\n", sizeof(struct {name}));\n' for name in sorted(names)))
                file.write("return 0; }\n")
            done = run(["-I", include, source, "-o", program], program=tool("cc", "gcc"))
            check_eq(done.code, 0, done.err)
            sizes.append(dict(line.split() for line in run([], program=program).out.splitlines()))
        kept = set(versions.BATCHES) if change is versions.older else {"etwatch_system", "etwatch_device"}
        for name in sorted(names - kept):
            before, after = int(sizes[0][name]), int(sizes[1][name])
            check(after < before if change is versions.older else after > before, f"{name}: {before}, then {after} bytes")


main()
