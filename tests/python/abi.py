# SPDX-License-Identifier: MIT
"""The ctypes declarations match the C headers field by field, and fit the library."""
import ctypes
import glob
import os
import re
import shutil
import subprocess
import sys

from etwatch import _abi, _batch, _native
from lib import ROOT, check, check_eq, check_in, main, run, skip, temp_dir, test

sys.path.insert(0, os.path.join(ROOT, "scripts"))

CODE = "import etwatch; print(etwatch.__version__)"


def layout():
    """One C assertion for every struct, every field and every number."""
    yield "#include <stddef.h>"
    for name in sorted(os.listdir(os.path.join(ROOT, "include", "etwatch"))):
        if name.endswith(".h"):
            yield f"#include <etwatch/{name}>"
    for name, kind in _abi.STRUCTS.items():
        size = ctypes.sizeof(kind)
        yield f'_Static_assert(sizeof(struct {name}) == {size}, "{name}: {size} bytes in Python");'
        for field, *_ in kind._fields_:
            at = getattr(kind, field)
            what = f"{name}.{field}: {at.size} bytes at {at.offset} in Python"
            yield f'_Static_assert(offsetof(struct {name}, {field}) == {at.offset}, "{what}");'
            yield f'_Static_assert(sizeof ((struct {name} *)0)->{field} == {at.size}, "{what}");'
    for name, value in vars(_abi).items():
        if name.startswith("ETWATCH_") and isinstance(value, int):
            yield f'_Static_assert((long long){name} == {value}, "{name}: {value} in Python");'
    for index, (name, kind, _) in enumerate(_abi.METRICS):
        yield f'_Static_assert(ETWATCH_M_{name} == {index}, "{name}: place {index} in Python");'
        yield f"static {kind} *address_of_{name}(struct etwatch_sample *s) {{ return &s->{name}; }}"
    yield f"_Static_assert(ETWATCH_METRIC_COUNT == {len(_abi.METRICS)}, \"metrics\");"


