#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the Python package: the build backend of pyproject.toml, and `./dev wheel`.

A wheel is the folder python/etwatch with the library and the program in etwatch/lib/. It contains no code for a specific
Python version (ctypes), so one wheel serves all: py3-none-PLATFORM. For Linux the libraries that not every system has
(libbpf, libelf) are included as separate files with their licences, and the platform tag is the oldest glibc that all of
it runs with, read from the files.

By hand: packaging/etwatch_build.py linux|windows OUTPUT-FOLDER [BUILD-FOLDER]
"""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import elf  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Libraries that every manylinux system has; others are included in the wheel.
SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libz)\.so\.\d+|ld-linux.*")
TOOLS = {"meson": "meson>=0.61", "ninja": "ninja"}
# Older versions of pip do not know newer tags; systems with an older glibc do not have the required kernel.
OLDEST_GLIBC = (2, 17)


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def version():
    return re.search(r"version: '([^']+)'", read("meson.build")).group(1)


def metadata():
    head = f"""Metadata-Version: 2.1
Name: etwatch
Version: {version()}
Summary: What every process really did: exact CPU, memory, I/O and threads from kernel events
License: MIT
Requires-Python: >=3.9
Description-Content-Type: text/markdown
Classifier: Development Status :: 4 - Beta
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: Microsoft :: Windows
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: System :: Monitoring
Classifier: Typing :: Typed
Provides-Extra: pandas
Requires-Dist: pandas; extra == 'pandas'
Provides-Extra: polars
Requires-Dist: polars>=1.3; extra == 'polars'
Provides-Extra: plot
Requires-Dist: matplotlib; extra == 'plot'

"""
    return (head + read("README.md")).encode()


ENTRY_POINTS = b"[console_scripts]\netwatch = etwatch.__main__:main\n"


def wheel_file(tags):
    lines = [f"Tag: {tag}\n" for tag in tags]
    return f"Wheel-Version: 1.0\nGenerator: etwatch_build\nRoot-Is-Purelib: false\n{''.join(lines)}".encode()


# ------------------------------------------------------------------------------- the build

def run(command, **options):
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise SystemExit(f"etwatch_build: '{' '.join(command)}' failed with {done.returncode}")
    return done.stdout


def build_linux(folder, ebpf="auto"):
    """Builds library and program; they can be moved anywhere together with the libraries that they need."""
    # DT_RPATH, not DT_RUNPATH: it also applies to the dependencies of the loaded libraries.
    link = "['-Wl,-rpath,$ORIGIN', '-Wl,--disable-new-dtags', '-Wl,-s']"
    options = [f"-Debpf={ebpf}", "-Dtests=false", "-Db_ndebug=true", "-Doptimization=3", "-Db_lto=true",
               f"-Dc_link_args={link}"]
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        run(["meson", "setup", folder, *options], cwd=ROOT)
    library = f"libetwatch.so.{version()}"
    run(["ninja", "-C", folder, library, "etwatch", "libetwatch-cuda.so"])
    if ebpf == "auto" and "no_ebpf.c" in read_build(folder):
        sys.stderr.write("etwatch_build: clang or libbpf is missing, so this wheel only polls\n")
    return [(os.path.join(folder, library), "libetwatch.so"), (os.path.join(folder, "etwatch"), "etwatch"),
            (os.path.join(folder, "libetwatch-cuda.so"), "libetwatch-cuda.so")]


def read_build(folder):
    with open(os.path.join(folder, "build.ninja"), encoding="utf-8") as file:
        return file.read()


def linux_platform(files):
    """(platform tag, the files and the libraries that they need as [(path, name in etwatch/lib)])."""
    found = {name: path for path, name in files}
    queue, newest, machine = list(found.values()), OLDEST_GLIBC, ""
    while queue:
        facts = elf.read(queue.pop())
        machine = machine or facts.machine
        newest = max(newest, facts.glibc)
        for soname in facts.needed:
            if not SYSTEM.fullmatch(soname) and soname not in found:
                found[soname] = elf.find_library(soname, machine)
                queue.append(found[soname])
    return f"manylinux_{newest[0]}_{newest[1]}_{machine}", [(path, name) for name, path in found.items()]


def build_windows(folder):
    files = [(os.path.join(folder, name), name) for name in ("etwatch.dll", "etwatch.exe")]
    for path, _name in files:
        if not os.path.exists(path):
            raise SystemExit(f"etwatch_build: {path} is missing; ./dev windows makes it")
    return files


# ------------------------------------------------------------------------------- the files

def package_files():
    """(path, name in the wheel) of everything below python/etwatch."""
    base = os.path.join(ROOT, "python")
    for folder, folders, names in os.walk(os.path.join(base, "etwatch")):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", "lib"))
        for name in sorted(names):
            if name.endswith((".py", ".pyi", ".typed")):
                path = os.path.join(folder, name)
                yield path, os.path.relpath(path, base).replace(os.sep, "/")


class Wheel:
    """A zip with its RECORD; the same input gives the same bytes."""

    def __init__(self, folder, platform, purelib_tags=None):
        self.tags = purelib_tags or [f"py3-none-{platform}"]
        self.name = f"etwatch-{version()}-{self.tags[0]}.whl"
        self.info = f"etwatch-{version()}.dist-info"
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, self.name)
        self.zip = zipfile.ZipFile(self.path + ".part", "w", zipfile.ZIP_DEFLATED)
        self.record = []
        self.time = time.gmtime(max(315532800, int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))))[:6]

    def add(self, name, data, executable=False):
        entry = zipfile.ZipInfo(name, self.time)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if executable else 0o100644) << 16
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def add_file(self, path, name):
        with open(path, "rb") as file:
            self.add(name, file.read(), executable=name.startswith("etwatch/lib/etwatch"))

    def close(self):
        self.add(f"{self.info}/METADATA", metadata())
        self.add(f"{self.info}/WHEEL", wheel_file(self.tags))
        self.add(f"{self.info}/entry_points.txt", ENTRY_POINTS)
        self.add(f"{self.info}/licenses/LICENSE", read("LICENSE").encode())
        self.record.append(f"{self.info}/RECORD,,")
        self.add(f"{self.info}/RECORD", ("\n".join(self.record) + "\n").encode())
        self.zip.close()
        os.replace(self.path + ".part", self.path)
        return self.name


def license_of(soname):
    """(name, text) of the distribution's licence file for a library; None if there is none."""
    base = re.sub(r"\.so\.(\d+)$", r"\1", soname)
    for package in (base, base + "t64"):
        path = f"/usr/share/doc/{package}/copyright"
        if os.path.exists(path):
            with open(path, "rb") as file:
                return f"{package}-copyright", file.read()
    return None


