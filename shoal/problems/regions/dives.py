"""A packing from a linear program: sets are taken one after another, dive after dive, as many at a time as there are
cores.

Which set a dive takes next is drawn, so dives end in different places.  Every other dive sets out from another answer
of the program, its best at worths of the sets drawn a little off one: from some answers no dive gets there.  Each has
randomness of its own, and the first in their order that gets there is the answer: the same on any number of cores.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from functools import partial
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from shoal.problems.beside import Beside

_WHOLE = 1e-7  # how far from zero or one a set's share may lie
_SHORT = 1e-6  # how far below the number wanted a sum of shares may
_OFF = 0.02  # how far from one a worth is drawn


class _Dive(NamedTuple):
    """float64[c] the shares where it got there, and how many linear programs it took."""

    shares: np.ndarray | None
    programs: int


def whole(shares: np.ndarray) -> bool:
    """Whether every set is taken or not."""
    return len(shares) > 0 and bool((np.minimum(shares, np.abs(1 - shares)) < _WHOLE).all())


def dived(solved: Any, wanted: int, most: int) -> np.ndarray | None:
    """float64[c] of zeros and ones that sum to ``wanted`` at least, or None.

    solved  a solved program: least sum of - y under rows, y >= 0
    most    linear programs, about
    """
    model, basis = solved.getModel(), solved.getBasis()
    ahead: deque[Future[_Dive]] = deque()
    begun = programs = 0
    with Beside() as beside:
        while programs <= most:
            while sum(not dive.done() for dive in ahead) < beside.cores:
                ahead.append(beside.start(partial(_dive, model, basis, wanted, begun)))
                begun += 1
            if not ahead[0].done():
                beside.first(*(dive for dive in ahead if not dive.done()))
                continue
            dive = ahead.popleft().result()
            if dive.shares is not None:
                return dive.shares
            programs += dive.programs
    return None


def _dive(model: Any, basis: Any, wanted: int, number: int, stop: Event) -> _Dive:
    """One dive.  A set that leaves too little is left out instead; where that leaves too little too, the dive ends."""
    import highspy

    from shoal.problems.programs import Solver

    least = wanted - _SHORT
    highs = Solver(dual_simplex_cost_perturbation_multiplier=0.0)
    highs.passModel(model)
    highs.setBasis(basis)
    draws, programs, count = np.random.default_rng(number), 0, model.lp_.num_col_
    if number % 2:
        highs.changeColsCost(count, np.arange(count, dtype=np.int32), -draws.uniform(1 - _OFF, 1 + _OFF, count))
    else:
        highs.setOptionValue("objective_bound", -least)  # where it falls short the program ends sooner

    def shares() -> np.ndarray | None:
        nonlocal programs
        programs += 1
        highs.run()
        found = np.array(highs.getSolution().col_value)
        return found if highs.getModelStatus() == highspy.HighsModelStatus.kOptimal and found.sum() > least else None

    held = shares()
    while held is not None and not whole(held) and not stop.is_set():
        open_ = np.flatnonzero((held > _WHOLE) & (held < 1 - _WHOLE))
        taken = int(open_[np.argmax(held[open_] * draws.random(len(open_)))])
        for bound in (1.0, 0.0):
            highs.changeColBounds(taken, bound, bound)
            held = shares()
            if held is not None:
                break
    return _Dive(held if held is not None and whole(held) else None, programs)
