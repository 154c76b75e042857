"""A bent policy, hierarchy or map is refused in words or read; its words hold no value of a table."""

import json
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.engines import geography
from shoal.model.hierarchy import Hierarchy
from tests.fuzz import inputs


@pytest.mark.parametrize("kind", ["policy", "hierarchy", "geojson"])
def test_only_clear_refusals_come_back(tmp_path: Path, kind: str) -> None:
    came = [getattr(inputs, kind)(seed, tmp_path) for seed in range(60)]
    assert {"read", "refused"} == set(came)


def test_the_marker_would_be_seen() -> None:
    def tells() -> None:
        raise inputs.ShoalError(f"the value {inputs.MARKER}7 is odd")

    with pytest.raises(AssertionError):
        inputs.outcome(tells)


def mapped(path: Path, properties: list[dict[str, Any]], far: float = 1.0) -> geography.Geography:
    """Two triangles of a GeoJSON file, the second ``far`` away."""
    rings = [[[0, 0], [1, 0], [0, 1], [0, 0]], [[1, 0], [far, 1], [0, 1], [1, 0]]]
    held = [
        {"type": "Feature", "properties": p, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for p, ring in zip(properties, rings, strict=True)
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": held}))
    return geography.read(path)


@pytest.mark.parametrize("far", [1e308, -1e308, 1e200, 1e20])
def test_coordinates_beyond_every_map_are_refused(tmp_path: Path, far: float) -> None:
    named: list[dict[str, Any]] = [{"id": "a"}, {"id": "b"}]
    assert mapped(tmp_path / "m.geojson", named, 1e15).ids == ("a", "b")
    with pytest.raises(shoal.InputError, match="a coordinate is beyond 1e"):
        mapped(tmp_path / "m.geojson", named, far)


def test_areas_without_any_property_are_refused(tmp_path: Path) -> None:
    with pytest.raises(shoal.InputError, match=r"the features of m\.geojson have no property"):
        mapped(tmp_path / "m.geojson", [{}, {}])


@pytest.mark.parametrize("empty", [{}, {"id": None}, {"id": ""}, {"id": " "}, {"id": float("nan")}, {"people": 3}])
@pytest.mark.parametrize("first", [True, False])
def test_an_outline_without_an_id_is_refused_and_never_an_area_called_none(
    tmp_path: Path, empty: dict[str, Any], first: bool
) -> None:
    held = [{"id": "b"}, empty]
    with pytest.raises(shoal.InputError, match=r"property 'id' is empty in 1 feature of m\.geojson; give each area"):
        mapped(tmp_path / "m.geojson", held[::-1] if first else held)


@pytest.mark.parametrize("reader", ["whole", "number"])
def test_a_property_that_is_no_number_is_not_shown(tmp_path: Path, reader: str) -> None:
    found = mapped(tmp_path / "m.geojson", [{"id": "a", "n": 1}, {"id": "b", "n": {"note": inputs.MARKER}}])
    with pytest.raises(shoal.InputError, match="column 'n' of area 'b' is not a") as told:
        getattr(found, reader)("n")
    assert inputs.MARKER not in str(told.value)


def test_levels_that_are_not_nested_are_told_by_row(tmp_path: Path) -> None:
    """A class may be called like a value of the table."""
    value = f"{inputs.MARKER}4"
    rows = [["a", "low", "any"], ["b", "high", "any"], ["c", "low", value]]
    path = tmp_path / "h.csv"
    path.write_text("".join(";".join(row) + "\n" for row in rows))
    for source in (rows, path):
        with pytest.raises(shoal.PolicyError, match=r"at level 1 lies in two .* level 2, see rows 1 and 3") as told:
            Hierarchy.of(source)
        assert not any(word in str(told.value) for word in (value, "'low'", "'any'"))
    with pytest.raises(shoal.PolicyError, match="not nested") as told:
        Hierarchy.tree({"any": {value: {"low": ["a"]}, "other": {"low": ["c"]}}})
    assert value not in str(told.value)
    assert "rows" not in str(told.value)
