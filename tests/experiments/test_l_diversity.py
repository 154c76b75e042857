"""The paper's figures run end to end on a small table, and their sentences follow from their numbers."""

from __future__ import annotations

import csv

from shoal.experiments import l_diversity


def test_figures_as_csv_and_png_with_a_sentence_each(tmp_path):
    said = l_diversity.run(tmp_path, rows=200, subsets=1)
    assert len(said) == 8
    for number in range(2, 9):
        assert said[number - 2].startswith(f"Figure {number} (")
        assert (tmp_path / f"figure_{number}.png").read_bytes()[:4] == b"\x89PNG"
    with (tmp_path / "figure_2.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {r["table"] for r in rows} == {"census-like"}
    assert [int(r["l"]) for r in rows][:3] == [2, 3, 4]
    for r in rows:
        assert float(r["TP+"]) <= float(r["TP"])
    with (tmp_path / "figure_7.csv").open(encoding="utf-8") as file:
        assert all(float(r["TP+"]) > 0 and float(r["TDS"]) > 0 for r in csv.DictReader(file))
    with (tmp_path / "phases.csv").open(encoding="utf-8") as file:
        assert all(1 <= int(r["phase"]) <= 4 for r in csv.DictReader(file))


def test_a_sentence_says_where_a_finding_fails():
    mean = [
        {"table": "a", "l": 2, "Hilbert": 3.0, "TP": 2.0, "TP+": 1.0},
        {"table": "a", "l": 3, "Hilbert": 4.0, "TP": 3.0, "TP+": 1.0},
        {"table": "b", "l": 2, "Hilbert": 3.0, "TP": 2.0, "TP+": 2.5},
        {"table": "b", "l": 3, "Hilbert": 2.0, "TP": 3.0, "TP+": 1.0},
    ]
    said = l_diversity.stars_by_l(mean, "l")
    assert "TP+ is best at every l is confirmed on a, refuted on b" in said
    assert "TP beats Hilbert is confirmed on a, refuted on b" in said
    assert "stars rise with l is confirmed on a, refuted on b" in said
    assert "is refuted" in l_diversity.stars_by_l(mean[2:], "l")
    assert "cascade has 0.50 of TP+" in l_diversity.stars_by_l([{**r, "cascade": r["TP+"] / 2} for r in mean], "l")
