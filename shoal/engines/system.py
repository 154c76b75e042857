"""What Linux, macOS and Windows do differently with files, owners, processes and signals: asked here and nowhere else.

Windows has no owners by number, cannot open a folder, takes signal 0 for Ctrl-C, and renames no file over one that is
open elsewhere or is read-only.  Linux alone exchanges two names in one step.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WAITS = (0.05, 0.1, 0.2, 0.4)  # seconds between tries to rename on Windows, where scanners hold new files for a moment
_EXCHANGE, _HERE = 2, -100  # RENAME_EXCHANGE and AT_FDCWD of Linux


def on_windows() -> bool:
    """Whether this process runs on Windows."""
    return os.name == "nt"


def owned(facts: os.stat_result) -> bool:
    """Whether a file is this user's; True where files have no owner's number, and the folder decides who may write."""
    return not hasattr(os, "getuid") or facts.st_uid == os.getuid()


def give_owner(path: Path, facts: os.stat_result) -> None:
    """Give a file the owner and the group of another, where the system has them and lets this user do it."""
    if not hasattr(os, "chown") or not hasattr(os, "getuid"):
        return
    if (facts.st_uid, facts.st_gid) != (os.getuid(), os.getgid()):
        with contextlib.suppress(OSError):
            os.chown(path, facts.st_uid, facts.st_gid)


def sync_folder(folder: Path) -> None:
    """Put the renames in a folder on disk; nothing where folders cannot be opened or their file system cannot do it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(handle)


def alive(process: int) -> bool | None:
    """Whether a process of this machine runs; None where asking would end it."""
    if on_windows():
        return None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def refuse_read_only(target: Path) -> None:
    """PermissionError for a read-only file, which Windows replaces with nothing; ask before its mode is copied."""
    if on_windows() and target.is_file() and not target.stat().st_mode & stat.S_IWRITE:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))


def replace(temporary: Path, target: Path) -> None:
    """``os.replace``; on Windows a file that another program holds is tried for three quarters of a second."""
    for wait in WAITS if on_windows() else ():
        with contextlib.suppress(PermissionError):
            os.replace(temporary, target)
            return
        time.sleep(wait)
    os.replace(temporary, target)


def exchange(one: Path, other: Path, aside: Callable[[], Path]) -> None:
    """Give two folders each other's names: in one step on Linux, elsewhere in three that are undone if one fails.

    aside  makes the name of a third folder, which is empty
    """
    if _exchanged(one, other):
        return
    third = aside()
    os.rmdir(third)
    os.rename(other, third)
    try:
        os.rename(one, other)
        try:
            os.rename(third, one)
        except BaseException:
            os.rename(other, one)
            raise
    except BaseException:
        os.rename(third, other)
        raise


def _exchanged(one: Path, other: Path) -> bool:
    """Whether Linux exchanged two names in one step, so that there is no moment without a folder of that name."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    done: int = call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
    return done == 0


def on_termination(handler: Callable[[int, Any], None]) -> None:
    """Call a function when the process is asked to end: SIGTERM, and Ctrl-Break on Windows."""
    for name in ("SIGTERM", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, handler)


def say_anything() -> None:
    """Let the terminal's encoding hold no sentence up: what it has no sign for is written as a code."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
