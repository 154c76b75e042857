"""Multipliers for t-closeness and for largest shares: never above the optimum, on all levels of a lattice or on
some."""

import numpy as np
import pytest

from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity, TCloseness, requirement, restore
from shoal.model.recoding import Recoding
from shoal.model.task import Task
from shoal.problems.tables.bounds import class_program
from shoal.problems.tables.bounds.bounds import lower_bounds
from shoal.problems.tables.bounds.class_program import UNIT, Multipliers, build, chain, price, shares_column
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.search.open_close import flow_start
from tests.amount import thinned
from tests.oracles.tables import least_loss
from tests.tables.drawn import KINDS, census_like, few, total

MODELS = {
    "t": lambda pick: ("TCloseness", {"t": float(pick([0.0, 0.1, 0.2, 0.3, 0.4])), "distance": "equal"}),
    "alpha": lambda pick: ("AlphaKAnonymity", {"alpha": float(pick([0.55, 0.6, 0.67, 0.75])), "k": 1}),
    "beta": lambda pick: ("BetaLikeness", {"beta": float(pick([0.2, 0.5, 1.0])), "enhanced": False}),
}


def drawn(random: np.random.Generator, name: str) -> tuple[Task, tuple] | None:
    asked = MODELS[name](random.choice)
    model, values = restore({"model": asked[0], **asked[1]}), int(random.integers(2, 4))
    need = lambda table: requirement([model], table.sensitive_names, table)  # noqa: E731
    task = few(random, (3, 8), (1, 2), values, need, ("stars", "tree", "tree", "heavy"))
    return task and (task, asked)


@pytest.mark.diagonal
@pytest.mark.parametrize("most", [class_program.LARGEST, 40])
@pytest.mark.parametrize("name", MODELS)
def test_no_multipliers_prove_more_than_the_optimum(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_program, "LARGEST", most)
    random = np.random.default_rng(3)
    tried = tight = 0
    while tried < thinned(60):
        found = drawn(random, name)
        if found is None:
            continue
        task, asked = found
        j = shares_column(task)
        if j is None:
            continue
        best = least_loss(task.histogram, task.requirement, task.recoding, asked)
        walked = price(task)
        draws = [walked.multiplier, 0 * walked.multiplier, np.full(walked.multiplier.size, walked.program.arcs.most)]
        for top in (0.05, 1.0, 30.0):
            draws.append(random.integers(0, int(top * UNIT), walked.multiplier.size))
            draws.append(draws[-1] * (random.random(walked.multiplier.size) < 0.3))
            draws.append(
                walked.multiplier + (walked.multiplier * random.random(walked.multiplier.size) * top).astype(np.int64)
            )
        for multiplier in draws:
            multiplier = np.minimum(multiplier, walked.program.arcs.most)
            proved = walked.program.bound(multiplier)
            assert proved <= (best + 1e-6) * UNIT
            assert total(task, Multipliers(walked.program, multiplier, proved, np.zeros(0)).value(task)) <= best + 1e-9
        tried += 1
        tight += total(task, walked.value(task)) >= best * (1 - 1e-3)
    assert tight > tried / 15


def test_levels_left_out_are_stood_for_by_cheaper_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Histogram.from_rows(np.arange(8).reshape(4, 2) % 4, np.array([0, 1, 0, 1]))
    task = Task(found, requirement([TCloseness(0.1)], ["s0"], found), Recoding((KINDS["tree"](), KINDS["heavy"]())))
    every, whole = chain(task)
    assert whole
    assert every.heights == (3, 3)
    monkeypatch.setattr(class_program, "LARGEST", 16)
    some, whole = chain(task)
    assert not whole
    assert some.nodes * found.cells <= 16
    for j, (full, loss) in enumerate(zip(every.loss, some.loss, strict=True)):
        assert (some.up[j][-1] == every.up[j][-1]).all()
        assert (loss[0] == 0).all()  # nothing below the first level kept may cost more than the values themselves
        assert (loss[-1] <= full[-1]).all()


def test_closeness_proves_more_than_its_size_and_number_of_values() -> None:
    histogram = census_like(1500, 3, columns=4)
    need = requirement([KAnonymity(5), TCloseness(0.2)], histogram.sensitive_names, histogram)
    task = Task(histogram, need, Recoding.stars(histogram), seed=1)
    bounds = lower_bounds(task)
    assert bounds.best[0] == "close classes"
    assert bounds.values["close classes"] > bounds.values["multipliers"]
    others = (v for name, v in bounds.values.items() if name not in ("close classes", "multipliers"))
    assert bounds.values["multipliers"] > 1.1 * max(others)
    assert (build(task, 0).arcs.top == np.ceil((0.2 + 2e-9) * histogram.rows)).all()
    assert flow_start(task, Rows.of(task), bounds.multipliers) is None  # what fills classes by frequency alone
