"""What regions may be asked for besides thresholds, against exhaustive search with the options mixed."""

import random
from itertools import combinations
from math import dist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InfeasibleError, PolicyError
from shoal.problems.regions import merge
from shoal.problems.regions.sets import Pool
from tests.data import squares
from tests.oracles.regions import connected, meets

PATH = [(i, i + 1) for i in range(7)]


def choices(n, edges, weights, ks, allowed):
    """Every set of disjoint connected regions of 0..n-1 that meet the thresholds and are allowed; () among them."""
    regions = [
        set(r)
        for size in range(1, n + 1)
        for r in combinations(range(n), size)
        if meets(r, weights, ks) and connected(r, edges) and allowed(r)
    ]

    def extend(start, taken):
        yield []
        for i in range(start, len(regions)):
            if not regions[i] & taken:
                for rest in extend(i + 1, taken | regions[i]):
                    yield [regions[i], *rest]

    return extend(0, set())


@st.composite
def asked(draw):
    """A small connected graph and options of every kind."""
    n = draw(st.integers(3, 7))
    edges = {(draw(st.integers(0, i - 1)), i) for i in range(1, n)}
    edges |= {
        tuple(sorted(e)) for e in draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=4))
    }
    edges = sorted((a, b) for a, b in edges if a != b)
    two = draw(st.booleans())
    weights = draw(st.lists(st.lists(st.integers(0, 6), min_size=1 + two, max_size=1 + two), min_size=n, max_size=n))
    ks = [draw(st.integers(1, 8)), *([draw(st.integers(1, 5))] if two else [])]
    pick = lambda values: st.none() | st.lists(values, min_size=n, max_size=n)  # noqa: E731
    return {
        "n": n, "edges": edges, "weights": weights, "ks": ks,
        "exclude": draw(pick(st.sampled_from([False, False, False, True]))),
        "boundary": draw(pick(st.sampled_from("aaab"))),
        "apart": draw(pick(st.sampled_from(["", "", "u", "v"]))),
        "fixed": draw(st.none() | st.sampled_from(edges)),
        "at_most": draw(st.none() | st.integers(ks[0], ks[0] + 13)),
        "areas": draw(st.none() | st.integers(2, 5)),
        "objective": draw(st.sampled_from(["count", "max", "sumsq", "similar"])),
        "places": draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=n, max_size=n)),
        "widest": draw(st.none() | st.sampled_from([1.0, 1.5, 2.9])),
        "regions": draw(st.none() | st.integers(1, 4)),
        "values": draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)),
        "method": draw(st.sampled_from(["exact", "auto", "search"])),
        "water": _dried(weights, draw(pick(st.sampled_from([False, False, True])))),
        "soft": draw(pick(st.sampled_from("aab"))),
        "cases": draw(st.none() | st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=n, max_size=n)),
        "l": 2,
    }  # fmt: skip


def _dried(weights, water):
    """Water, where nobody lives; in place."""
    for v in range(len(weights)):
        if water and water[v]:
            weights[v][:] = [0] * len(weights[v])
    return water if water and any(water) else None


def pieces(nodes, edges):
    """The sets in which nodes hang together."""
    found, left = [], list(nodes)
    while left:
        piece = {left[0]}
        while more := {v for e in edges for v in e if piece & set(e) and v in left} - piece:
            piece |= more
        found.append(piece)
        left = [v for v in left if v not in piece]
    return found


