"""The one way a file comes into being: whole, judged, no more public than its source, or not at all.

Temporaries stand beside their target as ``.shoal-PID-HOST-....part.ENDING``.  A process that is killed leaves them; the
next write to the folder takes those away whose process is dead, or that are an hour old.  A folder of parts comes into
being the same way, as a folder named alike.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from shoal.engines import system
from shoal.errors import InputError, VerificationError

SHARED = 0o077  # permission bits of everybody but the owner
STALE = 3600.0  # seconds after which a temporary of nobody we know is taken away
_HELD = (errno.EACCES, errno.EPERM, errno.EBUSY)
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_OURS = re.compile(r"\.shoal-(?:(\d+)-([0-9a-f]{8})-)?[^.]*\.part(\.|$)")


class Piece(NamedTuple):
    """A file to write: its path, what fills a temporary file, and what may refuse the bytes written.

    folder  whether it is a folder of files; ``fill`` and ``judge`` then get an empty folder
    sides   endings of files that ``fill`` may leave beside it and that belong to it
    private  only its owner may read it
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
    """Write one file whole or not at all: fill a temporary beside the target, judge it, rename it into place.

    closed  permission bits the file may not have, from ``closed_to``
    """
    publish_together([Piece(path, fill, judge)], closed=closed)


def publish_text(path: str | Path, text: str, *, closed: int = 0) -> None:
    """``publish_file`` of a text in UTF-8."""
    publish_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8", newline=""), closed=closed)


def publish_page(path: str | Path, text: str, figures: str, *, closed: int = 0) -> None:
    """A page and, under its name with the ending .json, its figures: both or neither."""

    def fill(temporary: Path) -> None:
        for one, held in ((temporary, text), (temporary.with_suffix(".json"), figures)):
            one.write_text(held, encoding="utf-8", newline="")

    publish_together([Piece(path, fill, sides=(".json",))], closed=closed)


def publish_together(pieces: Sequence[Piece], *, closed: int = 0) -> None:
    """Write files that belong together: all are filled, judged and on disk before the first gets its name.

    They are renamed in the order given.  Where a rename fails, or the process is interrupted, what has been renamed is
    taken back; only a process killed between two renames leaves a new file beside an old one.  A temporary has its
    target's ending, so that readers know its kind.  A symbolic link is followed: the file it points at is replaced.
    An existing file keeps its mode, a new one gets what the umask leaves; neither gets any of the bits ``closed``.

    Raises OSError with a sentence that names the target, and whatever ``fill`` and ``judge`` raise.
    """
    targets = [real_path(piece.path) for piece in pieces]
    for folder in {target.parent for target in targets}:
        clear_stale(folder)
    for target in targets:
        with _told(target):
            system.refuse_read_only(target)
    made: list[Path] = []
    beside: list[tuple[Path, Path]] = []
    try:
        for piece, target in zip(pieces, targets, strict=True):
            with _told(target):
                temporary = folder_beside(target) if piece.folder else _temporary(target)
                made.append(temporary)
                own = [(temporary.with_suffix(side), target.with_suffix(side)) for side in piece.sides]
                beside += own
                piece.fill(temporary)
            if piece.judge is not None:
                try:
                    piece.judge(temporary)
                except VerificationError as error:
                    raise VerificationError(str(error).replace(temporary.name, target.name)) from None
            with _told(target):
                for one, name in [*(pair for pair in own if pair[0].exists()), (temporary, target)]:
                    _settle(one, name, closed | (SHARED if piece.private else 0))
        whole = [pair for pair in beside if pair[0].exists()]
        _rename([*(one for one, _ in whole), *made], [*(name for _, name in whole), *targets], made)
        for one, name in beside:
            if (one, name) not in whole:
                name.unlink(missing_ok=True)  # of the file that was replaced
    finally:
        for temporary in [*made, *(one for one, _ in beside)]:
            with contextlib.suppress(OSError):
                if temporary.is_dir() and not temporary.is_symlink():
                    shutil.rmtree(temporary, ignore_errors=True)
                else:
                    temporary.unlink(missing_ok=True)


def _rename(temporaries: Sequence[Path], targets: Sequence[Path], made: list[Path]) -> None:
    """Give all their names, or none; ``made`` learns of the copies kept meanwhile."""
    done: list[tuple[Path, Path | None, int]] = []  # target, what stood there, the new one's number
    try:
        kept = []
        for target in targets:
            with _told(target):
                kept.append(_copy_kept(target, made))
        for temporary, target, old in zip(temporaries, targets, kept, strict=True):
            with _told(target):
                swap = target.is_dir() and temporary.is_dir()
                done.append((target, temporary if swap else old, temporary.stat().st_ino))
                _give_name(temporary, target)
        for target in targets:
            with _told(target):
                system.sync_folder(target.parent)
    except BaseException:
        for target, old, new in reversed(done):
            _put_back(target, old, new)
        raise


