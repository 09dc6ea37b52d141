# SPDX-License-Identifier: MIT
"""Objects of the library that a monitor writes to.

Python finalizes objects in no defined order, both in a garbage cycle and at exit. So such an object is freed when
it is no longer referenced from Python and no longer used by the library, whichever comes last.
"""
import ctypes
import os
import threading


class Owned:
    def __init__(self) -> None:
        self.pointer = ctypes.c_void_p()
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._users = 0
        self._unheld = False

    def free(self, pointer: ctypes.c_void_p) -> None:
        raise NotImplementedError

    def retain(self) -> None:
        with self._lock:
            self._users += 1

    def release(self) -> None:
        with self._lock:
            self._users -= 1
        self._free_if_unused()

    @property
    def is_ours(self) -> bool:
        """False in a forked child: threads that do not exist there may hold the object's locks."""
        return self._pid == os.getpid()

    def _free_if_unused(self) -> None:
        if not self._unheld or self._users > 0:
            return
        pointer, self.pointer = self.pointer, ctypes.c_void_p()
        if pointer and self.is_ours:
            self.free(pointer)

    def __del__(self) -> None:
        self._unheld = True
        self._free_if_unused()