def rules(case):
    """Whether a set of areas may be a region, and the options as merge takes them."""
    n, w = case["n"], [row[0] for row in case["weights"]]
    options = {"objective": case["objective"], "exclude": case["exclude"], "boundary": case["boundary"]}
    wet = {v for v in range(n) if case["water"] and case["water"][v]}
    options |= {"apart": case["apart"] and ["" if v in wet else a for v, a in enumerate(case["apart"])]}
    options |= {"water": case["water"]}
    pair = case["fixed"] if case["widest"] is None and not wet & set(case["fixed"] or ()) else None
    if case["objective"] == "similar":
        options["similar"] = case["values"]
    if case["widest"] is not None:
        options |= {"max_diameter": case["widest"], "coordinates": case["places"], "geographic": False}
    if pair and case["exclude"] and any(case["exclude"][v] for v in pair):
        pair = None
    if pair and case["boundary"] and case["boundary"][pair[0]] != case["boundary"][pair[1]]:
        pair = None
    if pair and options["apart"] and "" != options["apart"][pair[0]] == options["apart"][pair[1]]:
        pair = None
    if pair and case["soft"] and case["soft"][pair[0]] != case["soft"][pair[1]]:
        pair = None
    if case["widest"] is not None:
        case["soft"] = None
    if case["soft"]:
        options["soft_boundary"] = case["soft"]
    if case["cases"]:
        case["cases"] = [(0, 0) if v in wet else c for v, c in enumerate(case["cases"])]
        options |= {"sensitive": case["cases"], "l": case["l"]}
    options["fixed"] = None if pair is None else ["x" if v in pair else "" for v in range(n)]
    most = {}
    if case["at_most"]:
        most["people"] = (w, case["at_most"])
    if case["areas"]:
        most["areas"] = ([1] * n, case["areas"])
    options["at_most"] = most or None
    if case["widest"] is None and not most and case["apart"] is None:
        options["regions"] = case["regions"]

    near, light = softened(case, wet)
    land = [v for v in range(n) if v not in wet and not (case["exclude"] and case["exclude"][v])]
    side = case["boundary"] or [0] * n
    lost = set().union(*(  # components that are no region as a whole hold none: l may be met by parts of them
        p for p in pieces(land, [(a, b) for a, b in near if a in land and b in land and side[a] == side[b]])
        if case["cases"] and not meets(tuple(p), case["weights"], case["ks"], case["cases"], case["l"])
    ))  # fmt: skip

    def allowed(r, swims=False):
        if (case["exclude"] and any(case["exclude"][v] for v in r)) or (not swims and wet & set(r)):
            return False
        if case["boundary"] and len({case["boundary"][v] for v in r}) > 1:
            return False
        if pair and len(set(pair) & set(r)) == 1:
            return False
        if swims and case["soft"] and {case["soft"][v] for v in wet & set(r)} - {case["soft"][v] for v in set(r) - wet}:
            return False  # water crosses no soft boundary
        if not swims and (not connected(r, near) or any(piece & set(r) and not piece <= set(r) for piece in light)):
            return False
        if lost & set(r) or (case["cases"] and not meets(r, [()] * n, (), case["cases"], case["l"])):
            return False
        if len(r) == 1 or (pair and set(r) == set(pair)):
            return True
        if case["widest"] is not None and any(dist(case["places"][a], case["places"][b]) > case["widest"]
                                              for a, b in combinations(r, 2)):  # fmt: skip
            return False
        if case["apart"] and any(sum(options["apart"][v] == a for v in r) > 1 for a in "uv"):
            return False
        return all(sum(values[v] for v in r) <= limit for values, limit in most.values())

    return allowed, options


def softened(case, wet):
    """Edges that soft boundaries leave, and the sets inside them that are too light to be a region and stay whole."""
    if case["soft"] is None:
        return case["edges"], []
    n = case["n"]
    zone = [None if v in wet or (case["exclude"] and case["exclude"][v]) else
            (case["soft"][v], case["boundary"] and case["boundary"][v]) for v in range(n)]  # fmt: skip
    inside = [(a, b) for a, b in case["edges"] if zone[a] == zone[b] is not None]
    whole = pieces([v for v in range(n) if zone[v] is not None], inside)
    light = [p for p in whole if not meets(tuple(p), case["weights"], case["ks"], case["cases"], case["l"])]
    loose = set().union(*light)
    return [(a, b) for a, b in case["edges"] if (a, b) in inside or {a, b} & loose], light


