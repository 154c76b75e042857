"""Loops run by Python answer like the compiled ones, and only where they take less time than compiling."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from shoal import kernels
from shoal.kernels.gathering.clusters import distance
from shoal.kernels.tables.lattice import publish
from shoal.kernels.tables.three_phase import phase_one
from shoal.model.histogram import Histogram
from shoal.model.privacy import DistinctLDiversity, KAnonymity, LDiversity
from shoal.problems import gathering, regions, tables
from tests.amount import ALL

WAYS = {"python": lambda kernel: False, "machine": lambda kernel: True}


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the first process on a machine."""
    for name in ("_spent", "_here", "_files"):
        monkeypatch.setattr(kernels, name, {})
    monkeypatch.setattr(kernels, "_seconds_file", lambda kernel: None)


def both(monkeypatch, work):  # type: ignore[no-untyped-def]
    """The work done by Python's loops, then by the compiled ones; how often Python's were asked for."""
    answers, asked = [], []
    made = kernels.plain
    monkeypatch.setattr(kernels, "plain", lambda kernel: asked.append(kernel) or made(kernel))
    for way in WAYS.values():
        monkeypatch.setattr(kernels, "_compiled", way)
        forget(monkeypatch)
        answers.append(work())
        if way is WAYS["python"]:
            used = {kernel.py_func.__name__ for kernel in asked}
    return *answers, used


@pytest.mark.parametrize("seed", range(3))
def test_regions_are_merged_alike(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    at = np.arange(36).reshape(6, 6)
    across = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
    edges = np.concatenate([across, np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1)])
    weights = np.random.default_rng(seed).integers(0, 9, (36, 2))
    python, machine, used = both(monkeypatch, lambda: regions.merge(edges, weights, [20, 15], "tree", seed=seed))
    assert (python.labels == machine.labels).all()
    assert python.certificate == machine.certificate
    assert {"deep_tree", "preorder", "cut", "dependent_weights"} <= used


@pytest.mark.parametrize("seed", range(6 if ALL else 3))
def test_tables_are_grouped_alike(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random = np.random.default_rng(seed)
    n = 60 + 40 * seed
    quasi = np.stack([random.integers(0, size, n) for size in (9, 5, 2)], axis=1)
    sensitive = random.choice(6, (n, 1), p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1])
    histogram = Histogram.from_rows(quasi, sensitive)
    models = [[KAnonymity(4)], [KAnonymity(5), LDiversity(3)], [KAnonymity(3), DistinctLDiversity(3)]][seed % 3]

    def work() -> tuple[float, bytes, bytes, float]:
        made = tables.group(histogram, models, effort="fast", seed=1)
        parts = made.partition
        return made.certificate.cost, parts.group.tobytes(), parts.count.tobytes(), made.certificate.lower_bound

    python, machine, used = both(monkeypatch, work)
    assert python == machine
    assert {"publish", "sweep"} <= used


@pytest.mark.parametrize("problem", [gathering.gather, partial(gathering.cellular, effort="fast", seed=1)])
@pytest.mark.parametrize("rounded", [False, True])
def test_points_are_clustered_alike(monkeypatch: pytest.MonkeyPatch, problem, rounded: bool) -> None:  # type: ignore[no-untyped-def]
    points = np.random.default_rng(7).normal(size=(150, 2))
    points = np.round(points, 1) if rounded else points

    def work() -> tuple[bytes, float]:
        made = problem(points, 4)
        return made.labels.tobytes(), made.certificate.lower_bound

    python, machine, used = both(monkeypatch, work)
    assert python == machine
    assert "nearest_records" in used


def test_python_gives_way_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch)
    monkeypatch.setattr(kernels, "_compiled", WAYS["python"])
    monkeypatch.setattr(kernels.time, "thread_time", iter([0.0, 0.3, 1.0, 1.6]).__next__)
    size, steps = np.zeros(1, np.int64), 0.5 * kernels.SECONDS / kernels.PACE
    for _ in range(2):  # 0.3 of its seconds, then 0.6 more
        kernels.quick(phase_one, steps)(np.array([0, 0]), size[:0], 2, 2, 1, size[:0])
    assert kernels.quick(phase_one, steps) is phase_one
    assert kernels.quick(phase_one, steps / 10) is not phase_one
    assert kernels.quick(publish, np.inf) is publish
    assert kernels.quick(publish, 1) is not publish  # what was refused is not counted


def test_python_gives_way_after_several_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept, size = tmp_path / "new" / "phase_one.seconds", np.zeros(1, np.int64)
    monkeypatch.setattr(kernels, "_compiled", WAYS["python"])
    calls = 0
    while calls < 50:  # a process each, of 0.6 seconds
        forget(monkeypatch)
        monkeypatch.setattr(kernels, "_seconds_file", lambda kernel: kept)
        monkeypatch.setattr(kernels.time, "thread_time", iter([0.0, 0.6]).__next__)
        loops = kernels.quick(phase_one, 1)
        if loops is phase_one:
            break
        loops(np.array([0, 0]), size[:0], 2, 2, 1, size[:0])
        kernels._keep()
        calls += 1
    assert calls == kernels.ALL_SECONDS // 0.6
    kept.write_text("no number")
    forget(monkeypatch)
    monkeypatch.setattr(kernels, "_seconds_file", lambda kernel: kept)
    assert kernels.quick(phase_one, 1) is not phase_one


def test_what_is_compiled_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch)
    size = np.zeros(1, np.int64)
    phase_one(np.array([0, 0]), size[:0], 2, 2, 1, size[:0])
    assert kernels.quick(phase_one, 1) is phase_one


def test_constants_make_no_kernel_of_their_own() -> None:
    """-1 and x are one signature: were they two, ``fits`` alone would be compiled four times."""
    from shoal.kernels.tables.near_groups import fits

    made = tables.group(
        Histogram.from_rows(np.arange(40).reshape(-1, 1) % 7, np.arange(40).reshape(-1, 1) % 5),
        [KAnonymity(3), LDiversity(2)], "improve", seed=1,
    )  # fmt: skip
    assert made.certificate.cost >= 0
    for kernel in (fits, distance):
        assert not any("iteral" in str(kind) for signature in kernel.overloads for kind in signature)
