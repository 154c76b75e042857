"""Kills at random moments: ``python tools/faults.py KILLS [SEED [COMMAND ...]]``.

A command makes a release over an older one, or where there was none, in a process of its own that is killed with
SIGKILL: half of them at any moment, half within milliseconds of their first temporary file, where files are written
and renamed.  Afterwards each file is the old one, byte for byte, or whole and new, or absent where there was none; the
pair of release and certificate verifies when both are of one run, and when they are not, ``verify`` says so and which
is the older.  After every fourth kill the same command runs again: it takes the temporaries away and leaves a pair that
verifies.

The process is forked from one that has imported the libraries and run nothing, so that a kill costs no start.  Needs
a system with fork.  Prints what came of the kills, and the seed of every failure; exits 1 when there is one.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numba  # noqa: F401
import numpy as np  # noqa: F401
import polars as pl  # noqa: F401
import scipy.sparse  # noqa: F401

import shoal
import shoal.cli
import shoal.cli.commands
import shoal.publishing.verify

TABLE = "anonymize table.csv --quasi age,town --sensitive ill --k 3 --effort fast --force"
COMMANDS = {
    "anonymize": ("r.csv", f"{TABLE} -o r.csv"),
    "parquet": ("r.parquet", f"{TABLE} --publish ranges -o r.parquet"),
    "tiles": ("r.csv", "tiles points.csv --x x --y y --k 3 --effort fast --force --table r.csv"),
    "regions": ("r.csv", "regions areas.csv edges.csv --weight people --k 20 --effort fast --force -o r.csv"),
}
STALE = "belongs to another version"


def inputs(folder: Path, seed: int) -> None:
    """A table, points, and areas with neighbors; another seed is another content."""
    rng = random.Random(seed)
    lines = ["age,town,ill"] + [f"{rng.randint(20, 60)},{rng.choice('abcd')},{rng.choice('pqr')}" for _ in range(60)]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    lines = ["x,y"] + [f"{rng.random():.4f},{rng.random():.4f}" for _ in range(60)]
    (folder / "points.csv").write_text("\n".join(lines) + "\n")
    side = 5
    lines = ["id,people"] + [f"a{i},{rng.randint(1, 15)}" for i in range(side * side)]
    (folder / "areas.csv").write_text("\n".join(lines) + "\n")
    pairs = [(i, i + 1) for i in range(side * side) if i % side < side - 1]
    pairs += [(i, i + side) for i in range(side * (side - 1))]
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"a{i},a{j}\n" for i, j in pairs))


def started(folder: Path, command: str) -> int:
    """A process that runs a command in a folder."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        os.chdir(folder)
        quiet = os.open(os.devnull, os.O_WRONLY)
        errors = os.open("errors.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(quiet, 1)
        os.dup2(errors, 2)
        sys.argv = ["shoal", *command.split()]
        shoal.cli.main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(status)


def whole(folder: Path, command: str) -> float:
    """Run a command to its end; seconds."""
    began = time.monotonic()
    _, status = os.waitpid(started(folder, command), 0)
    assert status == 0, f"{command}: ended with {status}: {(folder / 'errors.log').read_text()}"
    return time.monotonic() - began


def aside(check: Callable[[], str]) -> str:
    """What a check says, in a process of its own: this one runs nothing that starts threads."""
    read, write = os.pipe()
    process = os.fork()
    if not process:
        try:
            said = check()
        except Exception as error:
            said = f"failed: {type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(process, 0)
    return said


def temporaries(folder: Path) -> list[str]:
    """Files that a dead process of ours has left."""
    return [name for name in os.listdir(folder) if name.startswith(".shoal-")]


def killed(folder: Path, command: str, takes: float, rng: random.Random) -> bool:
    """Whether a command was killed before its end."""
    writing = rng.random() < 0.5
    wait = rng.random() * (0.03 if writing else takes)
    process = started(folder, command)
    gone = 0
    while writing and not gone and not temporaries(folder):
        gone, _ = os.waitpid(process, os.WNOHANG)
        time.sleep(0.0005)
    if not gone:
        time.sleep(wait)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        return os.WIFSIGNALED(status)
    return False


def judged(target: Path, beside: Path) -> str:
    """What ``verify`` says of a pair."""
    try:
        found = shoal.verify(target, beside)
    except shoal.ShoalError as error:
        return f"failed: {error}"
    if found.holds:
        return "holds"
    return " ".join(f.found for f in found.findings if not f.holds)


def one(kind: str, seed: int, made: Path, takes: float) -> str:
    """What one kill left: "old", "none", "new", "between", or "ended"; AssertionError for anything else.

    made  a folder with an older release
    """
    rng = random.Random(seed)
    name, command = COMMANDS[kind]
    with tempfile.TemporaryDirectory(prefix="shoal-kills-") as where:
        folder = Path(where)
        target, beside = folder / name, folder / f"{Path(name).stem}.certificate.json"
        if rng.random() < 0.7:
            for path in (target, beside):
                shutil.copy2(made / path.name, path)
        old = {p: p.read_bytes() if p.exists() else None for p in (target, beside)}
        inputs(folder, seed + 1)
        was = killed(folder, command, takes, rng)
        now = {p: p.read_bytes() if p.exists() else None for p in (target, beside)}
        changed = [p for p in now if now[p] != old[p]]
        if now[target] is None or now[beside] is None:
            assert now[beside] is None, "a certificate without its release"
            came = "none" if now[target] is None else "between"
        else:
            said = aside(lambda: judged(target, beside))
            came = {0: "old", 1: "between", 2: "new"}[len(changed)]
            if came == "between":
                assert changed == [target], "the certificate came first"
                assert STALE in said, f"verify does not say which is stale: {said}"
            else:
                assert said == "holds", f"{came}: {said}"
        if not was:
            assert came == "new"
            came = "ended"
        if seed % 4:
            return came
        whole(folder, command)
        assert not temporaries(folder), "temporaries of the dead stay"
        assert aside(lambda: judged(target, beside)) == "holds", "the next run does not verify"
    return came


def main() -> int:
    """Kill every command by turns."""
    kills, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    failed = 0
    for kind in sys.argv[3:] or COMMANDS:
        with tempfile.TemporaryDirectory(prefix="shoal-kills-") as where:
            made = Path(where)
            inputs(made, first)
            whole(made, COMMANDS[kind][1])  # compiles what is not compiled yet
            takes = whole(made, COMMANDS[kind][1])
            time.sleep(1.1)  # certificates state their time in whole seconds
            seen: Counter[str] = Counter()
            for seed in range(first, first + kills):
                try:
                    came = one(kind, seed, made, takes)
                except AssertionError as error:
                    came = "failed"
                    print(f"{kind}, seed {seed}: {error}", flush=True)
                seen[came] += 1
        print(f"{kind}: {kills} runs from seed {first}, {kills - seen['ended']} killed: {dict(seen)}", flush=True)
        failed += seen["failed"]
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
