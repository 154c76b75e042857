"""Atomic writing: an output file is complete, judged, and no more accessible than its source, or it isn't created.

Temporary files are next to their target and are named ``.shoal-PID-HOST-....part.ENDING``. A killed process leaves
them. The next write to the folder removes those whose process has ended, and those that are an hour old. A folder of
parts is written in the same way, as a temporary folder. ``check_outputs`` checks the targets of every command and every
``write`` before any work.

All code for differences of Linux, macOS, and Windows in files, owners, processes, and signals is here. Windows has no
owner numbers, can't open a folder, treats signal 0 as Ctrl-C, and doesn't rename over a file that is read-only or open
elsewhere. Only Linux exchanges two names in one step.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shoal.engines.source import MANIFEST
from shoal.errors import ExistsError, InputError, MissingDependencyError, PolicyError, VerificationError
from shoal.model.cards import PLAIN_JSON
from shoal.paths import MAP, PAGE, PICTURE, Form, ends, is_packed, is_picture, sides_of

# seconds between attempts to rename on Windows, where virus scanners briefly lock new files
WAITS = (0.05, 0.1, 0.2, 0.4)
_EXCHANGE, _HERE = 2, -100  # RENAME_EXCHANGE and AT_FDCWD of Linux


def on_windows() -> bool:
    """Whether this process runs on Windows."""
    return os.name == "nt"


def owned(facts: os.stat_result) -> bool:
    """Whether a file belongs to this user; True if the system has no owner numbers, where the folder's permissions
    decide."""
    return not hasattr(os, "getuid") or facts.st_uid == os.getuid()


def give_owner(path: Path, facts: os.stat_result) -> None:
    """Give a file the owner and group of another, if the system has them and permits it."""
    if not hasattr(os, "chown") or not hasattr(os, "getuid"):
        return
    if (facts.st_uid, facts.st_gid) != (os.getuid(), os.getgid()):
        with contextlib.suppress(OSError):
            os.chown(path, facts.st_uid, facts.st_gid)


def sync_folder(folder: Path) -> None:
    """Flush the renames in a folder to disk. It does nothing if the system or the file system doesn't support it."""
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
    """Whether a process of this machine runs; None on Windows, where the check would end it."""
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
    """PermissionError for a read-only file, which Windows never replaces. Call this before its mode is copied."""
    if on_windows() and target.is_file() and not target.stat().st_mode & stat.S_IWRITE:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))


def replace(temporary: Path, target: Path) -> None:
    """``os.replace``; on Windows, repeated for 0.75 seconds if another program holds the file."""
    for wait in WAITS if on_windows() else ():
        with contextlib.suppress(PermissionError):
            os.replace(temporary, target)
            return
        time.sleep(wait)
    os.replace(temporary, target)


def exchange(one: Path, other: Path, aside: Callable[[], Path]) -> None:
    """Exchange the names of two folders: in one step on Linux, elsewhere in three steps that are undone if one fails.

    aside  makes a new, empty folder, whose name is used in between
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
    """Whether Linux exchanged two names in one step, so that the name always refers to a folder."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    done: int = call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
    return done == 0


def on_termination(handler: Callable[[int, Any], None]) -> None:
    """Call a function if the process is asked to end: SIGTERM, a closed terminal, and Ctrl-Break on Windows.

    A closed terminal sends SIGHUP. It is passed on as SIGTERM, for which a server in this process may have a handler of
    its own. ``nohup`` ignores SIGHUP so that the process goes on, and this remains so.
    """
    for name in ("SIGTERM", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, handler)
    closed = getattr(signal, "SIGHUP", None)
    if closed is not None and signal.getsignal(closed) is not signal.SIG_IGN:
        signal.signal(closed, lambda _number, _frame: signal.raise_signal(signal.SIGTERM))


