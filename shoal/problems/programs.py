"""Solvers for prices and multipliers: linear and integer programs, and the subgradient method.

HiGHS solves the programs. Unlike scipy's function, it releases the interpreter lock while it works.

Prices and Lagrange multipliers move along subgradients of the bound that they prove, by Polyak's rule. A step follows
the smoothed subgradient and aims at a value above the current one, so its length is the difference of the values over
the squared length of the direction. Steps are shortened after some passes in which the bound didn't increase, or by a
constant factor if the number of passes is known (Polyak, "Minimization of unsmooth functionals", 1969).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import highspy
import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

CUT = 0.7
ENUMERATION = 1 << 16  # the rule of presolve that lists the values of small sets of columns; see ``Solver``
NOWHERE = 1e-200  # a direction of at most this squared length is zero


class Solver(highspy.Highs):  # type: ignore[misc]
    """HiGHS without output, without a relative gap, on one thread, so that results are the same on all machines.

    All searches create it here, and use it to add rows and columns to a program (in column generation, or with cuts).
    HiGHS sets its number of threads once per process, and refuses a program that requests another number.

    With the rule ENUMERATION, HiGHS 1.16 loses solutions of integer programs: it calls programs infeasible that have a
    solution.
    """

    def __init__(self, **options: bool | int | float | str) -> None:
        super().__init__()
        own = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "presolve_rule_off": ENUMERATION}
        for name, value in {**own, **options}.items():
            if self.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise ValueError(f"HiGHS takes no {name} = {value}")

    def enableCallbacks(self) -> None:
        """Disable the banner.

        Every HiGHS object calls this first, while it is built; from 1.16 on it prints two lines unless muted.
        """
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()

    def add_rows(self, low: np.ndarray, high: np.ndarray, columns: Sequence[np.ndarray] = ()) -> None:
        """Add rows low <= sum of some columns <= high: float64[r] twice, and the columns of each row.

        Without columns, empty rows.
        """
        start, index = _compressed(columns, len(low))
        lower, upper = np.asarray(low, np.float64), np.asarray(high, np.float64)
        self.addRows(len(low), lower, upper, index.size, start, index, np.ones(index.size))

    def add_columns(
        self, cost: np.ndarray, high: np.ndarray, rows: Sequence[np.ndarray] = (), values: np.ndarray | None = None
    ) -> None:
        """Add columns 0 <= x <= high, float64[c] each, and the rows that contain each, with values, else with 1."""
        start, index = _compressed(rows, len(cost))
        entry, low = np.ones(index.size) if values is None else values, np.zeros(len(cost))
        worth, upper = np.asarray(cost, np.float64), np.asarray(high, np.float64)
        self.addCols(len(cost), worth, low, upper, index.size, start, index, entry)

    def make_whole(self) -> None:
        """Make all current columns integer."""
        n = self.getNumCol()
        kind = np.full(n, int(highspy.HighsVarType.kInteger), np.uint8)
        self.changeColsIntegrality(n, np.arange(n, dtype=np.int32), kind)

    def start_from(self, x: Sequence[float]) -> None:
        """Set a starting solution, float64[n]."""
        known = highspy.HighsSolution()
        known.col_value = list(x)
        self.setSolution(known)

    def limit(self, seconds: float) -> None:
        """Set a time limit for the next run; HiGHS counts the time of all runs."""
        self.setOptionValue("time_limit", self.getRunTime() + seconds)

    def solved(self) -> bool:
        """Run, and return whether the solution is optimal."""
        self.run()
        return bool(self.getModelStatus() == highspy.HighsModelStatus.kOptimal)

    @property
    def infeasible(self) -> bool:
        """Whether the last run proved that there is no solution."""
        return bool(self.getModelStatus() == highspy.HighsModelStatus.kInfeasible)

    @property
    def feasible(self) -> bool:
        """Whether the last run ended with a solution, optimal or not."""
        return bool(self.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible)

    @property
    def x(self) -> np.ndarray:
        """float64[n]: the columns' values."""
        return np.array(self.getSolution().col_value)

    @property
    def duals(self) -> np.ndarray:
        """float64[r]: the rows' dual prices."""
        return np.array(self.getSolution().row_dual)

    @property
    def reduced(self) -> np.ndarray:
        """float64[n]: the columns' reduced costs."""
        return np.array(self.getSolution().col_dual)

    def run(self) -> highspy.HighsStatus:
        """Solve, with the number of threads that other code of this process may have set."""
        status = super().run()
        if status == highspy.HighsStatus.kError and self.getModelStatus() == highspy.HighsModelStatus.kNotset:
            self.setOptionValue("threads", 0)  # the number that is set
            status = super().run()
            if status == highspy.HighsStatus.kError and self.getModelStatus() == highspy.HighsModelStatus.kNotset:
                raise RuntimeError(f"HiGHS {self.version()} refuses to solve a program of {self.getNumCol()} columns")
        if not self._has_stated_cost():
            self.setOptionValue("presolve", "off")
            status = super().run()
            if not self._has_stated_cost():
                raise RuntimeError(f"HiGHS {self.version()} returns a solution that does not have the cost it states")
        return status

    def _has_stated_cost(self) -> bool:
        """Whether the solution of an integer program has the reported cost, or there is none.

        HiGHS 1.16 may return the starting solution if presolve maps it to a better one.
        """
        program = self.getLp()
        if not len(program.integrality_) or self.getInfo().primal_solution_status != 2:
            return True
        cost = float(np.array(program.col_cost_) @ np.array(self.getSolution().col_value)) + program.offset_
        stated = self.getInfo().objective_function_value
        return abs(cost - stated) <= 1e-5 * max(1.0, abs(stated))