def rank(case, regions):
    """What is to be least: weight left out, areas left out, the objective."""
    w = [row[0] for row in case["weights"]]
    held = set().union(*regions)
    sums = [sum(w[v] for v in r) for r in regions]
    each = {"count": -len(regions), "max": max(sums, default=0), "sumsq": sum(s * s for s in sums)}
    last = (
        each[case["objective"]] if case["objective"] != "similar" else (-len(regions), round(spread(case, regions), 9))
    )
    return sum(w) - sum(w[v] for v in held), case["n"] - len(held), last


def spread(case, regions):
    """Weighted squares about the means of the regions, in units of the deviation of all areas."""
    x = np.array(case["values"], float)
    w = np.array([max(row[0], max(1, np.mean([r[0] for r in case["weights"]])) * 1e-6) for row in case["weights"]])
    about = lambda at: float((w[at] * (x[at] - np.average(x[at], weights=w[at])) ** 2).sum())  # noqa: E731
    whole = about(np.arange(case["n"])) / w.sum()
    return sum(about(sorted(r)) for r in regions) / whole if whole > 0 else 0.0


def dry(case, regions, allowed):
    """The land of regions; water must be in one that may have it, from shore to shore, or find none beside it."""
    wet = {v for v in range(case["n"]) if case["water"] and case["water"][v] and not (case["exclude"] or [0] * 9)[v]}
    near = {v: {a + b - v for a, b in case["edges"] if v in (a, b)} for v in wet}
    for r in regions:
        assert connected(tuple(r), case["edges"])
        assert not r & wet or allowed(tuple(sorted(r)), True)
    for v in wet - set().union(*regions):
        assert not any(r & near[v] and allowed(tuple(sorted(r | {v})), True) for r in regions)
    return [r - wet for r in regions]


@settings(max_examples=60, deadline=None)
@given(case=asked())
def test_options_mixed_against_every_choice(case):
    allowed, options = rules(case)
    every = [c for c in choices(case["n"], case["edges"], case["weights"], case["ks"], allowed) if c]
    k = case["ks"] if len(case["ks"]) > 1 else case["ks"][0]
    weights = case["weights"] if len(case["ks"]) > 1 else [row[0] for row in case["weights"]]
    if any(limit < least and list(values) == [row[j] for row in case["weights"]]
           for values, limit in (options["at_most"] or {}).values() for j, least in enumerate(case["ks"])):  # fmt: skip
        with pytest.raises(PolicyError, match="below k"):  # every area weighs one, and most are fewer than k
            merge(case["edges"], weights, k, case["method"], seed=1, effort="fast", **options)
        return
    number = options.get("regions")
    if number is not None:  # of all that can be placed, and no other number
        placed = min((rank(case, c)[:2] for c in every), default=None)
        every = [c for c in every if rank(case, c)[:2] == placed and len(c) == number]
    try:
        found = merge(case["edges"], weights, k, case["method"], seed=1, effort="fast", **options)
    except InfeasibleError as refusal:
        missed = number is not None and case["method"] == "search" and "were found" in str(refusal)
        assert missed or not every
        return
    whole_ = [set(np.flatnonzero(found.labels == r).tolist()) for r in range(found.regions)]
    assert found.sizes.tolist() == [len(r) for r in whole_]
    regions = dry(case, whole_, allowed)
    assert all(meets(tuple(r), case["weights"], case["ks"]) and connected(r, case["edges"]) for r in regions)
    assert all(allowed(tuple(sorted(r))) for r in regions)
    assert found.upper_bound >= max(len(c) for c in every)
    assert number is None or found.regions == number
    if case["objective"] == "count" and number is None:
        assert found.cost == (found.labels >= 0).sum() - found.regions >= found.certificate.lower_bound
    whole = spread(case, [set().union(*whole_)]) if case["objective"] == "similar" and whole_ else 0
    if whole > 1e-9:
        share = found.certificate.details["variance_inside"]
        assert share == pytest.approx(spread(case, whole_) / whole, abs=1e-9)
    best = min(rank(case, c) for c in every)
    own = rank(case, regions)
    assert own >= best
    alike = [c for c in every if rank(case, c)[:2] == own[:2]]
    heaviest = min(max(sum(case["weights"][v][0] for v in r) for r in c) for c in alike)
    assert found.largest_bound <= heaviest
    assert found.squares_bound <= min(sum(sum(case["weights"][v][0] for v in r) ** 2 for r in c) for c in alike)
    if case["method"] != "search":
        limited = options["at_most"] or options["apart"] or case["widest"] is not None
        assert own == best if limited or case["method"] == "exact" else own[:2] == best[:2]