def escape_unencodable() -> None:
    """Write characters that the terminal's encoding lacks as escape codes instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


SHARED = 0o077  # permission bits of everyone except the owner
STALE = 3600.0  # seconds after which a temporary file of an unknown process is removed
_HELD = (errno.EACCES, errno.EPERM, errno.EBUSY)
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_OURS = re.compile(r"\.shoal-(?:(\d+)-([0-9a-f]{8})-)?[^.]*\.part(\.|$)")


class Piece(NamedTuple):
    """A file to write: its path, the function that fills a temporary file, and the check of the written bytes.

    folder   whether it is a folder of files; ``fill`` and ``judge`` then get a folder
    sides    endings of files that ``fill`` may write next to it and that belong to it
    private  whether only its owner may read it
    """

    path: str | Path
    fill: Callable[[Path], object]
    judge: Callable[[Path], object] | None = None
    folder: bool = False
    sides: tuple[str, ...] = ()
    private: bool = False


def publish_file(
    path: str | Path,
    fill: Callable[[Path], object],
    judge: Callable[[Path], object] | None = None,
    *,
    closed: int = 0,
) -> None:
    """Write one file completely or not at all: fill a temporary file next to the target, judge it, rename it.

    closed  permission bits that the file may not have, from ``closed_to``
    """
    publish_together([Piece(path, fill, judge)], closed=closed)


def publish_text(path: str | Path, text: str, *, closed: int = 0) -> None:
    """``publish_file`` of a text in UTF-8."""
    publish_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8", newline=""), closed=closed)


def publish_page(
    path: str | Path, figures: Callable[[], Mapping[str, Any]], page: Callable[[Mapping[str, Any]], str],
    read: Iterable[str | Path | None], *, overwrite: bool, private: bool,
) -> Path:  # fmt: skip
    """Write a page and its figures, which have the same name with the ending .json: both or neither.

    figures  gives the figures, after the target is checked;  page  gives the page of these figures
    read     everything that is read;  private  whether only the owner can read new files
    """
    path = Path(path)
    closed = check_outputs([(path, PAGE)], read, overwrite=overwrite)
    held = figures()
    text, numbers = page(held), json.dumps(held, indent=1, **PLAIN_JSON) + "\n"

    def fill(temporary: Path) -> None:
        for one, content in ((temporary, text), (temporary.with_suffix(".json"), numbers)):
            one.write_text(content, encoding="utf-8", newline="")

    publish_together([Piece(path, fill, sides=(".json",))], closed=closed | (SHARED if private else 0))
    return path


def publish_together(pieces: Sequence[Piece], *, closed: int = 0) -> None:
    """Write files that belong together: all are filled, judged, and on disk before the first is renamed.

    They are renamed in the given order. If a rename fails, or the process is interrupted, finished renames are undone.
    Only if the process is killed between two renames, a new file is next to an old one. If another process wrote a file
    of one of the names in the meantime, its files stay. A temporary file has its target's ending, so that readers
    recognize the format. For a symbolic link, the file that it refers to is replaced. An existing file keeps its mode,
    a new one gets the default mode of the umask; neither gets any of the bits ``closed``.

    Raises OSError with a sentence that names the target, ExistsError for a file that another process wrote in the
    meantime, and the errors of ``fill`` and ``judge``.
    """
    targets = [real_path(piece.path) for piece in pieces]
    for folder in {target.parent for target in targets}:
        clear_stale(folder)
    stood = {target: _state(target) for target in targets}
    for target in targets:
        with named_errors(target):
            refuse_read_only(target)
    made: list[Path] = []
    beside: list[tuple[Path, Path]] = []
    try:
        for piece, target in zip(pieces, targets, strict=True):
            with named_errors(target):
                temporary = folder_next_to(target) if piece.folder else _temporary(target)
                made.append(temporary)
                own = [(temporary.with_suffix(side), target.with_suffix(side)) for side in piece.sides]
                beside += own
                piece.fill(temporary)
            if piece.judge is not None:
                try:
                    piece.judge(temporary)
                except VerificationError as error:
                    raise VerificationError(str(error).replace(temporary.name, target.name)) from None
            with named_errors(target):
                for one, name in [*(pair for pair in own if pair[0].exists()), (temporary, target)]:
                    _flush(one, name, closed | (SHARED if piece.private else 0))
        whole = [pair for pair in beside if pair[0].exists()]
        with _alone({target.parent for target in targets}):
            for target in targets:
                if _state(target) != stood[target]:
                    raise ExistsError(
                        f"{str(target)!r} was written by another process meanwhile, and stays as it is; run this again "
                        "with ⟨overwrite=True⟩ to replace it, or name another file"
                    )
            _rename([*(one for one, _ in whole), *made], [*(name for _, name in whole), *targets], made)
            for one, name in beside:
                if (one, name) not in whole:
                    name.unlink(missing_ok=True)  # it belongs to the replaced file
    finally:
        for temporary in [*made, *(one for one, _ in beside)]:
            with contextlib.suppress(OSError):
                if temporary.is_dir() and not temporary.is_symlink():
                    shutil.rmtree(temporary, ignore_errors=True)
                else:
                    temporary.unlink(missing_ok=True)


def _state(target: Path) -> tuple[int, int, int] | None:
    """Values that identify a version of a file or folder; None if it doesn't exist."""
    try:
        facts = os.stat(target)
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


