"""The integer program over some columns of a class program, by HiGHS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Event

import highspy
import numpy as np
from scipy.sparse import csr_array

from shoal.problems.programs import Solver
from shoal.problems.tables.exact.pattern_model import Model

NEARBY = ("rins", "rens", "root_reduced_cost")  # programs of their own around the solutions known


def program_of(
    model: Model, cols: np.ndarray, lines: csr_array, rows: np.ndarray, whole: Sequence[bool] | np.ndarray
) -> highspy.HighsLp:
    """Some columns and lines for HiGHS; ``lines`` is the matrix of just these."""
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = cols.size, rows.size
    program.col_cost_, program.col_lower_, program.col_upper_ = model.cost[cols], np.zeros(cols.size), model.most[cols]
    program.row_lower_, program.row_upper_ = model.low[rows], model.high[rows]
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_, program.a_matrix_.index_ = lines.indptr, lines.indices
    program.a_matrix_.value_ = lines.data
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    program.integrality_ = [kinds[int(w)] for w in whole]
    return program


def decide(
    model: Model,
    cols: np.ndarray,
    seconds: float,
    begin: np.ndarray | None,
    gap: float,
    *,
    improves: bool = True,
    seed: int = 0,
    stop: Event | None = None,
) -> tuple[np.ndarray | None, float]:
    """(solution over these columns or None, bound on all of them) of the integer program within some seconds.

    improves  whether time goes into better solutions near those known; without it a proof takes about half as long
    seed      of the solver's random numbers
    stop      ends the search when set
    """
    part = csr_array(model.lines[:, cols])
    rows = np.flatnonzero((np.diff(part.indptr) > 0) & ((model.owner >= 0) | (model.low > 0)))
    if np.setdiff1d(np.flatnonzero((model.owner < 0) & (model.low > 0)), rows).size:
        return None, math.inf  # some rows could not be published at all
    part = csr_array(part[rows])
    program = program_of(model, cols, part, rows, model.whole[cols])
    solver = Solver()
    solver.setOptionValue("mip_abs_gap", gap)
    solver.setOptionValue("mip_allow_restart", False)  # most proofs end at the root
    solver.setOptionValue("time_limit", seconds)
    solver.setOptionValue("random_seed", seed)
    if not seed:  # a second proof branches the other way, so that one of them may be quick
        solver.setOptionValue("mip_pscost_minreliable", 0)  # trials of branches took most of the time
    solver.setOptionValue("mip_pool_age_limit", 5)  # cuts that have not cut lately make every node slower
    if not improves:
        solver.setOptionValue("mip_heuristic_effort", 0.0)
        for part_of_it in NEARBY:
            solver.setOptionValue(f"mip_heuristic_run_{part_of_it}", False)
    if stop is not None:
        solver.cbMipInterrupt += lambda event: event.interrupt() if stop.is_set() else None
    solver.passModel(program)
    if begin is not None:
        solution = highspy.HighsSolution()
        solution.col_value = begin.tolist()
        solver.setSolution(solution)
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return None, math.inf
    info = solver.getInfo()
    bound = float(info.mip_dual_bound) if np.isfinite(info.mip_dual_bound) else -math.inf
    if info.primal_solution_status != 2:
        return None, bound
    y = np.array(solver.getSolution().col_value)
    if status == highspy.HighsModelStatus.kOptimal:
        bound = max(bound, float(info.objective_function_value) - gap)
    return flowed(model, program, cols, y), bound


def flowed(model: Model, program: highspy.HighsLp, cols: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A solution whose rows are whole: with the integers fixed a corner of what is left, which is a flow."""
    if np.abs(y - np.rint(y)).max(initial=0.0) < 1e-6:
        return y
    fixed = model.whole[cols]
    low, high = np.zeros(cols.size), model.most[cols].copy()
    low[fixed] = high[fixed] = np.rint(y[fixed])
    program.col_lower_, program.col_upper_ = low, high
    program.integrality_ = []
    solver = Solver()
    solver.setOptionValue("solver", "simplex")
    solver.passModel(program)
    solver.run()
    return np.array(solver.getSolution().col_value)
