# SPDX-License-Identifier: MIT
"""Writes the bill of materials of a build (CycloneDX 1.5, JSON): the product and the libraries it links to or loads.

usage: sbom.py VERSION BUILD OUT

The libraries are those that Meson found, with their versions. Nothing of other projects is in the tree, so there are no
further components. The same build gives the same bytes: there is no time in it, and the serial number is derived from
the content.
"""
import json
import os
import sys
import uuid

# Name of the dependency in meson.build: licence, and what it is.
LIBRARIES = {"libbpf": ("LGPL-2.1-only OR BSD-2-Clause", "loads eBPF programs"),
             "libcurl": ("curl", "serve --otlp: HTTP client; loaded at run time"),
             "libmicrohttpd": ("LGPL-2.1-or-later", "serve: HTTP server; loaded at run time"),
             "sqlite3": ("blessing", "serve --store: history on disk; loaded at run time"),
             "zlib": ("Zlib", "compresses recordings")}


def components(build):
    with open(os.path.join(build, "meson-info", "intro-dependencies.json"), encoding="utf-8") as file:
        found = {entry["name"]: entry.get("version", "unknown") for entry in json.load(file)}
    for name in sorted(set(found) & set(LIBRARIES)):
        licence, what = LIBRARIES[name]
        yield {"type": "library", "bom-ref": name, "name": name, "version": found[name], "description": what,
               "licenses": [{"expression": licence}], "purl": f"pkg:generic/{name}@{found[name]}"}


def bill(version, build):
    parts = list(components(build))
    product = {"type": "application", "bom-ref": "etwatch", "name": "etwatch", "version": version,
               "licenses": [{"license": {"id": "MIT"}}], "purl": f"pkg:generic/etwatch@{version}"}
    made = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": product},
            "components": parts,
            "dependencies": [{"ref": "etwatch", "dependsOn": [part["bom-ref"] for part in parts]}]}
    made["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(made, sort_keys=True))}"
    return made


def main():
    version, build, out = sys.argv[1:]
    with open(out, "w", encoding="utf-8") as file:
        json.dump(bill(version, build), file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    main()
