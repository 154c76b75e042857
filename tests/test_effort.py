"""One word for how hard to search, the same for every problem, in Python and on the command line."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.model.histogram import Histogram
from tests.commands import run

POINTS = np.random.default_rng(3).random((40, 2)).tolist()
SIZES = [9, 8, 8, 7, 7, 6, 5, 5, 3, 2, 2, 1]
PROBLEMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "labels": (shoal.labels.cover, (SIZES, 10)),
    "intervals": (shoal.intervals.cut, ([1, 2, 3, 10, 11, 30], None, 2)),
    "regions": (shoal.regions.merge, ([(i, i + 1) for i in range(11)], [1] * 12, 3)),
    "tiles": (shoal.tiles.split, (POINTS, 3)),
    "gather": (shoal.gathering.gather, (POINTS, 3)),
    "cellular": (shoal.gathering.cellular, (POINTS, 3)),
    "tables": (shoal.tables.group, (Histogram.from_rows([[0, 0], [0, 0], [0, 1], [1, 1]]), shoal.KAnonymity(2))),
}
FIXED = {  # the first parameters and their defaults, as outside code calls them
    "labels": {"sizes": ..., "k": ..., "method": "auto"},
    "intervals": {"values": ..., "weights": ..., "k": ..., "objective": "max"},
    "regions": {"edges": ..., "weights": ..., "k": ..., "method": "auto"},
    "tiles": {"points": ..., "k": ..., "weights": None, "method": "auto"},
    "gather": {"points": ..., "r": ..., "epsilon": 0.0, "max_clusters": None, "metric": "euclidean"},
    "cellular": {"points": ..., "r": None, "setup_costs": None, "epsilon": 0.0, "max_diameter": None},
    "tables": {"histogram": ..., "privacy": ..., "method": "auto"},
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_takes_its_fixed_arguments_and_an_effort(name: str) -> None:
    asked = inspect.signature(PROBLEMS[name][0]).parameters
    first = {p: ... if asked[p].default is inspect.Parameter.empty else asked[p].default for p in asked}
    assert list(first.items())[: len(FIXED[name])] == list(FIXED[name].items())
    assert (asked["effort"].default, asked["effort"].kind) == ("balanced", inspect.Parameter.KEYWORD_ONLY)
    assert not {"seconds", "time_limit"} & set(asked)


@pytest.mark.parametrize("effort", ["fast", "balanced", "thorough", 0.3, 2, "0.3", np.float32(0.5)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_any_effort_is_taken_and_put_on_record(name: str, effort: Any) -> None:
    call, given = PROBLEMS[name]
    proof = call(*given, effort=effort).certificate
    assert proof.lower_bound <= proof.cost
    if name not in ("intervals", "tables"):  # the first is the least at any; of tables the policy is on record
        told = json.loads(json.dumps(proof.details["run"]["effort"]))
        assert told == (effort if effort in ("fast", "balanced", "thorough") else pytest.approx(float(effort)))


@pytest.mark.parametrize("effort", ["slow", 0, -1, float("nan"), float("inf"), None, True, [], 10**400])
@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_no_effort_is_refused_alike(name: str, effort: Any) -> None:
    call, given = PROBLEMS[name]
    with pytest.raises(shoal.PolicyError, match=r"effort.*fast, balanced|effort.*'fast'|effort \(nor"):
        call(*given, effort=effort)


def test_the_least_cost_cut_is_the_same_at_any_effort() -> None:
    call, given = PROBLEMS["intervals"]
    cuts = [call(*given, effort=e).labels.tolist() for e in ("fast", "thorough", 1e-9)]
    assert cuts[0] == cuts[1] == cuts[2] == call(*given).labels.tolist()


def test_labels_are_searched_as_hard_as_asked() -> None:
    """What no search proves, a counted one may not either, and a long one does."""
    sizes = np.random.default_rng(5).integers(500, 1500, 12).tolist()
    words = ("fast", "balanced", "thorough")
    fast, balanced, thorough = (shoal.labels.cover(sizes, 2000, effort=e).certificate for e in words)
    assert (fast.optimal, balanced.optimal, thorough.optimal) == (False, False, True)
    assert fast.lower_bound <= balanced.lower_bound < thorough.lower_bound


def test_clusters_are_searched_as_hard_as_asked() -> None:
    points = np.random.default_rng(2).random((300, 2))
    quick, long = (shoal.gathering.gather(points, 8, effort=e).radius for e in ("fast", "thorough"))
    assert long < quick
    assert long == shoal.gathering.gather(points, 8, improve=True).radius
    short = shoal.gathering.cellular(points, 5, effort="balanced", seed=1).cost
    timed = shoal.gathering.cellular(points, 5, effort=3, seed=1).cost
    assert timed < short


def test_commands_take_the_same_word(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("name,n,x,y\n" + "\n".join(f"v{i},{s},{i % 4},{i}" for i, s in enumerate(SIZES)))
    asked = {
        "labels": ["--label", "name", "--count", "n", "--k", 10, "--method", "exact"],
        "intervals": ["--value", "x", "--k", 3],
        "tiles": ["--x", "x", "--y", "y", "--k", 3],
        "gather": ["--columns", "x,y", "--r", 3],
        "cellular": ["--columns", "x,y", "--r", 3],
    }
    for command, words in asked.items():
        for effort in ("thorough", "2.5"):
            out = tmp_path / f"{command}.csv"
            run(command, tmp_path / "t.csv", *words, "--effort", effort, "-o", out, "--force", "--json").ok()
            held = json.loads(out.with_suffix(".record.json").read_text())["certificate"]["details"]
            assert command == "intervals" or held["run"]["effort"] == ("thorough" if effort == "thorough" else 2.5)
        run(command, tmp_path / "t.csv", *words, "--effort", "lots").refused(2, "'lots' is not an effort")
    run("labels", tmp_path / "t.csv", *asked["labels"], "--time-limit", 5).refused(2, "here this is --effort")