def test_an_area_above_the_maximum_is_alone():
    found = merge(PATH[:4], [3, 3, 50, 3, 3], 5, at_most={"people": ([3, 3, 50, 3, 3], 10)}, seed=1)
    assert found.labels.tolist() == [0, 0, 1, 2, 2]
    assert found.certificate.details["above_a_maximum_alone"] == 1


def test_what_no_region_can_take_stays_out():
    found = merge(PATH[:2], [5, 1, 5], 5, at_most={"areas": ([1, 1, 1], 1)}, seed=1)
    assert found.labels.tolist() == [0, -1, 1]
    with pytest.raises(InfeasibleError, match="under the maxima no area"):
        merge(PATH[:2], [3, 3, 3], 5, at_most={"areas": ([1, 1, 1], 1)}, seed=1)


def test_a_maximum_of_a_weight_below_its_threshold_is_a_contradiction():
    """Of the weight itself; of another column it is a maximum like any."""
    two = [(5, 1), (3, 2), (3, 4)]
    with pytest.raises(PolicyError, match=r"at most 3 of 'beds' is below k = 4.*raise it, or lower k"):
        merge(PATH[:2], two, (5, 4), at_most={"beds": ([1, 2, 4], 3)}, seed=1)
    assert merge(PATH[:2], two, (5, 4), at_most={"beds": ([1, 2, 3], 9)}, seed=1).regions == 1
    assert merge(PATH[:2], [5, 5, 5], 5, at_most={"rooms": ([1, 1, 9], 4)}, seed=1).regions == 3


def test_the_tree_refuses_maxima_by_name():
    with pytest.raises(PolicyError, match="method 'tree' keeps no maximum"):
        merge(PATH[:2], [5, 5, 5], 5, "tree", at_most={"people": ([5, 5, 5], 9)})
    fixed = merge(PATH[:2], [5, 5, 5], 5, "tree", fixed=["a", "a", ""])
    assert fixed.labels.tolist() == [0, 0, 1]


def test_areas_fixed_together_must_hang_together():
    """A region could hold what lies between as well, so that is no proof that none exists."""
    with pytest.raises(PolicyError, match="a set of areas fixed together is not connected"):
        merge(PATH[:2], [5, 5, 5], 5, fixed=["a", "", "a"])


@pytest.mark.parametrize("method", ["tree", "search", "exact", "auto"])
def test_soft_boundaries_are_crossed_only_for_what_is_too_light(method):
    """Counties a (two regions), b (too light, stays whole), c (one region)."""
    weights, county = [5, 5, 1, 1, 3, 3], list("aabbcc")
    found = merge(PATH[:5], weights, 5, method, soft_boundary=county, seed=1)
    assert (found.labels >= 0).all()
    assert found.labels[2] == found.labels[3]
    assert found.certificate.details["regions_across_soft_boundaries"] == 1
    mixed = [{county[i] for i in np.flatnonzero(found.labels == r)} for r in range(found.regions)]
    assert sum(len(m) > 1 for m in mixed) == 1
    alone = merge(PATH[:5], [5, 5, 3, 3, 3, 3], 5, method, soft_boundary=county, objective="count", seed=1)
    assert alone.certificate.details["regions_across_soft_boundaries"] == 0
    assert alone.regions == 4


def test_maxima_on_a_map_that_is_too_large_to_list():
    rng = np.random.default_rng(3)
    people = rng.integers(1, 40, 16 * 16)
    most = {"people": (people, 130), "areas": (np.ones_like(people), 9)}
    found = merge(squares(16), people, 60, at_most=most, effort="fast", seed=1)
    assert found.weights.min() >= 60
    assert found.weights.max() <= 130
    assert found.sizes.max() <= 9
    assert (found.labels < 0).mean() < 0.01
    assert found.regions <= found.upper_bound
    assert found.regions > 0.75 * found.upper_bound