def _give_name(temporary: Path, target: Path) -> None:
    """Rename into place; of two folders the names are exchanged, at once where the system can."""
    if target.is_dir() and temporary.is_dir():
        system.exchange(temporary, target, lambda: folder_beside(target))
    else:
        system.replace(temporary, target)


def _put_back(target: Path, old: Path | None, new: int) -> None:
    """What stood there before, unless it still stands there; ``new``: the number of what was to take its place."""
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
        system.replace(old, target)
    except OSError:  # whatever keeps renames from working; the content matters more than the way
        shutil.copyfile(old, target)


def _copy_kept(target: Path, made: list[Path]) -> Path | None:
    """Another name for the file that is about to be replaced; a copy where the file system knows no links."""
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
    ending = "".join(target.suffixes[-2:]) if target.name.lower().endswith(".gz") else target.suffix
    prefix = f".shoal-{os.getpid()}-{_host()}-"
    handle, name = tempfile.mkstemp(prefix=prefix, suffix=f".part{ending}", dir=target.parent)
    os.close(handle)
    return Path(name)


def folder_beside(target: Path) -> Path:
    """A new folder beside a target that only this user can enter, named as temporaries are."""
    return Path(tempfile.mkdtemp(prefix=f".shoal-{os.getpid()}-{_host()}-", suffix=".part", dir=target.parent))


def _host() -> str:
    return hashlib.blake2b(socket.gethostname().encode(), digest_size=4).hexdigest()


def _settle(temporary: Path, target: Path, closed: int) -> None:
    """The mode it will have, and the bytes on disk."""
    if temporary.is_dir():
        mask = os.umask(0o077)
        os.umask(mask)
        for path in temporary.iterdir():
            _settle(path, path.with_name("new"), closed)
        system.sync_folder(temporary)
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
        system.give_owner(temporary, old)
    with open(temporary, "rb+") as file:
        os.fsync(file.fileno())
    os.chmod(temporary, mode & ~closed)


@contextlib.contextmanager
def _told(target: Path) -> Iterator[None]:
    """An error of the system, or of a library about it, as a sentence that names the target, never the temporary."""
    try:
        yield
    except Exception as error:
        number = _errno(error)
        if number is None:
            raise
        if number in _FULL:
            said = f"no space left in {str(target.parent)!r} for {target.name!r}, which is as it was"
        elif number in _HELD and target.exists():
            said = (
                f"{os.strerror(number)}: {target.name!r} could not be written, and is as it was; if another program "
                "has it open, close it there"
            )
        else:
            said = f"{os.strerror(number)}: {target.name!r} could not be written, and is as it was"
        raise OSError(number, said, str(target)) from None


def _errno(error: Exception) -> int | None:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = re.search(r"\(?os error (\d+)\)?", str(error))
    if found:
        return int(found[1])
    return errno.EIO if isinstance(error, OSError) else None


def real_path(path: str | Path) -> Path:
    """Where a path leads once links are followed; InputError for a link that leads round and round."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError):
        raise InputError(f"{str(path)!r} is a link that leads nowhere; name a file") from None


def closed_to(sources: Iterable[str | Path | None]) -> int:
    """Permission bits of group and others that no output made from these files may have: of those who cannot read."""
    closed = 0
    for source in sources:
        with contextlib.suppress(OSError, TypeError):
            mode = os.stat(source).st_mode  # type: ignore[arg-type]
            for shift in (3, 0):
                if not mode >> shift & 4:
                    closed |= 7 << shift
    return closed


def clear_stale(folder: Path) -> None:
    """Take away temporaries of ours whose process on this machine is dead, or that nobody touched for an hour."""
    for path in folder.glob(".shoal-*.part*"):
        found = _OURS.match(path.name)
        with contextlib.suppress(OSError):
            facts = path.lstat()
            is_folder = stat.S_ISDIR(facts.st_mode)
            if found is None or not (is_folder or stat.S_ISREG(facts.st_mode)) or not system.owned(facts):
                continue
            here = found[1] is not None and found[2] == _host()
            if here and int(found[1]) == os.getpid():
                continue
            runs = system.alive(int(found[1])) if here else None
            own, dead = runs is not None, runs is False
            if is_folder and (dead or (not own and time.time() - _touched(path) > STALE)):
                shutil.rmtree(path, ignore_errors=True)
            elif not is_folder and (dead or time.time() - facts.st_mtime > STALE):
                path.unlink()


def _touched(folder: Path) -> float:
    """When a folder or what is in it was last written: a long job goes on writing parts."""
    return max((p.lstat().st_mtime for p in (folder, *folder.rglob("*"))), default=0.0)
