# SPDX-License-Identifier: MIT
"""A guest: the program, a shell and the libraries they need in an in-memory file system, booted by one kernel under
software emulation, without network and disk."""
import gzip
import os
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def libraries(program):
    """The files that the loader would open for this program, including the program itself."""
    result = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, check=False)
    if "not found" in result.stdout:
        raise SystemExit(f"kernels: {program}: {result.stdout}")
    return re.findall(r"(/\S+\.so\S*)", result.stdout)


def archive_entry(name, mode, data=b"", device=(0, 0)):
    """One entry of a cpio archive in the format that the kernel unpacks ("newc")."""
    name = name.encode() + b"\0"
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, device[0], device[1], len(name), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    pad = lambda part: part + b"\0" * (-len(part) % 4)  # noqa: E731
    return pad(header + name) + pad(data)


def pack(path, files):
    """files: {path in the guest: path here}."""
    folders = {"bin", "dev", "proc", "sys", "tmp"}
    for name in files:
        parts = name.split("/")[:-1]
        folders.update("/".join(parts[:i + 1]) for i in range(len(parts)))
    with gzip.open(path, "wb", compresslevel=1) as archive:
        for folder in sorted(folders):
            archive.write(archive_entry(folder, 0o040755))
        archive.write(archive_entry("dev/console", 0o020600, device=(5, 1)))
        for name, source in sorted(files.items()):
            with open(source, "rb") as file:
                archive.write(archive_entry(name, 0o100755, file.read()))
        archive.write(archive_entry("TRAILER!!!", 0))


def make_image(build, cache):
    """The guest's file system, with the program of this build."""
    load = os.path.join(cache, "load")
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-pthread", "-o", load,
                    os.path.join(HERE, "load.c")], check=True)
    files = {"init": os.path.join(HERE, "init"), "bin/busybox": shutil.which("busybox"),
             "bin/etwatch": os.path.join(build, "etwatch"), "bin/load": load}
    for program in list(files.values())[1:]:
        for library in libraries(program):
            files[library.lstrip("/")] = os.path.realpath(library)
    image = os.path.join(cache, "image.gz")
    pack(image, files)
    return image


def boot(kernel, image, folder, seconds):
    """Boots and waits until the guest has powered off; returns its output and None, or what went wrong."""
    os.makedirs(folder, exist_ok=True)
    results, console = os.path.join(folder, "results"), os.path.join(folder, "console")
    for path in (results, console):
        if os.path.exists(path):
            os.unlink(path)
    # Two bugs of QEMU 7.2. It corrupts the flags of an emulated cmpxchg16b, which the allocator of newer kernels
    # uses: hence no cx16. And with a thread per CPU, one may keep running the old translation of an instruction that
    # the kernel has just patched (which is how tracepoints are enabled), forever: hence one thread for both.
    # tsc=reliable: otherwise the scheduler's clock and the system's clock differ by percents.
    command = ["nice", "-n", "19", "qemu-system-x86_64", "-accel", "tcg,thread=single", "-machine", "q35",
               "-cpu", "max,-cx16", "-smp", "2", "-m", "768", "-nodefaults", "-display", "none",
               "-no-reboot", "-serial", f"file:{console}", "-debugcon", f"file:{results}", "-kernel", kernel,
               "-initrd", image, "-append",
               "console=ttyS0 loglevel=6 panic=-1 softlockup_panic=1 mitigations=off tsc=reliable"]
    trouble = None
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=seconds, check=False)
        if done.returncode != 0:
            trouble = f"qemu: exit status {done.returncode}: {done.stdout.strip()}"
    except subprocess.TimeoutExpired:
        trouble = f"no end after {seconds} s"
    said = read(results)
    for pattern in (r"Kernel panic[^\r\n]*", r"soft lockup[^\r\n]*", r"BUG: [^\r\n]*", r"WARNING: [^\r\n]*"):
        found = re.search(pattern, read(console))
        if found and trouble is None:
            trouble = found.group(0)
    return said, trouble


def read(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        return file.read().replace("\r", "")
