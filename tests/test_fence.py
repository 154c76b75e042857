"""The fence stands, and an import over it is seen."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import fence

ROOT = Path(__file__).parents[1]


def test_no_room_imports_what_it_may_not():
    assert list(fence.breaches(ROOT / "shoal")) == []


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("judge", "from shoal.problems.tables import group"),
        ("judge", "def f():\n    import shoal.kernels.tables.three_phase"),
        ("model", "import polars"),
        ("problems/labels", "from shoal import tiles"),
        ("kernels", "from ..model import policy"),
        ("kernels/tiles", "from shoal.kernels.tables import three_phase"),
        ("problems/tiles", "from shoal.problems import tables"),
        ("report", "import numbaX"),
    ],
)
def test_a_breach_is_named_with_its_line(tmp_path, room, line):
    place = tmp_path / room
    place.mkdir(parents=True)
    (place / "wrong.py").write_text(line + "\n", encoding="utf-8")
    found = list(fence.breaches(tmp_path))
    assert len(found) == 1
    assert room in found[0]
    assert "wrong.py" in found[0]


def test_no_kernel_takes_more_arguments_than_a_reader_keeps_apart():
    assert list(fence.crowded(ROOT / "shoal")) == []


def test_a_kernel_of_nine_arguments_is_named_with_its_line(tmp_path):
    (tmp_path / "kernels").mkdir()
    lines = ["@njit(**INNER)", "def _eight(a, b, c, d, e, f, g, h):", "    pass", "@njit(cache=True)"]
    lines += [
        "def nine(a, b, c, d, e, f, g, h, *, i):",
        "    pass",
        "def plain(a, b, c, d, e, f, g, h, i):",
        "    pass",
    ]
    (tmp_path / "kernels" / "some.py").write_text("\n".join(lines), encoding="utf-8")
    assert [said.rpartition("some.py:")[2] for said in fence.crowded(tmp_path)] == [
        "5: nine takes 9 arguments, more than 8"
    ]


def test_every_module_stands_in_a_room():
    placed = {p for room in fence.ROOMS for p in _modules(ROOT / "shoal" / room)}
    outside = {
        p for p in (ROOT / "shoal").rglob("*.py") if p not in placed and p.name not in ("__init__.py", "__main__.py")
    }
    assert not outside, sorted(str(p.relative_to(ROOT)) for p in outside)


@pytest.mark.slow
def test_no_module_imports_itself_by_way_of_others():
    assert fence.floors(fence.graph(ROOT / "shoal"))[1] == []


def test_no_folder_imports_itself_by_way_of_others():
    assert fence.floors(fence.folder_graph(fence.graph(ROOT / "shoal")))[1] == []


def test_a_circle_of_folders_is_found_where_no_module_is_in_one():
    imports = {
        "shoal": set(), "shoal.a": set(), "shoal.b": set(),
        "shoal.a.high": {"shoal.b.middle"}, "shoal.b.middle": {"shoal.a.low"}, "shoal.a.low": set(),
    }  # fmt: skip
    assert fence.floors(imports)[1] == []
    assert fence.floors(fence.folder_graph(imports))[1] == ["shoal.a", "shoal.b"]


def test_a_circle_is_found_also_inside_functions(tmp_path):
    house = tmp_path / "shoal"
    house.mkdir()
    (house / "__init__.py").write_text("", encoding="utf-8")
    (house / "low.py").write_text("def f():\n    from shoal import middle\n", encoding="utf-8")
    (house / "middle.py").write_text("import shoal.low\n", encoding="utf-8")
    (house / "high.py").write_text("from shoal.middle import f\n", encoding="utf-8")
    levels, circle = fence.floors(fence.graph(house))
    assert circle == ["shoal.low", "shoal.middle"]
    assert levels == [["shoal"]]


def test_what_a_package_looks_up_later_is_an_import_too(tmp_path):
    house = tmp_path / "shoal"
    house.mkdir()
    (house / "__init__.py").write_text("", encoding="utf-8")
    (house / "low.py").write_text("import shoal\n", encoding="utf-8")
    assert fence.floors(fence.graph(house))[1] == []
    (house / "__init__.pyi").write_text("from shoal.low import f\n", encoding="utf-8")
    assert fence.floors(fence.graph(house))[1] == ["shoal", "shoal.low"]


def _modules(place: Path) -> list[Path]:
    return [place] if place.suffix == ".py" else list(place.rglob("*.py"))


def test_benchmarks_call_the_public_interface():
    """Names of modules that say in ``__all__`` what is public, and the papers' experiments; also in code as text."""
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        text = path.read_text("utf-8")
        assert not re.search(r"^import shoal\.", text, re.M), f"{path.name} imports a module, not names"
        for module, names in re.findall(r"^from (shoal[\w.]*) import (\([^)]*\)|.+)", text, re.M):
            if not module.startswith("shoal.experiments"):
                public = import_module(module).__all__
                assert set(re.findall(r"\w+", names)) <= set(public), f"{path.name}: {module} {names}"
