"""The clock that searches go by."""

import time
from threading import Thread

import numpy as np
from numba import njit

import shoal.kernels  # noqa: F401 - tells the clock when something is compiled
from shoal import clock as module
from shoal.clock import clock, hold, release, standing


def test_the_clock_goes_on_and_stands_while_it_is_held_by_anyone():
    real, before = time.monotonic(), clock()
    with standing():
        held = clock()
        with standing():
            time.sleep(0.02)
        assert clock() == held >= before
        other = Thread(target=lambda: (hold(), release()))
        other.start()
        other.join()
        assert clock() == held
    after = clock()
    assert held <= after <= before + (time.monotonic() - real) - 0.02
    assert not module._held


def test_compiling_costs_no_second_of_a_budget():
    @njit
    def fresh(values):
        total = 0.0
        for value in values:
            total += value
        return total

    stood = module._stood
    assert fresh(np.ones(3)) == 3.0
    compiled = module._stood
    assert compiled > stood
    fresh(np.ones(3))
    assert module._stood == compiled
    assert not module._held
