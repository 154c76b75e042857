"""When a subgradient method keeps what it has, and when its steps become shorter."""

from __future__ import annotations

from shoal.kernels import INNER, njit

CUT = 0.7


def risen(state, value, patience):
    """Whether a value is the largest so far; steps are cut after so many that are not.

    state float64[3]  in and out: largest value so far, length of steps, passes since it rose
    """
    if value > state[0]:
        state[0], state[2] = value, 0.0
        return True
    state[2] += 1.0
    if state[2] >= patience:
        state[1] *= CUT
        state[2] = 0.0
    return False


rises = njit(**INNER)(risen)
