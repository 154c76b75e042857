"""Every setting of tiles, mixed, under every method, against all partitions there are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InfeasibleError, PolicyError
from shoal.problems.catalogue import names
from shoal.problems.tiles import split
from tests.oracles import tiles_limited as oracle

METHODS = ["auto", *names("tiles")]


@st.composite
def requests(draw):
    """Rows (x, y, value, person, household, weight), their sides, and settings."""
    n = draw(st.integers(1, 10))
    rows = [
        (draw(st.integers(0, 3)), draw(st.integers(0, 3)), draw(st.integers(0, 2)), draw(st.integers(0, 6)),
         draw(st.integers(0, 4)), 1)
        for _ in range(n)
    ]  # fmt: skip
    units = draw(st.sampled_from([(), (), (), (3,), (4,), (3, 4)]))
    if not units and draw(st.booleans()):
        rows = [(*r[:5], draw(st.integers(0, 3))) for r in rows]
    sides = [draw(st.integers(0, 1)) for _ in rows] if draw(st.booleans()) else [0] * n
    diversity = draw(st.sampled_from([None, "l", "distinct_l"]))
    if units and diversity == "l":
        diversity = "distinct_l"
    return {
        "rows": rows,
        "sides": sides,
        "bounded": len(set(sides)) > 1,
        "k": draw(st.integers(1, 4)),
        "units": units,
        "l": draw(st.sampled_from([1, 1.5, 2, 3])) if diversity == "l" else None,
        "distinct_l": draw(st.integers(1, 3)) if diversity == "distinct_l" else None,
        "width": draw(st.sampled_from([None, None, 1.5, 2.5, 4])),
        "grid": draw(st.sampled_from([None, None, 1, 2, 0.5])),
        "leave_out": draw(st.booleans()),
        "objective": draw(st.sampled_from(["tiles", "max", "perimeter", "sumsq"])),
        "extent": draw(st.sampled_from([None, "data"])),
        "center": draw(st.sampled_from(["mean", "mean", "draw"])),
        "rule": draw(st.sampled_from(["widest", "median", "least_waste"])),
    }


def asked(r, method):
    rows = r["rows"]
    return split(
        [row[:2] for row in rows],
        r["k"],
        None if r["units"] else [row[5] for row in rows],
        method,
        objective=r["objective"],
        rule=r["rule"] if method == "kd_tree" else "widest",
        boundary=[f"s{s}" for s in r["sides"]] if r["bounded"] else None,
        sensitive=[f"v{row[2]}" for row in rows] if r["l"] or r["distinct_l"] else None,
        l=r["l"],
        distinct_l=r["distinct_l"],
        person=[row[3] for row in rows] if 3 in r["units"] else None,
        household=[row[4] for row in rows] if 4 in r["units"] else None,
        max_width=r["width"],
        grid=r["grid"],
        extent=r["extent"],
        center=r["center"],
        sparse="leave-out" if r["leave_out"] else "refuse",
        seed=1 if r["center"] == "draw" else None,
    )


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None, max_examples=70)
@given(r=requests())
def test_every_setting_is_obeyed_and_the_bounds_hold(method, r):
    def ok(rows):
        return oracle.fits(rows, r["k"], r["l"], r["distinct_l"], r["units"], r["width"], r["grid"])

    sides = [f"s{s}" for s in r["sides"]]
    found = oracle.best(r["rows"], sides, r["grid"], r["leave_out"], ok)
    limited = r["l"] or r["distinct_l"] or r["units"] or r["width"]
    try:
        tiles = asked(r, method)
    except PolicyError:
        assert method == "proportional"
        assert limited
        return
    except InfeasibleError as error:
        said = str(error)
        if r["leave_out"]:
            assert found is None or found[1] == 0 or method not in ("best_cuts", "auto") or "fewer than k" in said
        elif "found no tiles" not in said and "guillotine" not in said:
            assert found is None, "refused as infeasible, and a partition exists"
        return
    assert found is not None
    lost, most, heavy = found
    oracle.check(r["rows"], sides, tiles, grid=r["grid"], width=r["width"], leave_out=r["leave_out"], ok=ok)
    facts = tiles.certificate.details
    assert len(tiles) <= most <= facts["tiles_at_most"]
    given_up = sum(row[5] for row, label in zip(r["rows"], tiles.labels, strict=True) if label < 0)
    assert given_up == facts.get("left_out", 0)
    assert given_up >= lost
    assert tiles.certificate.lower_bound <= heavy
    assert r["leave_out"] or heavy <= tiles.cost
    factor = tiles.certificate.guarantee.factor
    assert factor is None or tiles.cost <= factor * heavy
    if limited:
        assert factor is None


@settings(deadline=None, max_examples=60)
@given(r=requests())
def test_best_cuts_is_the_best_of_all_straight_cuts_under_limits(r):
    r["rows"] = r["rows"][:8]
    r["sides"] = r["sides"][:8]
    r["bounded"] = len(set(r["sides"])) > 1
    r["width"] = r["width"] or 3.5  # so that the program over all rectangles runs
    goal = r["objective"] = r["objective"] if r["objective"] in ("max", "sumsq") else "tiles"

    def ok(rows):
        return oracle.fits(rows, r["k"], r["l"], r["distinct_l"], r["units"], r["width"], r["grid"])

    expected = oracle.straight(r["rows"], r["sides"], r["grid"], r["leave_out"], ok, goal)
    try:
        tiles = asked(r, "best_cuts")
    except InfeasibleError:
        assert expected is None or (r["leave_out"] and expected[1] == 0)
        return
    assert expected is not None
    lost = sum(row[5] for row, label in zip(r["rows"], tiles.labels, strict=True) if label < 0)
    squares = tiles.certificate.details["squares"]
    assert (lost, {"max": tiles.cost, "sumsq": squares}.get(goal, -len(tiles))) == expected


OF_METHOD = {"kd_tree": "rule", "best_cuts": "exact_among", "least_waste": "blocks", "proportional": "window"}


@pytest.mark.parametrize("method", METHODS)
def test_under_every_method_a_boundary_parts_tiles_and_the_facts_of_the_method_stay(method):
    points = [(x / 8, y / 7) for x in range(8) for y in range(7)]
    side = ["west" if x < 0.5 else "east" for x, _ in points]
    found = split(points, 5, method=method, effort="fast", boundary=side)
    assert all(len({side[i] for i, t in enumerate(found.labels) if t == tile}) == 1 for tile in range(len(found)))
    assert found.certificate.details["sides_of_the_boundary"] == 2
    assert OF_METHOD.get(method, "tiles") in found.certificate.details


def test_a_width_below_what_floats_distinguish_is_refused() -> None:
    far = [[2.0**63 + 4096 * (i % 4), i % 3] for i in range(24)]
    with pytest.raises(PolicyError, match="max_width=5 is less than floats distinguish at coordinates as large"):
        split(far, 3, max_width=5.0)
    assert len(split(far, 3, max_width=20_000.0).counts) >= 1
