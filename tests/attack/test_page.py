"""The page of an attack: worst first, leaks on top, nothing fetched, and nobody's row."""

import re
from pathlib import Path
from typing import Any

import polars as pl

import shoal
from shoal.attacks.reading import Figure
from shoal.report.exploring import attack_page


def finding(attack: str, name: str, figure: float, base: float, risk: float | None, **more: Any) -> dict[str, Any]:
    return Figure(
        attack, name, "Somebody 2001", "the intruder knows", more.pop("measures", "guesses that are right"), figure,
        figure, figure, {"without": base}, None, 100, risk, None, "a larger k", more,
    ).as_dict()  # fmt: skip


def made(findings: list[dict[str, Any]]) -> str:
    return attack_page({"internal": False, "rows": 100, "k": 2, "l": 2.0, "quasi_identifiers": ["a"],
                 "sensitive": ["s"],
                 "findings": findings, "notes": []})  # fmt: skip


def test_worst_comes_first() -> None:
    html = made(
        [
            finding("linkage", "no gain", 0.1, 0.2, 0.9),
            finding("inference", "small", 0.4, 0.1, 0.4),
            finding("composition", "large", 0.3, 0.0, 1.0),
            finding("inference", "strangers", 0.8, 0.1, None),
        ]
    )
    body = html[html.index("worst first</h2>") :]
    order = [body.index(name) for name in ("composition: large", "inference: small", "inference: strangers",
                                           "Where nothing is gained", "linkage: no gain")]  # fmt: skip
    assert order == sorted(order)
    assert "In 3 of them" in html
    assert "The worst: composition, large" in html


def test_leaking_files_stand_on_top() -> None:
    where = "1 where it tells what no row shows, 0 where it does not"
    leak = finding("files", "levels and metadata", 1.0, 0.0, 1.0, measures=where, columns="q (1 values)")
    html = made([leak, finding("inference", "class", 0.4, 0.1, 0.4)])
    alarm = re.search(r'<p class="alarm">(.*?)</p>', html)
    assert alarm is not None
    assert "q (1 values)" in alarm[1]
    assert ">found<" in html
    clean = made([finding("files", "levels and metadata", 0.0, 0.0, 0.0, measures=where, columns="none")])
    assert 'class="alarm"' not in clean
    assert ">not found<" in clean
    assert "In none of them" in clean


def test_nothing_is_fetched_and_no_row_is_shown(tmp_path: Path) -> None:
    table = pl.DataFrame({"age": [str(i) for i in range(40)], "ill": [f"ailment {i % 5}" for i in range(40)]})
    release = shoal.anonymize(table, quasi_identifiers=["age"], sensitive=["ill"], k=4, l=2, effort="fast", seed=1)
    path = shoal.attack(release, table).report(tmp_path / "a.html")
    html = path.read_text()
    assert not re.findall(r"""(?:src|href)=["']?(?!#|data:)[^"'>\s]+""", html)
    assert "://" not in html.replace("http://www.w3.org/2000/svg", "")
    assert "ailment" not in html
    assert oct(path.stat().st_mode)[-3:] == "600"