@pytest.mark.parametrize("method", ["exact", "search", "auto"])
def test_areas_that_would_make_a_region_less_diverse_stay_out(method):
    """Area 4 is too far away, and area 2 with its one case would then stand alone beside regions without any."""
    star, places = [(0, 1), (0, 2), (0, 3), (0, 4)], [(0, 0), (0, 0), (0, 0), (0, 0), (0, 2)]
    cases = [(0, 0), (0, 0), (0, 1), (0, 0), (1, 0)]
    options = {"max_diameter": 1.0, "coordinates": places, "geographic": False, "sensitive": cases, "l": 2}
    found = merge(star, [0, 0, 0, 1, 0], 1, method, seed=1, effort="fast", **options)
    assert found.labels.tolist() == [0, 0, -1, 0, -1]


@pytest.mark.parametrize("method", ["exact", "search", "auto"])
def test_soft_boundaries_hold_where_fewer_regions_are_asked_for_and_on_water(method):
    """Two counties of two regions each are never one region; water of a third county goes to neither."""
    two = merge(PATH[:3], [5, 5, 5, 5], 5, method, soft_boundary=list("aabb"), regions=2, seed=1)
    assert two.labels.tolist() == [0, 0, 1, 1]
    with pytest.raises(InfeasibleError):
        merge(PATH[:3], [5, 5, 5, 5], 5, method, soft_boundary=list("aabb"), regions=1, seed=1)
    wet = merge(PATH[:2], [5, 0, 5], 5, method, soft_boundary=list("acb"), water=[False, True, False], seed=1)
    assert wet.labels.tolist() == [0, -1, 1]


@pytest.mark.parametrize(
    ("values", "share"),
    [
        ([7.0] * 4, 0.0),
        ([0.0, 0.0, 5.0, 5.0], 0.0),
        ([0.0, 2.0, 4.0, 6.0], 0.2),  # 1 within each pair, 5 in all
        (
            [[0.0, 1.0], [2.0, 1.0], [4.0, 9.0], [6.0, 9.0]],
            0.1,
        ),  # the second column adds nothing within, as much in all
    ],
)
def test_the_variance_inside_regions_is_a_share_of_all(values, share):
    found = merge([(0, 1), (1, 2), (2, 3)], [2, 2, 2, 2], k=4, similar=values, seed=1)
    assert found.labels.tolist() == [0, 0, 1, 1]
    assert found.certificate.details["variance_inside"] == pytest.approx(share)


@pytest.mark.parametrize("seed", range(8))
def test_no_area_is_left_out_for_which_a_region_beside_it_has_room(seed):
    draw, n = random.Random(seed), 50
    edges = [(i, draw.randrange(max(0, i - 3), i)) for i in range(1, n)]
    weights = [draw.randint(1, 4) for _ in range(n)]
    found = merge(edges, weights, 7, "search", at_most={"people": (weights, 8)}, seed=1, effort="fast")
    left = np.flatnonzero(found.labels < 0)
    assert left.size
    for area in left.tolist():
        beside = {found.labels[a + b - area] for a, b in edges if area in (a, b)} - {-1}
        assert all(sum(np.array(weights)[found.labels == r]) + weights[area] > 8 for r in beside)


def test_runs_under_limits_solve_no_program_over_what_they_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only their regions are wanted, and the programs would take most of the time."""
    side = 12
    places = [(i % side, i // side) for i in range(side * side)]
    near = {"max_diameter": 2.5, "coordinates": places, "geographic": False}
    weights = np.random.default_rng(3).integers(1, 100, side * side)
    monkeypatch.setattr(Pool, "partition", lambda *_: pytest.fail("a program was begun"))
    assert merge(squares(side), weights, 200, "search", effort="fast", seed=1, **near).regions > 20
