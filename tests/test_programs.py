"""HiGHS as shoal begins it: silent, and whatever else its process has done with it."""

from pathlib import Path

import pytest

import shoal
from shoal.problems.programs import Solver
from tests.commands import started

OTHERS = """
import highspy
def theirs(threads):
    other = highspy.Highs()
    other.setOptionValue("output_flag", False)
    other.setOptionValue("threads", threads)
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = 2, 1
    program.col_cost_, program.col_lower_, program.col_upper_ = [-1.0, -2.0], [0.0, 0.0], [9.0, 9.0]
    program.row_lower_, program.row_upper_ = [-highspy.kHighsInf], [7.5]
    program.a_matrix_.start_, program.a_matrix_.index_, program.a_matrix_.value_ = [0, 1, 2], [0, 0], [2.0, 3.0]
    program.integrality_ = [highspy.HighsVarType.kInteger] * 2
    other.passModel(program)
    assert other.run() == highspy.HighsStatus.kOk
"""
SEARCHES = """
import numpy as np
import shoal
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.model.recoding import Recoding
from shoal.problems.tables import group
random = np.random.default_rng(0)
h = Histogram.from_rows(random.integers(0, 4, (60, 4)), random.integers(0, 3, 60))
for k in (2, 3):
    proved = group(h, Requirement(k), recoding=Recoding.stars(h)).certificate
    print(proved.cost == proved.lower_bound, "tables", k)
side = np.arange(60).reshape(6, 10)
grid = [*zip(side[:, :-1].flat, side[:, 1:].flat), *zip(side[:-1].flat, side[1:].flat)]
regions = shoal.regions.merge(grid, random.integers(1, 9, 60), 25)
print(int(regions.labels.max()) + 1 == regions.upper_bound, "regions")
points = random.random((24, 2))
clusters = shoal.gathering.gather(points, 3, method="exact").certificate
print(clusters.cost == clusters.lower_bound, "clusters")
"""
BANNER = ("Running HiGHS", "Includes third-party")  # of the other code's HiGHS, from 1.16 on
PROVED = ["True tables 2", "True tables 3", "True regions", "True clusters"]


def test_searches_prove_as_much_after_other_code_has_chosen_its_threads() -> None:
    """HiGHS keeps the threads of a thread's first program and refuses one that asks for another number."""
    both = f"{OTHERS}theirs(3){SEARCHES}"
    script = f"import threading\nwork = threading.Thread(target=exec, args=({both!r}, {{}}))\nwork.start()\nwork.join()"
    told, wrong = started("-c", script).communicate()
    assert [line for line in told.splitlines() if not line.startswith(BANNER)] == PROVED, wrong


def test_programs_say_nothing_of_their_own() -> None:
    """What a command prints may be read by a program."""
    told, wrong = started("-c", SEARCHES).communicate()
    assert told.splitlines() == PROVED, wrong


def test_all_searches_begin_it_in_one_place() -> None:
    rooms = Path(shoal.__file__).parent
    assert [p.name for p in rooms.rglob("*.py") if "highspy.Highs()" in p.read_text()] == []
    assert [p.name for p in rooms.rglob("*.py") if "highspy.Highs)" in p.read_text()] == ["programs.py"]


def test_an_option_that_it_does_not_take_is_no_option_that_was_set() -> None:
    with pytest.raises(ValueError, match="takes no mip_relative_gap"):
        Solver(mip_relative_gap=0.0)
