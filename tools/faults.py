"""Stops, kills and faults while something is written: ``python tools/faults.py RANDOM [SEED [KIND ...]]``.

A command writes over older files, or where there were none, in a process of its own that is warm.  It is put to

* a stop at every open, temporary, link, sync, change of mode and rename, one after the other (``stop``);
* an error of the system, full disk or no permission in turn, at each of the same (``error``);
* files that may not grow beyond a size, which is what native writers meet (``full``);
* RANDOM stops at moments drawn evenly from the time between its first temporary and its end (``free``).

A stopped process has written what a killed one would have: its folder is copied, the copy is judged, and the process
goes on.  One free stop of 25 is a SIGKILL.  After a stop each file is the old one, byte for byte, or whole and new, or
absent where there was none; the pair of release and certificate verifies when both are of one run, and when they are
not, ``verify`` says so.  After an error everything is as it was.  Nowhere but in the inputs stands an identifier.
After every fourth case the command runs again: it takes the temporaries of the dead away and leaves what verifies.

Needs a system with SIGSTOP.  Prints what came of the cases, and each failure with its seed; exits 1 when there is one.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import hashlib
import io
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

import shoal
from shoal.model.policy import Policy

MARK = "identifier-of-person"
STALE = "is the older, so make both again"
TABLE = "table.csv --quasi age,town --sensitive ill --identifiers name --k 3 --effort fast --force"
KILLED = 25  # of so many free stops one is a kill


class Kind(NamedTuple):
    """A command and what it writes together, the certificate last; one that has to run before; what it draws after.

    A drawing is no part of what is certified: it is written when the pair stands.
    """

    command: str
    outputs: tuple[str, ...]
    before: str = ""
    drawn: tuple[str, ...] = ()


def of_table(name: str, words: str = "") -> Kind:
    return Kind(f"anonymize {TABLE} {words} -o {name}", (name, f"{name.split('.')[0]}.certificate.json"))


KINDS = {
    "csv": of_table("r.csv"),
    "gz": of_table("r.csv.gz", "--publish ranges"),
    "parquet": of_table("r.parquet", "--publish ranges"),
    "excel": of_table("r.xlsx"),
    "folder": Kind(
        f"anonymize parts {TABLE.removeprefix('table.csv ')} --engine duckdb -o r", ("r", "r.certificate.json")
    ),
    "labels": Kind(
        "labels table.csv --label town --count age --k 700 --force -o r.csv", ("r.csv", "r.certificate.json")
    ),
    "outlines": Kind(
        "regions areas.geojson --weight people --k 20 --effort fast --force -o r.csv --dissolved o.geojson",
        ("r.csv", "r.certificate.json"),
        drawn=("o.geojson",),
    ),
    "tiles": Kind(
        "tiles points.csv --x x --y y --k 3 --effort fast --force --table r.csv", ("r.csv", "r.certificate.json")
    ),
    "centers": Kind(
        "gather table.csv --columns age --r 5 --force -o r.csv --assignments a.csv",
        ("r.csv", "a.csv", "r.certificate.json"),
    ),
    "report": Kind(
        "report i.csv i.certificate.json --force -o r.html", ("r.html",), f"anonymize {TABLE} -o i.csv --force"
    ),
    "policy": Kind("init table.csv -o r.toml --force", ("r.toml",)),
}  # fmt: skip


def inputs(folder: Path, seed: int) -> None:
    """A table, the same in parts, points, and areas with their polygons; another seed is another content."""
    import polars as pl

    rng = random.Random(seed)
    lines = [f"{rng.randint(20, 60)},{rng.choice('abcd')},{rng.choice('pqr')},{MARK}-{i}" for i in range(60)]
    (folder / "table.csv").write_text("\n".join(["age,town,ill,name", *lines]) + "\n")
    (folder / "parts").mkdir()
    for part in range(3):
        pl.read_csv(folder / "table.csv").slice(20 * part, 20).write_parquet(folder / "parts" / f"{part}.parquet")
    lines = ["x,y"] + [f"{rng.random():.4f},{rng.random():.4f}" for _ in range(60)]
    (folder / "points.csv").write_text("\n".join(lines) + "\n")
    areas = []
    for x, y in ((i % 5, i // 5) for i in range(25)):
        ring = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]
        facts = {"id": f"a{x}{y}", "people": rng.randint(1, 15)}
        shape = {"type": "Polygon", "coordinates": [ring]}
        areas.append({"type": "Feature", "properties": facts, "geometry": shape})
    (folder / "areas.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": areas}))


class Events:
    """Counts what a writer asks of the system from its first temporary on, and does something at the n-th."""

    def __init__(self) -> None:
        self.count, self.at, self.begun = 0, 0, False
        self.act: Callable[[], None] = lambda: None
        self.first: Callable[[], None] = lambda: None

    def reset(self, at: int, act: Callable[[], None], first: Callable[[], None]) -> None:
        self.count, self.begun, self.at, self.act, self.first = 0, False, at, act, first

    def met(self, begins: bool) -> None:
        """One thing asked; ``begins``: it makes a temporary."""
        if begins and not self.begun:
            self.begun = True
            self.first()
        if self.begun:
            self.count += 1
            if self.count == self.at:
                self.act()

    def watch(self, holder: Any, name: str, begins: bool = False) -> None:
        """Count the calls of a function of the system."""
        honest = getattr(holder, name)

        def call(*given: Any, **more: Any) -> Any:
            inside = name != "open" or (given and Path(os.fsdecode(given[0])).is_relative_to(Path.cwd())
                                        if given and isinstance(given[0], (str, os.PathLike)) else False)  # fmt: skip
            if inside:
                self.met(begins)
            return honest(*given, **more)

        setattr(holder, name, call)


def work(told: Connection) -> None:
    """The process that writes: runs (command, folder, mode, at) as they come, says status, events and seconds."""
    from shoal.cli import main, program
    from shoal.engines import store as engine
    from shoal.publishing.tables import writing as publishing

    program()  # every command loaded, before system calls are counted
    engine.PART_ROWS = publishing.PART_ROWS = 25  # type: ignore[attr-defined]
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    events = Events()
    for name in ("replace", "rename", "link", "fsync", "chmod"):
        events.watch(os, name)
    for name in ("mkstemp", "mkdtemp"):
        events.watch(tempfile, name, begins=True)
    for holder in (builtins, io):
        events.watch(holder, "open")
    while True:
        command, folder, mode, at = told.recv()
        os.chdir(folder)
        errors = os.open(os.devnull, os.O_WRONLY)
        os.dup2(errors, 2)
        os.close(errors)
        began = [time.monotonic()]

        def fail(at: int = at) -> None:
            number = errno.ENOSPC if at % 2 else errno.EACCES
            raise OSError(number, os.strerror(number))

        def first(began: list[float] = began, mode: str = mode) -> None:
            began[0] = time.monotonic()
            if mode == "free":
                told.send("began")

        act = {"stop": lambda: os.kill(os.getpid(), signal.SIGSTOP), "error": fail}.get(mode, lambda: None)
        events.reset(at if mode != "full" else 0, act, first)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        if mode == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (at, hard))
        sys.argv = ["shoal", *command.split()]
        status: Any = 0
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
        except BaseException as error:
            status = f"{type(error).__name__}: {error}"
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        told.send((status, events.count, time.monotonic() - began[0]))


class Writer:
    """The process that writes, started anew when it was killed."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """A fresh process."""
        context = multiprocessing.get_context("spawn")
        self.told, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def run(self, command: str, folder: Path, mode: str = "plain", at: int = 0) -> tuple[Any, int, float]:
        """A command to its end: status, events, seconds from the first of them."""
        self.told.send((command, str(folder), mode, at))
        return self.told.recv()  # type: ignore[no-any-return]

    def stopped(self) -> bool:
        """Whether the process has stopped, rather than said something."""
        while True:
            found, status = os.waitpid(self.process.pid or 0, os.WUNTRACED | os.WNOHANG)
            if found:
                return os.WIFSTOPPED(status)
            if self.told.poll(0.0005):
                return False

    def proceed(self) -> None:
        os.kill(self.process.pid or 0, signal.SIGCONT)

    def kill(self) -> None:
        """End it for good, and start another."""
        self.process.kill()
        self.process.join()
        self.start()


def digest(path: Path) -> str | None:
    """What stands under a name, a file or a folder; None for nothing."""
    if not path.exists():
        return None
    files = [path] if path.is_file() else sorted(path.iterdir())
    return hashlib.sha256(b"".join(f.name.encode() + f.read_bytes() for f in files)).hexdigest()


def temporaries(folder: Path) -> list[Path]:
    """Files that a dead process of ours has left."""
    return [p for p in folder.iterdir() if p.name.startswith(".shoal-")]


def said_of(target: Path, certificate: Path) -> str:
    """What ``verify`` says of a pair."""
    found = shoal.verify(target, certificate)
    return "holds" if found.holds else " ".join(f.found for f in found.findings if not f.holds)


def whole(path: Path) -> bool:
    """Whether a page or a policy is complete."""
    if path.suffix == ".toml":
        return bool(Policy.read(path).quasi_identifiers)
    if path.suffix == ".geojson":
        return bool(json.loads(path.read_text())["features"])
    return path.read_text().rstrip().endswith("</html>")


def judged(folder: Path, kind: Kind, old: dict[str, str | None], known: set[str]) -> str:
    """What was left: "old", "none", "new" or "between"; AssertionError for anything that may not be.

    old  what stood under each name before; known: names of inputs
    """
    now = {name: digest(folder / name) for name in kind.outputs + kind.drawn}
    changed = [name for name in kind.outputs if now[name] != old[name]]
    strange = {p.name for p in folder.iterdir()} - known - set(now) - {p.name for p in temporaries(folder)}
    assert not strange, f"files of no name that was asked for: {sorted(strange)}"
    for path in (p for p in folder.rglob("*") if p.is_file()):
        inside = path.relative_to(folder).parts[0] in known
        assert inside or MARK.encode() not in path.read_bytes(), f"an identifier in {path.name}"
    assert all(now[name] is not None for name in changed), "an old file is gone"
    redrawn = [name for name in kind.drawn if now[name] != old[name]]
    assert all(whole(folder / name) for name in redrawn), "a part of a drawing"
    assert not redrawn or changed == list(kind.outputs), "a drawing before what it draws"
    certificate = kind.outputs[-1]
    if not certificate.endswith(".certificate.json"):
        assert all(whole(folder / name) for name in changed), "a part of a file"
    elif now[certificate] is not None and now[kind.outputs[0]] is not None:
        said = said_of(folder / kind.outputs[0], folder / certificate)
        pair = [name in changed for name in (kind.outputs[0], certificate)]
        if pair == [True, False]:
            assert STALE in said, f"verify does not say which is stale: {said}"
        else:  # a crosswalk may have the bytes of the older one
            assert said == "holds", said
    else:
        assert now[certificate] is None, "a certificate without its release"
    if not changed:
        return "old" if any(old.values()) else "none"
    return "new" if len(changed) == len(kind.outputs) else "between"


class Stage:
    """Where the cases of one kind are played: inputs, older outputs made of others, the writer."""

    def __init__(self, room: Path, name: str, seed: int, writer: Writer) -> None:
        self.room, self.kind, self.writer = room, KINDS[name], writer
        self.made, self.given = room / "made", room / "given"
        for folder, content in ((self.made, seed), (self.given, seed + 1)):
            folder.mkdir()
            inputs(folder, content)
            if self.kind.before:
                self.ran(self.kind.before, folder)
        self.known = {p.name for p in self.given.iterdir()}
        self.ran(self.kind.command, self.made)
        self.cases = 0
        ended = subprocess.Popen(["true"])
        ended.wait()
        self.dead = ended.pid
        time.sleep(1.1)  # certificates state their time in whole seconds

    def ran(self, command: str, folder: Path) -> tuple[int, float]:
        """A command to its end; events and seconds."""
        status, events, seconds = self.writer.run(command, folder)
        assert status == 0, f"{command}: ended with {status}"
        return events, seconds

    @contextlib.contextmanager
    def folder(self, older: bool) -> Iterator[tuple[Path, dict[str, str | None]]]:
        """A fresh folder with the inputs, and what stands under each name of an output."""
        with tempfile.TemporaryDirectory(dir=self.room) as where:
            folder = Path(where) / "case"
            shutil.copytree(self.given, folder)
            for name in (self.kind.outputs + self.kind.drawn) if older else ():
                source = self.made / name
                (shutil.copytree if source.is_dir() else shutil.copy2)(source, folder / name)
            yield folder, {name: digest(folder / name) for name in self.kind.outputs + self.kind.drawn}

    def measure(self, older: bool) -> tuple[int, float]:
        """Events and seconds of an undisturbed run."""
        with self.folder(older) as (folder, old):
            found = self.ran(self.kind.command, folder)
            assert judged(folder, self.kind, old, self.known) == "new", "an undisturbed run"
            assert not temporaries(folder)
        return found

    def again(self, folder: Path) -> None:
        """The next run, of every fourth case."""
        self.cases += 1
        if self.cases % 4:
            return
        for path in temporaries(folder):  # of a process that went on: what a dead one leaves has a dead one's number
            path.rename(path.with_name(re.sub(r"^\.shoal-\d+", f".shoal-{self.dead}", path.name)))
        self.ran(self.kind.command, folder)
        assert not temporaries(folder), "temporaries of the dead stay"
        nothing = dict.fromkeys(self.kind.outputs + self.kind.drawn)
        assert judged(folder, self.kind, nothing, self.known) == "new", "the next run"

    def stop(self, mode: str, at: int, wait: float, older: bool, kill: bool) -> str:
        """A stop at an event or a moment; what was left."""
        with self.folder(older) as (folder, old):
            writer = self.writer
            writer.told.send((self.kind.command, str(folder), mode, at))
            if mode == "free":
                assert writer.told.recv() == "began", "nothing was written"
                time.sleep(wait)
                if kill:
                    writer.kill()
                    came = judged(folder, self.kind, old, self.known)
                    self.again(folder)
                    return f"killed: {came}"
                os.kill(writer.process.pid or 0, signal.SIGSTOP)
            stopped = writer.stopped()
            if not stopped or writer.told.poll():
                writer.proceed()
                writer.told.recv()
                return "ended before"
            copy = folder.with_name("copy")
            shutil.copytree(folder, copy, symlinks=True)
            writer.proceed()
            status = writer.told.recv()[0]
            assert status == 0, f"stopped and continued, it ended with {status}"
            came = judged(copy, self.kind, old, self.known)
            self.again(copy)
            return came

    def fault(self, mode: str, at: int, older: bool) -> str:
        """An error at an event, or beyond a size; everything is as it was, unless it was got over."""
        with self.folder(older) as (folder, old):
            status = self.writer.run(self.kind.command, folder, mode, at)[0]
            came = judged(folder, self.kind, old, self.known)
            assert not temporaries(folder), "temporaries stay"
            undrawn = any(digest(folder / n) == old[n] for n in self.kind.drawn)  # the pair stood, a drawing failed
            fine = ("new",) if status == 0 else ("old", "none", "new") if undrawn else ("old", "none")
            assert came in fine, f"{came} after status {status}"
            assert isinstance(status, int), status
            self.again(folder)
            return "got over" if status == 0 else "refused, all as it was"


def cases(stage: Stage, count: int, rng: random.Random) -> Iterator[tuple[str, Callable[[], str]]]:
    """All cases of a kind: what it is, and what plays it."""
    for older in (True, False):
        events, seconds = stage.measure(older)
        for at in range(1, events + 1):
            yield f"stop {at}", lambda at=at, older=older: stage.stop("stop", at, 0.0, older, False)  # type: ignore[misc]
            yield f"error {at}", lambda at=at, older=older: stage.fault("error", at, older)  # type: ignore[misc]
        for _ in range(4):
            size = rng.randrange(1, 2000)
            yield f"full {size}", lambda size=size, older=older: stage.fault("full", size, older)  # type: ignore[misc]
        for number in range(count // 2):
            wait, kill = rng.random() * seconds, number % KILLED == KILLED - 1
            yield f"free {wait:.4f}", lambda w=wait, o=older, k=kill: stage.stop("free", 0, w, o, k)  # type: ignore[misc]


def main() -> int:
    """Play all cases of every kind."""
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    failed, played = 0, 0
    with tempfile.TemporaryDirectory(prefix="shoal-faults-") as where:
        spare = Path(where) / "spare"
        spare.mkdir()
        os.environ["TMPDIR"] = str(spare)
        writer = Writer()
        for name in sys.argv[3:] or KINDS:
            room = Path(where) / name
            room.mkdir()
            rng, seen = random.Random(seed), Counter[str]()
            stage = Stage(room, name, seed, writer)
            for what, play in cases(stage, count, rng):
                try:
                    came = play()
                except AssertionError as error:
                    came = "failed"
                    print(f"{name}, seed {seed}, {what}: {error}", flush=True)
                seen[f"{what.split()[0]}: {came}"] += 1
            total = seen.total() - sum(n for what, n in seen.items() if "ended" in what)
            failed, played = failed + sum(n for what, n in seen.items() if "failed" in what), played + total
            print(f"{name}: {total} cases: {dict(sorted(seen.items()))}", flush=True)
        left = [p.name for p in spare.rglob("*") if p.is_file()]
        writer.process.kill()
    print(f"{played} stops, kills and faults, {failed} failed; left in the folder for temporaries: {left or 'nothing'}")
    return int(failed > 0 or bool(left))


if __name__ == "__main__":
    sys.exit(main())