def _compressed(parts: Sequence[np.ndarray], many: int) -> tuple[np.ndarray, np.ndarray]:
    """(start int32[many], index int32[..]) of concatenated index sets; all empty if none are given."""
    if not len(parts):
        return np.zeros(many, np.int32), np.zeros(0, np.int32)
    size = np.array([len(part) for part in parts])
    return (np.cumsum(size) - size).astype(np.int32), np.concatenate(parts).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Solved:
    """The result of a program.

    x         float64[n], or None if nothing was found
    bound     a lower bound of the cost
    finished  solved to optimality, or proved infeasible (then x is None)
    """

    x: np.ndarray | None
    bound: float
    finished: bool


@dataclass(frozen=True, eq=False)
class LinearConstraints:
    """low <= matrix x <= high: csr_array[r, n], float64[r] twice."""

    matrix: csr_array
    low: np.ndarray
    high: np.ndarray


def written(
    cost: np.ndarray, rows: LinearConstraints, lower: np.ndarray, upper: np.ndarray, whole: bool | np.ndarray = False
) -> highspy.HighsLp:
    """A program in the form of HiGHS; the arguments are those of ``solve``."""
    program = highspy.HighsLp()
    r, n = rows.matrix.shape
    program.num_col_, program.num_row_ = n, r
    program.col_cost_ = np.asarray(cost, np.float64)
    program.col_lower_, program.col_upper_ = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    program.row_lower_, program.row_upper_ = np.asarray(rows.low, np.float64), np.asarray(rows.high, np.float64)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = rows.matrix.indptr
    program.a_matrix_.index_ = rows.matrix.indices
    program.a_matrix_.value_ = rows.matrix.data
    if np.any(whole):
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        program.integrality_ = [kinds[int(w)] for w in np.broadcast_to(whole, n)]
    return program


def solve(
    cost: np.ndarray,
    rows: LinearConstraints,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    whole: bool | np.ndarray,
    seconds: float | None = None,
    nodes: int | None = None,
    tolerance: float | None = None,
) -> Solved:
    """Minimize cost x with lower <= x <= upper, float64[n] each, with a limit on nodes.

    whole      whether x is integer; bool[n]: which entries are
    tolerance  relative; if given, a first-order method (PDLP) is used, with steps of O(entries of the matrix). A
               factorization can take the square of that: if groups join cells from everywhere, as with stars, its
               factor is dense
    """
    program = written(cost, rows, lower, upper, whole)
    solver = Solver() if tolerance is None else Solver(solver="pdlp", kkt_tolerance=tolerance)
    if seconds is not None:
        solver.setOptionValue("time_limit", max(seconds, 0.01))
    if nodes is not None:
        solver.setOptionValue("mip_max_nodes", nodes)
    solver.passModel(program)
    solver.run()
    status = solver.getModelStatus()
    known = (
        highspy.HighsModelStatus.kOptimal,
        highspy.HighsModelStatus.kInfeasible,
        highspy.HighsModelStatus.kTimeLimit,
        highspy.HighsModelStatus.kSolutionLimit,
    )
    if status not in known and tolerance is None:  # HiGHS 1.15 loses some small programs in postsolve
        solver.setOptionValue("presolve", "off")
        solver.clearSolver()
        solver.run()
        status = solver.getModelStatus()
    info = solver.getInfo()
    x = np.array(solver.getSolution().col_value) if info.primal_solution_status == 2 else None
    bound = info.mip_dual_bound if np.any(whole) else info.objective_function_value
    infeasible = status == highspy.HighsModelStatus.kInfeasible
    done = infeasible or status == highspy.HighsModelStatus.kOptimal
    return Solved(None if infeasible else x, float(bound) if np.isfinite(bound) else -np.inf, done)


def state_of(step: float) -> np.ndarray:
    """float64[3]: largest value so far, step length, passes since the last increase."""
    return np.array([-np.inf, step, 0.0])


def ascend(
    state: np.ndarray, passes: int, patience: float | None, reach: Callable[[float], float], *,
    value: Callable[[], float], direct: Callable[[bool], float], move: Callable[[float], None],
    restart: Callable[[float], bool] = lambda _: False, shrink: float = 1.0,
) -> None:  # fmt: skip
    """Run some passes of the subgradient method from a state, which is changed.

    patience  passes without increase before steps are shortened; None: never
    reach     the value at which a step from the given value aims
    value     evaluates the bound at the point, and stores its subgradient
    direct    smooths the subgradient; its argument is whether the value is the largest so far; returns the squared
              length
    move      moves the point by the direction times a factor
    restart   called after steps were shortened; true: the point was reset to the best one, and this pass ends
    shrink    factor of the step after every pass
    """
    for _ in range(passes):
        found = value()
        risen = found > state[0]
        state[2] = 0.0 if risen else state[2] + 1.0
        if risen:
            state[0] = found
        elif patience is not None and state[2] >= patience:
            state[1] *= CUT
            state[2] = 0.0
            if restart(found):
                continue
        length = direct(risen)
        if length < NOWHERE:
            break
        move(state[1] * reach(found) / length)
        state[1] *= shrink