@contextlib.contextmanager
def _alone(folders: Iterable[Path]) -> Iterator[None]:
    """Lock the folders, so that no other process renames files here. If a folder can't be locked, as on Windows, one
    may."""
    held: list[int] = []
    try:
        with contextlib.suppress(ImportError):
            import fcntl

            for folder in sorted(folders):
                with contextlib.suppress(OSError):
                    held.append(os.open(folder, os.O_RDONLY))
                    fcntl.flock(held[-1], fcntl.LOCK_EX)
        yield
    finally:
        for one in held:
            os.close(one)


def _rename(temporaries: Sequence[Path], targets: Sequence[Path], made: list[Path]) -> None:
    """Rename all files, or none; ``made`` collects the copies kept in the meantime."""
    done: list[tuple[Path, Path | None, int]] = []  # target, the copy of its previous file, the inode of the new one
    try:
        kept = []
        for target in targets:
            with named_errors(target):
                kept.append(_copy_kept(target, made))
        for temporary, target, old in zip(temporaries, targets, kept, strict=True):
            with named_errors(target):
                swap = target.is_dir() and temporary.is_dir()
                done.append((target, temporary if swap else old, temporary.stat().st_ino))
                _give_name(temporary, target)
        for target in targets:
            with named_errors(target):
                sync_folder(target.parent)
    except BaseException:
        for target, old, new in reversed(done):
            _put_back(target, old, new)
        raise


def _give_name(temporary: Path, target: Path) -> None:
    """Rename a file into place; exchange the names of two folders."""
    if target.is_dir() and temporary.is_dir():
        exchange(temporary, target, lambda: folder_next_to(target))
    else:
        replace(temporary, target)


def _put_back(target: Path, old: Path | None, new: int) -> None:
    """Restore the previous file, unless another process replaced the new one. new: inode of the new one."""
    if target.exists() and target.stat().st_ino != new:
        return
    if old is None:
        if target.is_dir():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)
        return
    if old.is_dir():
        _give_name(old, target)
        return
    try:
        replace(old, target)
    except OSError:  # if renaming fails, copy, because the content matters more
        shutil.copyfile(old, target)


def _copy_kept(target: Path, made: list[Path]) -> Path | None:
    """A second name for the file that will be replaced: a link, or a copy if the file system has no links."""
    if not target.exists() or target.is_dir():
        return None
    kept = _temporary(target)
    made.append(kept)
    kept.unlink()
    try:
        os.link(target, kept)
    except OSError:
        shutil.copy2(target, kept)
    return kept


def _temporary(target: Path) -> Path:
    ending = "".join(target.suffixes[-2:]) if is_packed(target) else target.suffix
    prefix = f".shoal-{os.getpid()}-{_host()}-"
    handle, name = tempfile.mkstemp(prefix=prefix, suffix=f".part{ending}", dir=target.parent)
    os.close(handle)
    return Path(name)


def folder_next_to(target: Path) -> Path:
    """A new folder next to a target that only this user can enter, with the name of a temporary file."""
    return Path(tempfile.mkdtemp(prefix=f".shoal-{os.getpid()}-{_host()}-", suffix=".part", dir=target.parent))


def _host() -> str:
    return hashlib.blake2b(socket.gethostname().encode(), digest_size=4).hexdigest()


