"""What is left out of small graphs' work changes no answer: moments, scipy's components, dives in vain."""

import threading

import networkx
import numpy as np
import pytest

from shoal.kernels import plain
from shoal.kernels.regions.areas import Areas, workspace
from shoal.kernels.regions.recombine import COUNT, OVER, SQUARES, Cooling, ObjectiveAndLimits, _recombine
from shoal.problems.regions import packing
from shoal.problems.regions.packing import _Master
from shoal.problems.regions.task import components, graph


def _pairs(side: int) -> list[tuple[int, int]]:
    drawn = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(side, side))
    return list(drawn.edges)


@pytest.mark.parametrize("form", [COUNT, SQUARES, OVER])
def test_weights_alone_are_searched_alike_with_and_without_moments(form):
    g = graph(_pairs(6), 36)
    weights = np.random.default_rng(3).integers(1, 20, (36, 1))
    ends = []
    for moments in (None, np.zeros((0, 4))):
        areas = Areas(g.indptr, g.indices, weights, np.array([30]), 1)
        aim = ObjectiveAndLimits(form, 30.0, 45.0, np.zeros((0, 4)), 2**62, 12)
        label, state = np.arange(36) // 12, np.array([7], np.uint64)
        room = workspace(36, len(g.indices) // 2, 1, 0, 4)
        with np.errstate(over="ignore"):
            plain(_recombine)(areas, aim, moments, Cooling(400, 1.0, 0.1), label, state, room)
        ends.append((label.tolist(), int(state[0])))
    assert ends[0] == ends[1]
    assert ends[0][0] != (np.arange(36) // 12).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_components_are_those_of_networkx_numbered_by_their_first_vertex(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 40))
    other = networkx.gnm_random_graph(n, int(rng.integers(0, n + 1)), seed=seed)
    count, label = components(graph(list(other.edges), n))
    sets = sorted(map(sorted, networkx.connected_components(other)))
    assert count == len(sets)
    assert [np.flatnonzero(label == c).tolist() for c in range(count)] == sets


def test_a_dive_for_more_sets_than_there_can_be_ends_at_once():
    master = _Master(5)
    for v in range(5):  # a cycle of five has room for two of its pairs, two and a half by the program
        assert master.add_set(np.array([v, (v + 1) % 5]))
    solved = []
    solve = master.solve
    master.solve = lambda: (solved.append(1), solve())
    assert master.dived(3, 300) is None
    assert len(solved) <= 4
    assert len(master.dived(2, 300)) == 2


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_the_first_dive_in_order_is_the_answer_on_any_number_of_cores(cores, monkeypatch):
    begun, second = [], threading.Event()

    def dive(model, basis, wanted, number, stop):
        begun.append(number)
        if number == 2:  # in vain, like the first
            second.wait(10 if cores > 1 else 0)
        if number == 3:
            second.set()
        return packing._Dive(np.eye(9)[number] if number > 1 else None, 1)

    monkeypatch.setattr(packing, "_dive", dive)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert packing.dived(_Master(1).highs, 1, 100).tolist() == np.eye(9)[2].tolist()
    assert cores > 1 or begun == [0, 1, 2]


def test_dives_end_after_so_many_programs(monkeypatch):
    begun = []

    def dive(model, basis, wanted, number, stop):
        begun.append(number)
        return packing._Dive(None, 10)

    monkeypatch.setattr(packing, "_dive", dive)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert packing.dived(_Master(1).highs, 1, 45) is None
    assert begun == [0, 1, 2, 3, 4]


def test_a_dive_ends_at_a_packing_from_either_start():
    master = _Master(7)
    for v in range(7):  # a cycle of seven has room for three of its pairs
        assert master.add_set(np.array([v, (v + 1) % 7]))
    master.solve()
    model, basis = master.highs.getModel(), master.highs.getBasis()
    for number in range(6):
        shares = packing._dive(model, basis, 3, number, threading.Event()).shares
        assert shares is not None
        chosen = [v for s in np.flatnonzero(shares > 0.5) for v in master.sets[s].tolist()]
        assert len(chosen) == len(set(chosen)) == 6
        assert packing._dive(model, basis, 4, number, threading.Event()).shares is None
