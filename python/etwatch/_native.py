# SPDX-License-Identifier: MIT
"""Finds libetwatch, binds its functions, turns its error codes into exceptions.

Search order: the file named by the environment variable ETWATCH_LIBRARY (for tests of another build),
`etwatch/lib/` of the package (a wheel), and the build folder of the checkout that the package is part of
(`./dev build`). System folders are not searched: a library of another version must not be loaded by accident.
"""
import ctypes
import os
import sys
from typing import Any, List, Optional

from . import _abi
from .errors import from_code

__version__ = _abi.VERSION

_NAMES = ("etwatch.dll", "libetwatch.dll") if sys.platform == "win32" else ("libetwatch.so", "libetwatch.so.0")


def _candidates() -> List[str]:
    named = os.environ.get("ETWATCH_LIBRARY")
    if named:
        return [named]
    package = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(package))
    folders = [os.path.join(package, "lib")]
    if os.path.isfile(os.path.join(root, "include", "etwatch", "etwatch.h")):
        folders.append(os.path.join(root, "build-windows" if sys.platform == "win32" else "build"))
    return [os.path.join(folder, name) for folder in folders for name in _NAMES]


def _load() -> ctypes.CDLL:
    tried = _candidates()
    for path in tried:
        if os.path.exists(path):
            try:
                return ctypes.CDLL(path)
            except OSError as error:
                raise ImportError(f"cannot load {path}: {error}", name="etwatch", path=path) from error
    raise ImportError("libetwatch was not found; in a checkout `./dev build` builds it. Looked for: "
                      + ", ".join(tried), name="etwatch")


def _bind(library: ctypes.CDLL) -> None:
    try:
        library.etwatch_version.restype = ctypes.c_char_p
        version = (library.etwatch_version() or b"").decode()
    except AttributeError as error:
        raise ImportError(f"{library._name} is not libetwatch: {error}", name="etwatch") from error
    if version != __version__:
        raise ImportError(f"libetwatch {version} ({library._name}) does not fit the Python package {__version__}: "
                          "install both from the same release", name="etwatch")
    for name, (result, arguments) in _abi.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise ImportError(f"libetwatch {version} ({library._name}) has no {name}: "
                              f"it was built from other sources than this package", name="etwatch") from error
        function.restype, function.argtypes = result, arguments


lib: Any = _load()
_bind(lib)

LIBRARY_PATH: str = lib._name
SAMPLE_SIZE = ctypes.sizeof(_abi.Sample)


def metric_set(name: str) -> Any:
    """The set of the metric or group with this name."""
    if not isinstance(name, str):
        raise TypeError(f"metrics: names are needed, not {name!r}")
    found = _abi.MetricSet()
    code = lib.etwatch_metrics_named(name.encode(), ctypes.byref(found))
    if code == _abi.ETWATCH_ENOTSUP:
        raise ValueError(f"metrics: no source measures {name!r} yet (see `etwatch metrics`)")
    if code < 0:
        raise ValueError(f"metrics: {name!r} is neither a metric nor a group of them (see `etwatch metrics`)")
    return found


def set_has(metrics: Any, index: int) -> bool:
    """Whether the metric with this index is a member of the set."""
    return bool(metrics.words[index // 64] >> index % 64 & 1)


def set_union(metrics: Any, other: Any) -> None:
    """Adds the members of the other set."""
    for word in range(_abi.ETWATCH_METRIC_SET_WORDS):
        metrics.words[word] |= other.words[word]


def text(raw: Optional[bytes]) -> Optional[str]:
    """A string of the library; bytes that are not UTF-8 are replaced."""
    return None if raw is None else raw.decode("utf-8", "replace")


def new_error() -> Any:
    """An empty error info, to be passed by reference."""
    info = _abi.ErrorInfo()
    info.size = ctypes.sizeof(_abi.ErrorInfo)
    return info


def sized(kind: Any) -> Any:
    """A zeroed struct with its size set."""
    struct = kind()
    struct.size = ctypes.sizeof(kind)
    return struct


def error_of(code: int, info: Any = None, what: str = "") -> Exception:
    """The exception for an error code, with the message of the library."""
    message = (text(info.message) or "") if info is not None else ""
    if not message:
        message = text(lib.etwatch_strerror(code)) or f"error {code}"
    if what:
        message = f"{what}: {message}"
    if info is None:
        return from_code(code, message)
    return from_code(code, message, os_code=info.os_code, fix=text(info.fix) or "", offset=info.offset or None)


def check(code: int, info: Any = None, what: str = "") -> int:
    """Returns the code, or raises its exception if it is an error."""
    if code < 0:
        raise error_of(code, info, what)
    return code