def _flush(temporary: Path, target: Path, closed: int) -> None:
    """Set the final mode, and flush the bytes to disk."""
    if temporary.is_dir():
        mask = os.umask(0o077)
        os.umask(mask)
        for path in temporary.iterdir():
            _flush(path, path.with_name("new"), closed)
        sync_folder(temporary)
        os.chmod(temporary, (0o777 & ~mask) & ~closed)
        return
    try:
        old = os.stat(target)
    except FileNotFoundError:
        mask = os.umask(0o077)
        os.umask(mask)
        mode = 0o666 & ~mask
    else:
        mode = stat.S_IMODE(old.st_mode) & 0o777
        if closed & SHARED != SHARED:  # a private file stays this user's, even if it replaces a file of another owner
            give_owner(temporary, old)
    with open(temporary, "rb+") as file:
        os.fsync(file.fileno())
    os.chmod(temporary, mode & ~closed)


@contextlib.contextmanager
def named_errors(target: Path) -> Iterator[None]:
    """Convert errors of the system or a library to a sentence that names the target and not the temporary file."""
    try:
        yield
    except Exception as error:
        number = _errno(error)
        if number is None:
            raise
        if number in _FULL:
            message = f"no space left in {str(target.parent)!r} for {target.name!r}, which is as it was"
        elif number in _HELD and target.exists():
            message = (
                f"{os.strerror(number)}: {target.name!r} could not be written, and is as it was; if another program "
                "has it open, close it there"
            )
        else:
            message = f"{os.strerror(number)}: {target.name!r} could not be written, and is as it was"
        raise OSError(number, message, str(target)) from None


def _errno(error: Exception) -> int | None:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = re.search(r"\(?os error (\d+)\)?", str(error))
    if found:
        return int(found[1])
    return errno.EIO if isinstance(error, OSError) else None


def real_path(path: str | Path) -> Path:
    """The path after all links are followed; InputError for a circular link."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError):
        raise InputError(f"{str(path)!r} is a link that leads nowhere; name a file") from None


def closed_to(sources: Iterable[str | Path | None]) -> int:
    """Permission bits that no output may have, because group or others can't read all of these sources."""
    closed = 0
    for source in sources:
        with contextlib.suppress(OSError, TypeError):
            mode = os.stat(source).st_mode  # type: ignore[arg-type]
            for shift in (3, 0):
                if not mode >> shift & 4:
                    closed |= 7 << shift
    return closed


def clear_stale(folder: Path) -> None:
    """Remove shoal's temporary files whose process on this machine has ended, or that are an hour old."""
    for path in folder.glob(".shoal-*.part*"):
        found = _OURS.match(path.name)
        with contextlib.suppress(OSError):
            facts = path.lstat()
            is_folder = stat.S_ISDIR(facts.st_mode)
            if found is None or not (is_folder or stat.S_ISREG(facts.st_mode)) or not owned(facts):
                continue
            here = found[1] is not None and found[2] == _host()
            if here and int(found[1]) == os.getpid():
                continue
            runs = alive(int(found[1])) if here else None
            own, dead = runs is not None, runs is False
            if is_folder and (dead or (not own and time.time() - _touched(path) > STALE)):
                shutil.rmtree(path, ignore_errors=True)
            elif not is_folder and (dead or time.time() - facts.st_mtime > STALE):
                path.unlink()


def _touched(folder: Path) -> float:
    """The last time at which a folder or a file in it was written; a long job keeps writing parts."""
    return max((p.lstat().st_mtime for p in (folder, *folder.rglob("*"))), default=0.0)


Wanted = tuple[str | Path | None, Form]


