"""Linear and integer programs by HiGHS, which releases the interpreter while it works; scipy's own call does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import highspy
import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Solver(highspy.Highs):  # type: ignore[misc]
    """HiGHS without output, without a relative gap, on one thread: the same again on any machine.

    All searches begin it here.  HiGHS counts its threads once for a whole process, and refuses a program that asks for
    another number.
    """

    def __init__(self, **options: bool | int | float | str) -> None:
        super().__init__()
        for name, value in {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, **options}.items():
            if self.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise ValueError(f"HiGHS takes no {name} = {value}")

    def enableCallbacks(self) -> None:
        """The first call of any HiGHS object, made while it is built: from 1.16 on it prints two lines unless muted."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()

    def run(self) -> highspy.HighsStatus:
        """Solve; what other code of this process has made of the threads is taken as it is."""
        status = super().run()
        if status == highspy.HighsStatus.kError and self.getModelStatus() == highspy.HighsModelStatus.kNotset:
            self.setOptionValue("threads", 0)  # whatever there is
            status = super().run()
            if status == highspy.HighsStatus.kError and self.getModelStatus() == highspy.HighsModelStatus.kNotset:
                raise RuntimeError(f"HiGHS {self.version()} refuses to solve a program of {self.getNumCol()} columns")
        if not self._is_its_own():
            self.setOptionValue("presolve", "off")
            status = super().run()
            if not self._is_its_own():
                raise RuntimeError(f"HiGHS {self.version()} returns a solution that does not have the cost it states")
        return status

    def _is_its_own(self) -> bool:
        """Whether the solution of an integer program costs what HiGHS says, or there is none.

        HiGHS 1.16 may hand back the solution that it was begun with, where presolve maps it to a better one.
        """
        program = self.getLp()
        if not len(program.integrality_) or self.getInfo().primal_solution_status != 2:
            return True
        cost = float(np.array(program.col_cost_) @ np.array(self.getSolution().col_value)) + program.offset_
        stated = self.getInfo().objective_function_value
        return abs(cost - stated) <= 1e-5 * max(1.0, abs(stated))


@dataclass(frozen=True, eq=False)
class Solved:
    """What came out.

    x         float64[n], or None where nothing was found
    bound     no solution costs less
    finished  solved to the end, or proved infeasible (then x is None)
    """

    x: np.ndarray | None
    bound: float
    finished: bool


@dataclass(frozen=True, eq=False)
class Constraints:
    """low <= matrix x <= high: csr_array[r, n], float64[r] twice."""

    matrix: csr_array
    low: np.ndarray
    high: np.ndarray


def solve(
    cost: np.ndarray,
    rows: Constraints,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    whole: bool,
    seconds: float | None = None,
    nodes: int | None = None,
    inside: bool = False,
) -> Solved:
    """Least cost x with lower <= x <= upper, float64[n] each; whole numbers if asked for, by at most so many nodes.

    inside  by an interior point method without crossover: x is near the middle of the best ones
    """
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
    if whole:
        program.integrality_ = [highspy.HighsVarType.kInteger] * n
    solver = Solver(solver="ipm", run_crossover="off") if inside else Solver()
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
    if status not in known:  # HiGHS 1.15 loses some small programs on the way back from presolve
        solver.setOptionValue("presolve", "off")
        solver.clearSolver()
        solver.run()
        status = solver.getModelStatus()
    info = solver.getInfo()
    x = np.array(solver.getSolution().col_value) if info.primal_solution_status == 2 else None
    bound = info.mip_dual_bound if whole else info.objective_function_value
    infeasible = status == highspy.HighsModelStatus.kInfeasible
    done = infeasible or status == highspy.HighsModelStatus.kOptimal
    return Solved(None if infeasible else x, float(bound) if np.isfinite(bound) else -np.inf, done)
