"""Signals during a search: heard within a second, and nobody gets an answer as if nothing had happened."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

import shoal
from shoal.kernels import njit
from shoal.threads import BackgroundCalls, flag, interruptible
from tests.commands import started

HEARD = 20  # times what a yardstick takes, about a tenth of a second; both in seconds of one processor
TICKS = os.sysconf("SC_CLK_TCK")
BEGIN = """
import sys, threading, time
import numpy as np, shoal
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.model.recoding import Levels, Ranges, Recoding
from shoal.problems.tables import group
random = np.random.default_rng(0)
def table(n, kind, d=4):
    h = Histogram.from_rows(random.integers(0, 30, (n, d)), random.integers(0, 9, n))
    make = {"stars": Levels.stars, "range": lambda s: Ranges.of(np.arange(s) * 1.0),
            "tree": lambda s: Levels.tree(np.stack([np.arange(s), np.arange(s) // 5, np.arange(s) * 0]))}[kind]
    return h, Recoding(tuple(make(s) for s in h.quasi_sizes), "stars" if kind == "stars" else "ncp")
def tables(n, kind, effort):
    h, recoding = table(n, kind)
    return lambda: group(h, Requirement(5, (3,), (1,)), recoding=recoding, effort=effort, seed=0)
side = 120
at = np.arange(side * side).reshape(side, side)
sideways = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], 1)
grid = np.concatenate([sideways, np.stack([at[:-1].ravel(), at[1:].ravel()], 1)])
weights = random.integers(1, 99, side * side)
points = random.random((60_000, 2))
heavy = (random.pareto(1.1, 40) * 1000).astype(int) + 7
"""
SEARCHES = {
    "stars": "tables(20_000, 'stars', 'thorough')",
    "ranges": "tables(3_000, 'range', 'thorough')",
    "hierarchy": "tables(20_000, 'tree', 60)",
    "regions": "lambda: shoal.regions.merge(grid, weights, 500, effort='thorough')",
    "tiles": "lambda: shoal.tiles.split(points, 20, effort='thorough')",
    "gather": "lambda: shoal.gathering.gather(points, 10, 0.01, 2000)",
    "cellular": "lambda: shoal.gathering.cellular(points, 10, effort='thorough')",
    "labels": "lambda: shoal.labels.cover(heavy, int(heavy.sum() // 9), 'exact', effort=60)",
}
AFTER = """
began = time.process_time()
sum(range(5_000_000))
print(time.process_time() - began, flush=True)
for kind in ("stars", "range", "tree"):  # all that is imported is there before the first signal
    tables(60, kind, "fast")()
shoal.regions.merge([(0, 1), (1, 2)], [5, 5, 5], 5), shoal.tiles.split(points[:50], 5)
shoal.gathering.gather(points[:30], 5), shoal.gathering.cellular(points[:30], 5), shoal.labels.cover([3, 4, 5], 6)
for search in iter(sys.stdin.readline, ""):
    search = eval(search)
    threading.Timer(0.3, lambda: print("ready", flush=True)).start()
    try:
        while True:
            search()
    except KeyboardInterrupt:
        print("heard", flush=True)
sys.exit(7)
"""


@pytest.fixture(scope="module")
def searching() -> Iterator[tuple[subprocess.Popen[str], float]]:
    """A process that runs one search after the other, as it is told, and can leave after all; and its yardstick."""
    child = started("-X", "faulthandler", "-c", BEGIN + AFTER)
    assert child.stdout is not None
    complaint = ""
    try:
        yield child, float(child.stdout.readline())
        complaint = child.communicate(timeout=200)[1]  # a search that heard no signal goes on for ever
    finally:
        child.kill()
    assert child.returncode == 7, complaint


def spent(process: subprocess.Popen[str]) -> float:
    """Seconds of one processor that it has had of all there are: what a machine does beside it adds nothing."""
    used = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, used)) / TICKS / (os.cpu_count() or 1)


@pytest.mark.parametrize("which", SEARCHES)
def test_ctrl_c_is_heard_in_the_middle_of_a_search(which: str, searching: tuple[subprocess.Popen[str], float]) -> None:
    child, yardstick = searching
    assert child.stdin is not None
    assert child.stdout is not None
    print(SEARCHES[which], file=child.stdin, flush=True)
    assert child.stdout.readline() == "ready\n"
    began = spent(child)
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "heard\n", f"ended with {child.wait()}"
    assert spent(child) - began < HEARD * yardstick


COMMAND = """
import sys, threading
from shoal import threads
begin = threads.in_a_thread
def search(work):
    threading.Timer(0.5, lambda: print("ready", flush=True)).start()
    return begin(work)
threads.in_a_thread = search
from shoal.cli import main
main()
"""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)], ids=lambda v: str(int(v))
)
def test_the_command_ends_with_its_status_and_writes_nothing(tmp_path: Path, number: signal.Signals, status: int):
    if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("nohup runs the tests")
    random = np.random.default_rng(0)
    rows = "\n".join(",".join(map(str, row)) for row in random.integers(0, 40, (4_000, 4)))
    (tmp_path / "in.csv").write_text(f"a,b,c,d\n{rows}\n")
    asked = ["--quasi", "a,b,c", "--sensitive", "d", "--k", 5, "--l", 2, "--effort", 600]
    child = started("-c", COMMAND, "anonymize", "in.csv", *asked, "-o", "out.csv", cwd=tmp_path)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(number)
        message = child.communicate()[1]
        assert child.returncode == status
        assert "interrupted; no file is half written" in message
        assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv"]
    finally:
        child.kill()
        child.communicate()


LOADING = """
import os, signal, sys
class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.{number})
sys.meta_path.insert(0, Pressed())
from shoal.cli import main
main()
"""


@pytest.mark.parametrize(
    ("number", "status", "module"),
    [
        (signal.SIGINT, 130, "shoal.cli.verify"),
        (signal.SIGTERM, 143, "shoal.cli.verify"),
        (signal.SIGINT, 130, "typer"),
    ],
)
def test_the_command_may_be_stopped_while_it_is_loaded(number: signal.Signals, status: int, module: str) -> None:
    child = started("-c", LOADING.format(number=number.name, module=module), "--version")
    message = child.communicate()[1]
    assert child.returncode == status
    assert message.strip() == "shoal: interrupted; no file is half written"


CHANGED = """
import os, signal
from shoal import cli
def native(*_, **__):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise TypeError("what a callback of native code made of it") from None
import shoal.engines.open
shoal.engines.open.open_table = native
cli.main()
"""


def test_an_interruption_that_native_code_makes_another_error_of_is_no_defect(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,b\n1,2\n1,2\n")
    child = started("-c", CHANGED, "audit", "in.csv", "--quasi", "a", cwd=tmp_path)
    message = child.communicate()[1]
    assert (child.returncode, message.strip()) == (130, "shoal: interrupted; no file is half written")


def test_an_interrupted_search_is_told_to_stop_and_no_answer_is_handed_back():
    seen, ended = [], threading.Event()

    @interruptible
    def search() -> str:
        seen.append(flag())
        os.kill(os.getpid(), signal.SIGINT)
        try:
            while True:
                time.sleep(0.01)
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        search()
    assert seen[0].is_set()
    assert ended.wait()


class Pressed(event.Listener):
    """Presses Ctrl-C when a kernel begins to be compiled."""

    def on_start(self, event: event.Event) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def on_end(self, event: event.Event) -> None:
        pass


@pytest.mark.parametrize("where", [interruptible, lambda called: called], ids=["in a search", "in the main thread"])
def test_an_interrupt_leaves_no_kernel_compiled_in_part(where: Any):
    """Code that is linked in part crashes the process when the next kernel is loaded."""

    def outer(number: int) -> int:
        return inner(number) + 1

    inner, kernel = njit()(lambda number: number + 1), njit()(outer)
    went_on = []

    @where
    def call() -> None:
        kernel(1)
        went_on.append(True)

    with event.install_listener("numba:compile", Pressed()), pytest.raises(KeyboardInterrupt):
        call()
    with global_compiler_lock:  # the thread that compiles has it until the kernel is complete
        assert len(kernel.overloads) == len(inner.overloads) == 1
    assert not went_on
    assert kernel(1) == 3


def test_errors_and_answers_come_through_and_inner_searches_stay_in_their_thread():
    @interruptible
    def inner() -> threading.Thread:
        return threading.current_thread()

    @interruptible
    def outer() -> tuple[threading.Thread, threading.Thread]:
        return threading.current_thread(), inner()

    here, there = outer()
    assert here is there is not threading.main_thread()

    @interruptible
    def wrong() -> None:
        raise ValueError("as told")

    with pytest.raises(ValueError, match="as told"):
        wrong()


POOLS = """
import threading, time
from shoal.threads import Interrupt, SearchThreads, _raise_in
def work():
    while True:
        with SearchThreads(1) as pool:
            pool.submit(int).result()
for _ in range(60):
    search = threading.Thread(target=work, daemon=True)
    search.start()
    time.sleep(0.002)
    _raise_in(search, Interrupt())
    search.join()
with SearchThreads(1) as pool:
    print(pool.submit(int).result(), "left hanging")
"""


def test_what_interrupts_a_search_does_not_hit_a_thread_that_it_is_beginning():
    """It would wait for that thread for ever, holding a lock that every pool of the process needs."""
    child = started("-c", POOLS)
    try:
        told, _ = child.communicate(timeout=200)
    finally:
        child.kill()
    assert told.endswith("0 left hanging\n")


def test_no_library_begins_threads_of_its_own_in_a_search(monkeypatch: pytest.MonkeyPatch):
    """After an interrupt they would go on with arrays that no longer exist, and crash the process."""
    begin, begun = threading.Thread.start, []

    def start(thread: threading.Thread) -> None:
        begun.append(thread.name)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    points = np.random.default_rng(0).random((3_000, 2))
    shoal.gathering.gather(points, 5)
    shoal.gathering.gather(points, 5, 0.01, 200)
    shoal.gathering.cellular(points, 5)
    assert begun
    assert {name.split("-")[0] for name in begun} <= {"shoal search", "ThreadPoolExecutor"}


def test_work_that_does_not_end_in_its_seconds_is_not_waited_for():
    end = threading.Event()
    with BackgroundCalls() as run:
        deaf, quick = run.start(lambda _stop: end.wait()), run.start(lambda stop: stop)
        assert run.first(deaf, quick) is quick
        assert run.first(None, deaf, seconds=0.0) is None
        assert not quick.result().is_set()
    assert quick.result().is_set()
    assert not deaf.done()
    end.set()


def test_searches_begin_threads_in_no_other_way():
    rooms = Path(shoal.__file__).parent / "problems"
    others = [
        p.name for p in rooms.rglob("*.py") if "ThreadPoolExecutor(" in p.read_text() or "Thread(" in p.read_text()
    ]
    assert others == []