def check_outputs(wanted: Iterable[Wanted], read: Iterable[str | Path | None] = (), *, overwrite: bool = True) -> int:
    """Refuse unsafe targets, and return the permission bits that no output may have (``closed_to``).

    wanted     (path or None, form) of everything that will be written
    read       everything that is read: tables, policies, hierarchies, crosswalks
    overwrite  whether existing files may be replaced

    A target is a regular file, or a new one in an existing, writable folder. Its ending is one of its form. It is
    neither a file that is read, under any name, nor another target. A file next to a target is replaced with it alone.
    Raises InputError, PolicyError, or
    MissingDependencyError for a picture that needs a missing package.
    """
    sources = [Path(p) for p in read if p is not None]
    targets: list[tuple[Path, str]] = []  # with the name of each in a message
    for given, form in wanted:
        if given is None:
            continue
        path = Path(given)
        check_place(path)
        if not ends(path, form.endings):
            raise InputError(
                f"{path.name!r}: a {form.what} is written as {', '.join(form.endings[:-1])}"
                f"{' or ' if len(form.endings) > 1 else ''}{form.endings[-1]}; name another file"
            )
        if form in (MAP, PICTURE) and is_picture(path):
            MissingDependencyError.unless("matplotlib", "drawing a picture", "plot")
        beside = form.next_to(path)
        for one in beside:
            check_place(one)
        for one in (path, *beside):
            named = repr(str(one)) + ("" if one is path else f", which is written next to {path.name!r},")
            if any(_one(one, source) for source in sources):
                raise InputError(
                    f"the output {named} is a file that is read; what is read is never changed, name another file"
                )
            taken = next((output for other, output in targets if _one(one, other) or _alike(one, other)), "")
            if taken:
                output = named if "next to" in named or "next to" not in taken else taken
                raise PolicyError(f"{output} is named for two outputs; name another file")
            sides = sides_of(path) if one is path else [one]
            if alone := [] if path.exists() else [side for side in sides if side.exists()]:
                raise ExistsError(
                    f"{str(alone[0])!r}, which is written next to {path.name!r}, exists already, and {path.name!r} "
                    "does not, so it belongs to something else; name another file, or move it away"
                )
            if not overwrite and any(p.exists() for p in (one, *sides_of(one))):
                raise ExistsError(f"{named} exists already; say ⟨overwrite=True⟩ to replace it, or name another file")
            targets.append((one, named))
    return closed_to(sources)


def check_folder(path: Path, read: Iterable[str | Path | None] = (), *, overwrite: bool) -> int:
    """Refuse an unsafe folder of parts, and return the permission bits that no output may have (``closed_to``).

    The folder is new, empty, or contains only an earlier release. It neither is inside a folder that is read nor
    contains a file that is read.
    """
    path = Path(path)
    sources = [Path(p) for p in read if p is not None]
    real = real_path(path)
    if not real.is_dir():
        check_place(path)
    if real.is_file():
        raise InputError(f"{str(path)!r} is no folder; name a folder, or a file that ends in .csv or .parquet")
    for source in sources:
        held = real_path(source)
        if held == real or real in held.parents or (held.is_dir() and held in real.parents):
            raise InputError(
                f"the output {str(path)!r} is in a folder that is read, or holds a file that is; name another folder"
            )
    check_place(real.with_name(real.name + ".new"))
    if real.is_dir() and any(real.iterdir()):
        if not _is_release(real):
            raise InputError(f"the folder {str(path)!r} holds other things than a release; name a new folder")
        if not overwrite:
            raise ExistsError(
                f"{str(path)!r} exists already; say ⟨overwrite=True⟩ to replace it, or name another folder"
            )
    return closed_to(sources)


def _is_release(folder: Path) -> bool:
    """Whether a folder contains a manifest, the parts in it, and nothing else."""
    try:
        named = {part["file"] for part in json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["parts"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    return {p.name for p in folder.iterdir()} <= named | {MANIFEST}


def _one(path: Path, other: Path) -> bool:
    """Whether two paths are the same file, also through symbolic or hard links."""
    if real_path(path) == real_path(other):
        return True
    return path.exists() and other.exists() and os.path.samefile(path, other)


def _alike(path: Path, other: Path) -> bool:
    """Whether macOS and Windows treat two names as the same file: case and the composition of letters don't matter."""
    one, two = (unicodedata.normalize("NFC", str(real_path(p))).casefold() for p in (path, other))
    return one == two


def check_place(path: Path) -> None:
    """InputError unless a file can be written there: not a device, pipe, socket, or folder, and in a writable
    folder."""
    path = Path(path)
    real = real_path(path)
    try:
        mode = real.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be looked at ({os.strerror(error.errno or 5)}); name a file") from None
    kinds = {stat.S_IFDIR: "folder", stat.S_IFCHR: "device", stat.S_IFBLK: "device", stat.S_IFIFO: "pipe"}
    if not stat.S_ISREG(mode):
        raise InputError(f"{str(path)!r} is a {kinds.get(stat.S_IFMT(mode), 'socket')}; name a file to write")
    named = real if path.is_symlink() else path  # links are followed
    if not real.parent.is_dir():
        raise InputError(f"there is no folder {str(named.parent)!r} to write {path.name!r} into; make it first")
    if not os.access(real.parent, os.W_OK):
        raise InputError(f"the folder {str(named.parent)!r} cannot be written to")
