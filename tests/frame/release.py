# SPDX-License-Identifier: MIT
"""What is released can be checked: the same source gives the same bytes, and a bill of materials comes with it."""
import hashlib
import json
import os

from lib import BUILD, ROOT, check, check_eq, main, run, temp_dir, test

PRODUCTS = ("etwatch", "libetwatch.a", "etwatch.cdx.json")


def hashes(folder):
    done = run(["setup", folder, ROOT, "-Debpf=auto", "-Dtests=false", "-Db_ndebug=true", "-Ddebug=false",
                "-Doptimization=1"], program="meson", timeout=300)
    check_eq(done.code, 0, f"exit code of meson ({done.out[-400:]})")
    done = run(["-C", folder, *PRODUCTS], program="ninja", timeout=600)
    check_eq(done.code, 0, f"exit code of ninja ({done.out[-400:]})")
    found = {}
    for name in PRODUCTS:
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = hashlib.sha256(file.read()).hexdigest()
    return found


@test(seconds=900)
def two_builds_in_different_folders_are_the_same_bytes():
    with temp_dir() as folder:
        first = hashes(os.path.join(folder, "one"))
        second = hashes(os.path.join(folder, "another", "with-a-longer-name"))
    check_eq([name for name in PRODUCTS if first[name] != second[name]], [], "products that differ")


@test
def the_build_makes_a_bill_of_materials():
    with open(os.path.join(BUILD, "etwatch.cdx.json"), encoding="utf-8") as file:
        bill = json.load(file)
    check_eq((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.5"), "format")
    product = bill["metadata"]["component"]
    version = run(["--version"]).out.split()[1]
    check_eq((product["name"], product["version"]), ("etwatch", version), "product")
    listed = {part["name"]: part["version"] for part in bill["components"]}
    linked = run([os.path.join(BUILD, "etwatch")], program="ldd").out
    for library, name in (("libbpf.so", "libbpf"), ("libz.so", "zlib")):
        check_eq(name in listed, library in linked, f"{name} is listed, as it is linked")
    check(all(listed.values()), f"versions: {listed}")


main()
