"""Prices and Lagrange multipliers moved along subgradients of the bound that they prove, by Polyak's rule.

A step goes along the smoothed subgradient and aims at a value above the one there is, so its length is what is missing
over the squared length of the direction.  Steps are cut after some passes in which the bound did not rise, or shrink
evenly where the number of passes is known (Polyak, "Minimization of unsmooth functionals", 1969).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

CUT = 0.7
NOWHERE = 1e-200  # squared length of a direction that leads nowhere


def state_of(step: float) -> np.ndarray:
    """float64[3]: largest value so far, length of steps, passes since the value rose."""
    return np.array([-np.inf, step, 0.0])


def ascend(
    state: np.ndarray, passes: int, patience: float | None, reach: Callable[[float], float], *,
    value: Callable[[], float], direct: Callable[[bool], float], move: Callable[[float], None],
    restart: Callable[[float], bool] = lambda _: False, shrink: float = 1.0,
) -> None:  # fmt: skip
    """Some passes from a state, which is changed.

    patience  passes in vain before steps are cut; None: they are not
    reach     how far above a value a step aims
    value     what the point proves, its subgradient kept
    direct    smooths the subgradient; gets whether the value is the largest so far, and gives the squared length
    move      the point, by the direction times a factor
    restart   asked where steps were just cut; true: the point is the best again, and its pass is over
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
