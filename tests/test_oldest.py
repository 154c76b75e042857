"""The versions that ``.ci/oldest`` tries are the least that pyproject.toml allows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
ELSEWHERE = {
    "spark",
    "ibis",
    "delta",
    "iceberg",
    "workbench",
    "learn",
    "docs",
    "dev",
    "release",
}  # extras that no test of that run needs


def test_each_least_version_is_the_one_tried() -> None:
    tried = dict(re.findall(r"^([a-z0-9]+)==(\S+)$", (ROOT / ".ci" / "oldest.txt").read_text("utf-8"), re.M))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    own = [
        *project["dependencies"],
        *(line for name in extras if name not in ELSEWHERE | {"test"} for line in extras[name]),
    ]
    least = dict(re.match(r"([a-z0-9]+)>=([\d.]+)", line).groups() for line in own)  # type: ignore[union-attr]
    least |= {"pandas": "2.1"}  # of the tests
    assert set(tried) == set(least)
    assert [n for n, v in least.items() if f"{tried[n]}.".split(".")[: v.count(".") + 1] != v.split(".")] == []