def compile_layout(compiler, extra=""):
    if not shutil.which(compiler):
        skip(f"{compiler} is not installed")
    with temp_dir() as folder:
        path = os.path.join(folder, "layout.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([*layout(), extra]) + "\n")
        return subprocess.run([compiler, "-std=c11", "-fsyntax-only", "-Wall", "-Wno-unused-function", "-Werror",
                               "-I", os.path.join(ROOT, "include"), path],
                              check=False, capture_output=True, text=True)


@test
def the_declarations_match_the_headers():
    result = run([os.path.join(ROOT, "scripts", "python_abi.py"), "--check"], program=sys.executable)
    check_eq(result.code, 0, result.out + result.err)


@test
def every_struct_has_the_layout_that_the_compiler_gives_it():
    result = compile_layout("cc")
    check_eq(result.returncode, 0, result.stderr)


@test
def every_struct_has_the_same_layout_on_windows():
    result = compile_layout("x86_64-w64-mingw32-gcc-win32")
    check_eq(result.returncode, 0, result.stderr)


@test
def a_wrong_offset_is_detected():
    result = compile_layout("cc", '_Static_assert(offsetof(struct etwatch_sample, has) == 1, "seen");')
    check(result.returncode != 0 and "seen" in result.stderr, result.stderr)


@test
def every_function_of_the_headers_is_bound():
    declared = set()
    for name in glob.glob(os.path.join(ROOT, "include", "etwatch", "*.h")):
        with open(name, encoding="utf-8") as file:
            declared.update(re.findall(r"ETWATCH_API\s[^;]*?(etwatch_\w+)\(", file.read()))
    check_eq(set(_abi.FUNCTIONS), declared, "the functions")
    for name in declared:
        check(getattr(_native.lib, name).argtypes is not None, f"{name} is not bound")


@test
def rows_are_taken_by_the_stride_of_the_batch():
    from etwatch._batch import Batch, rows_at
    size, last = _native.SAMPLE_SIZE, _abi.METRICS[-1][0]
    for stride in (size, size + 24, size - 16):
        rows = bytearray(3 * stride)
        for row in range(3):
            sample = _native.sized(_abi.Sample)
            sample.pid, sample.t_ns = 10 + row, 100 + row
            setattr(sample, last, 7)
            sample.has.words[(len(_abi.METRICS) - 1) // 64] = 1 << ((len(_abi.METRICS) - 1) % 64)
            known = min(size, stride)
            rows[row * stride:row * stride + known] = bytes(sample)[:known]
            rows[row * stride + known:(row + 1) * stride] = b"\xff" * (stride - known)  # of a newer library
        memory = (ctypes.c_char * len(rows)).from_buffer(rows)
        batch = Batch(rows_at(ctypes.addressof(memory), 3, stride), {0: None})
        check_eq(batch.column("pid"), [10, 11, 12])
        check_eq(batch.column("t_ns"), [100, 101, 102])
        check_eq(batch.column(last), [7 if stride >= size else 0] * 3)


@test
def unknown_declarations_are_an_error_of_the_generator():
    import python_abi
    for text in ("struct a { long double x; };", "ETWATCH_API int f(int a[3]);", "union u { int a; };"):
        parser = python_abi.Parser(text)
        try:
            parser.parse()
            python_abi.Writer(parser).fill("a", parser.structs.get("a") or [])
        except python_abi.Unknown:
            continue
        check(False, f"no error for {text!r}")


@test
def inline_functions_are_skipped_and_defined_numbers_are_constants():
    import python_abi
    text = """static inline int has(int a) { if (a > 1 && ~a) { return a % 2; } return 0; }
        struct a { int words[N]; };
        static inline void other(void) { }
        ETWATCH_API int f(struct a *x);"""
    parser = python_abi.Parser(text, {"N": 4})
    parser.parse()
    check_eq((list(parser.functions), parser.structs), (["f"], {"a": [("words", ("plain", "int", 0, [4]))]}))
    check_eq(ctypes.sizeof(_abi.MetricSet), 8 * _abi.ETWATCH_METRIC_SET_WORDS)
    check(not any(name.startswith("etwatch_metric_set_") for name in _abi.FUNCTIONS), "an inline function is bound")


@test
def members_of_every_word_of_a_set_are_seen():
    row = _native.sized(_abi.Sample)
    row.cpu_ns = 7
    row.has.words[0] = 1 << _batch.METRIC_NAMES.index("cpu_ns")
    row.has.words[3] = 1 << 63
    sample = _batch.Batch.take(ctypes.addressof(row), 1, row.size)[0]
    check_eq((sample.cpu_ns, sample.cpu_user_ns, sample.gpu_ns), (7, None, None))
    check(_native.set_has(row.has, 255) and not _native.set_has(row.has, 254), "the last word")
    before, _batch._HAS_WORDS = _batch._HAS_WORDS, 4  # as with more than 192 metrics
    try:
        batch = _batch.Batch.take(ctypes.addressof(row), 1, row.size)
        check_eq(batch.masks(), [row.has.words[0] | 1 << 255])
        check_eq(batch[0].has, batch.masks()[0])
    finally:
        _batch._HAS_WORDS = before


@test
def metrics_of_devices_are_columns():
    for name in ("gpu_percent", "energy_uj"):
        check(name in _batch.METRIC_NAMES and name in _batch.COLUMNS, f"{name} is no column")
    check(_native.set_has(_native.metric_set("devices"), _batch.METRIC_NAMES.index("gpu_ns")), "no group")


def fake_library(folder, version):
    """A library that only has a version."""
    if not shutil.which("cc"):
        skip("no C compiler")
    source, path = os.path.join(folder, "fake.c"), os.path.join(folder, "libfake.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(f'const char *etwatch_version(void) {{ return "{version}"; }}\n' if version else "int nothing;\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, source], check=True)
    return path


def import_with(library):
    return run(["-c", CODE], program=sys.executable, env={**os.environ, "ETWATCH_LIBRARY": library})


@test
def a_library_of_another_version_is_refused_with_both_versions():
    with temp_dir() as folder:
        result = import_with(fake_library(folder, "9.8.7"))
    check_eq(result.code, 1, result.out)
    check_in("ImportError", result.err)
    check_in("9.8.7", result.err)
    check_in(_native.__version__, result.err)


@test
def a_library_of_the_same_version_that_lacks_a_function_is_refused():
    with temp_dir() as folder:
        result = import_with(fake_library(folder, _native.__version__))
    check_in("ImportError", result.err)
    check_in("has no etwatch_strerror", result.err)


@test
def an_invalid_or_missing_library_is_an_import_error():
    with temp_dir() as folder:
        result = import_with(fake_library(folder, None))
        check_in("is not libetwatch", result.err)
        text = os.path.join(folder, "text.so")
        with open(text, "w", encoding="utf-8") as file:
            file.write("no library")
        check_in("ImportError: cannot load", import_with(text).err)
        check_in("was not found", import_with(os.path.join(folder, "none.so")).err)


@test
def each_code_becomes_the_matching_exception():
    for code, kind in ((_abi.ETWATCH_EINVAL, ValueError), (_abi.ETWATCH_ENOMEM, MemoryError),
                       (_abi.ETWATCH_ENOENT, ProcessLookupError), (_abi.ETWATCH_EPERM, PermissionError)):
        error = _native.error_of(code)
        if code == _abi.ETWATCH_EPERM:
            check_eq(type(error).__name__, "ETWAccessDeniedError")
            continue
        check_eq(type(error), kind)
        check(str(error), "an empty message")
    info = _native.new_error()
    info.message, info.fix, info.os_code = b"no", b"do this", 13
    error = _native.error_of(_abi.ETWATCH_EPERM, info)
    check_eq((str(error), error.os_code, error.fix, error.code), ("no (do this)", 13, "do this", -3))


main()