def without_debug(path):
    """The bytes of a file for Windows, without debug information."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        strip = shutil.which("x86_64-w64-mingw32-strip")
        if strip:
            run([strip, "-o", out, path])
        with open(out if strip else path, "rb") as file:
            return file.read()


def make(folder, platform, files):
    wheel = Wheel(folder, platform)
    for path, name in package_files():
        wheel.add_file(path, name)
    for path, name in sorted(files, key=lambda pair: pair[1]):
        if platform.startswith("win"):
            wheel.add(f"etwatch/lib/{name}", without_debug(path), executable=True)
        else:
            wheel.add_file(path, f"etwatch/lib/{name}")
        terms = license_of(name)
        if terms:
            wheel.add(f"{wheel.info}/licenses/{terms[0]}", terms[1])
    return wheel.close()


def make_linux(folder, build=None, ebpf="auto"):
    temporary = None if build else tempfile.mkdtemp(prefix="etwatch-wheel-")
    try:
        platform, files = linux_platform(build_linux(build or temporary, ebpf))
        return make(folder, platform, files)
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)


# ------------------------------------------------------------------------ called by pip

def get_requires_for_build_wheel(config_settings=None):
    return [package for tool, package in TOOLS.items() if shutil.which(tool) is None]


get_requires_for_build_editable = get_requires_for_build_wheel


def get_requires_for_build_sdist(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    name = f"etwatch-{version()}.dist-info"
    os.makedirs(os.path.join(metadata_directory, name), exist_ok=True)
    for file, data in (("METADATA", metadata()), ("entry_points.txt", ENTRY_POINTS),
                       ("WHEEL", wheel_file(["py3-none-any"]))):
        with open(os.path.join(metadata_directory, name, file), "wb") as out:
            out.write(data)
    return name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = config_settings or {}
    if sys.platform == "win32":
        build = settings.get("build", os.path.join(ROOT, "build-windows"))
        return make(wheel_directory, "win_amd64", build_windows(build))
    if not sys.platform.startswith("linux"):
        raise SystemExit("etwatch_build: etwatch is for Linux and Windows")
    return make_linux(wheel_directory, settings.get("build"), settings.get("ebpf", "auto"))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The checkout itself is imported; `./dev build` makes its library."""
    wheel = Wheel(wheel_directory, sysconfig.get_platform().replace("-", "_").replace(".", "_"))
    wheel.add("etwatch.pth", (os.path.join(ROOT, "python") + "\n").encode())
    return wheel.close()


def build_sdist(sdist_directory, config_settings=None):
    name = f"etwatch-{version()}"
    paths = tracked_sources() or walk_sources()
    path = os.path.join(sdist_directory, name + ".tar.gz")
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for source in sorted(paths):
            if os.path.isfile(os.path.join(ROOT, source)):
                archive.add(os.path.join(ROOT, source), f"{name}/{source}", recursive=False)
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "PKG-INFO"), "wb") as file:
                file.write(metadata())
            archive.add(os.path.join(folder, "PKG-INFO"), f"{name}/PKG-INFO")
    return name + ".tar.gz"


def tracked_sources():
    """The files tracked by git; empty without git or outside of a checkout."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return []
    return [path for path in listed.stdout.decode().split("\0") if path]


def walk_sources():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if not f.startswith("build") and f not in (".git", "__pycache__", "dist")]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), ROOT)


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("linux", "windows"):
        raise SystemExit(__doc__)
    build = sys.argv[3] if len(sys.argv) > 3 else None
    if sys.argv[1] == "windows":
        name = make(sys.argv[2], "win_amd64", build_windows(build or os.path.join(ROOT, "build-windows")))
    else:
        name = make_linux(sys.argv[2], build, "enabled")
    print(os.path.join(sys.argv[2], name))


if __name__ == "__main__":
    main()
