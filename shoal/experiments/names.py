"""Figure 7 of Du, Eppstein, Goodrich, Lueker 2009 on the 1990 census name lists, with the optimum added.

Fold and Spread in random and in decreasing order, for every k from the most frequent name's count to half of all: the
overfull ratio, which is the largest group over k. The lists give each name's share rounded to 0.001 %. A share counts
as that many records. Names with share 0.000 % (69,960 of 88,799 surnames) count no records and are left out.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import InputError, MissingDependencyError

LISTS = {
    "FEMALE-1990": ("dist.female.first", "female_1990.csv"),
    "MALE-1990": ("dist.male.first", "male_1990.csv"),
    "LAST-1990": ("dist.all.last", "last_1990.csv"),
}
FILES = (*(f"{name}{part}.csv" for name in LISTS for part in ("", "-subranges")), "names.png")
CURVES = ("fold_random", "fold_sorted", "spread_random", "spread_sorted")
SUBRANGES = 80
SEED = 0  # of the random order


def read_counts(name: str, data: Path | None) -> np.ndarray:
    """Positive counts of one list, from the package ``names`` or from the CSV in ``data``."""
    packaged, table = LISTS[name]
    if data is not None:
        path = data / table
        if not path.exists():
            raise InputError(f"there is no file {str(path)!r}")
        with path.open(encoding="utf-8", newline="") as lines:
            counts = [int(row["count"]) for row in csv.DictReader(lines)]
    else:
        try:
            text = files("names").joinpath(packaged).read_text(encoding="utf-8")
        except ModuleNotFoundError as error:
            raise MissingDependencyError.needed("names", "the experiment 'names'", "test") from error
        counts = [round(float(line.split()[1]) * 1000) for line in text.splitlines() if line.strip()]
    return np.array([count for count in counts if count > 0], dtype=np.int64)


def curves(counts: np.ndarray) -> dict[str, np.ndarray]:
    """The largest group by k, for the paper's four methods and for the optimum with its bound, int64[q] each.

    Keys: k, fold_ORDER, spread_ORDER, and bins_ORDER (groups that the greedy covering closes) for the orders random,
    sorted (decreasing, as in Theorem 9), and ascending; optimum, lower_bound.
    """
    from shoal.kernels.labels import overfull
    from shoal.problems.labels import cover, sweep

    best = sweep(counts)
    found = {"k": best.ks, "optimum": best.costs, "lower_bound": best.lower_bounds}
    for order, sizes in (
        ("random", np.random.default_rng(SEED).permutation(counts)),
        ("sorted", np.sort(counts)[::-1].copy()),
        ("ascending", np.sort(counts)),
    ):
        bins, fold, spread = (np.empty(len(best.ks), np.int64) for _ in range(3))
        overfull(sizes, best.ks, bins, fold, spread)
        for at in np.flatnonzero(best.ks == counts.max()).tolist():  # one name fills a bin
            packed = [cover(sizes, int(best.ks[at]), method, order="given") for method in ("fold", "spread")]
            bins[at], fold[at], spread[at] = len(packed[0].loads), packed[0].cost, packed[1].cost
        found |= {f"fold_{order}": fold, f"spread_{order}": spread, f"bins_{order}": bins}
    return found


def observe(found: dict[str, dict[str, np.ndarray]]) -> list[str]:
    """The paper's four findings on Figure 7, each confirmed or refuted with the figures of these runs."""
    lines = []
    for name, by_k in found.items():
        k, best = by_k["k"], by_k["optimum"]
        parts = [
            f"{order} {_compared_by_k(by_k, f'spread_{order}', f'fold_{order}')}" for order in ("random", "sorted")
        ]
        good = all(_ahead(by_k, f"spread_{order}", f"fold_{order}") for order in ("random", "sorted"))
        lines.append(f"{name}, 1: that Spread is superior to Fold is {_verdict(good)}.  Spread is {'; '.join(parts)}")
        parts = [
            f"{method.title()} against {order} {_compared_by_k(by_k, f'{method}_random', f'{method}_{order}')}"
            for method in ("fold", "spread")
            for order in ("sorted", "ascending")
        ]
        good = any(_ahead(by_k, f"{method}_random", f"{method}_sorted") for method in ("fold", "spread"))
        text = f"{name}, 2: that random order is often superior to sorted is {_verdict(good)}"
        lines.append(f"{text}.  Random is, for {'; '.join(parts)}")
        jump = {curve: _rise(by_k[f"bins_{curve[-6:]}"], by_k[curve] / k) for curve in CURVES}
        good = all(jump[f"fold_{order}"] > max(jump[f"spread_{order}"], 0.0) for order in ("random", "sorted"))
        parts = [f"{curve} {rise:+.3f}" for curve, rise in jump.items()]
        parts.append(f"optimum {_rise(2 * int(k[-1]) // k, best / k):+.3f}")
        lines.append(
            f"{name}, 3: that the ratio jumps where a group is lost, most for Fold, is {_verdict(good)}.  "
            f"Mean jump: {', '.join(parts)}; "
            f"the optimum jumps as well, so part of it lies in the problem"
        )
        parts = [f"{curve} {float((by_k[curve] / k).max()):.3f}" for curve in (*CURVES, "optimum")]
        good = all(float((by_k[c] / k).max()) < (3 if c.startswith("fold") else 2.5) for c in CURVES)
        text = f"{name}, 4: that all stay below the worst case, 3 for Fold and 5/2 for Spread, is {_verdict(good)}"
        lines.append(f"{text}.  Largest ratio: {', '.join(parts)}")
        proved = best == by_k["lower_bound"]
        lines.append(f"{name}: the optimum is proved for {int(proved.sum()):,} of {len(k):,} k ({proved.mean():.2%})")
    return lines


def _verdict(good: bool) -> str:
    return "confirmed" if good else "refuted"


def _ahead(by_k: dict[str, np.ndarray], one: str, other: str) -> bool:
    """Whether one curve is below the other for more k than above it."""
    return bool(np.sign(by_k[other] - by_k[one]).sum() > 0)


def _compared_by_k(by_k: dict[str, np.ndarray], one: str, other: str) -> str:
    """For how many k one curve is below the other, equal to it, or above it."""
    ours, theirs = by_k[one], by_k[other]
    parts = [float(np.mean(where)) for where in (ours < theirs, ours == theirs, ours > theirs)]
    return "below for {:.1%} of k, equal {:.1%}, above {:.1%}".format(*parts)


def _rise(bins: np.ndarray, ratio: np.ndarray) -> float:
    """The mean change of the ratio between successive k at which the number of bins decreases."""
    lost = np.flatnonzero(np.diff(bins) < 0)
    return float((ratio[lost + 1] - ratio[lost]).mean())


def reproduce(output: Path, data: Path | None = None) -> dict[str, Any]:
    """Figure 7: overfull ratios of Fold and Spread on three lists of names, and the true optimum.

    Writes for each list NAME.csv (every k) and NAME-subranges.csv (the largest ratio in each of SUBRANGES ranges of k),
    and names.png.
    """
    found = {name: curves(read_counts(name, data)) for name in LISTS}
    written = []
    for name, by_k in found.items():
        path = output / f"{name}.csv"
        _write(path, list(by_k), zip(*(column.tolist() for column in by_k.values()), strict=True))
        written.append(path)
        path = output / f"{name}-subranges.csv"
        _write(path, ["from_k", "to_k", *CURVES, "optimum"], _subranges(by_k))
        written.append(path)
    written.append(output / "names.png")
    _draw(found, written[-1])
    shares = {name: float((by_k["optimum"] == by_k["lower_bound"]).mean()) for name, by_k in found.items()}
    return {"files": [str(path) for path in written], "proved_optimal": shares, "observations": observe(found)}


def _write(path: Path, head: list[str], rows: Any) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def _subranges(by_k: dict[str, np.ndarray]) -> list[list[float]]:
    """from_k, to_k, and the largest ratio of every curve, for each range of k."""
    rows: list[list[float]] = []
    for part in np.array_split(np.arange(len(by_k["k"])), SUBRANGES):
        ks = by_k["k"][part]
        rows.append(
            [int(ks[0]), int(ks[-1]), *(round(float((by_k[c][part] / ks).max()), 6) for c in (*CURVES, "optimum"))]
        )
    return rows


def _draw(found: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    """Draw Figure 7: the curves of each list by k."""
    MissingDependencyError.unless("matplotlib", "drawing a picture", "plot")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 11), layout="constrained")
    styles = {
        "fold_random": ("#d95f02", "-"),
        "fold_sorted": ("#d95f02", ":"),
        "spread_random": ("#1b9e77", "-"),
        "spread_sorted": ("#1b9e77", ":"),
        "optimum": ("black", "-"),
    }
    for axes, (name, by_k) in zip(figure.subplots(len(found), 1), found.items(), strict=True):
        rows = _subranges(by_k)
        for at, (curve, (color, line)) in enumerate(styles.items()):
            axes.plot([row[0] for row in rows], [row[2 + at] for row in rows], line, color=color, label=curve)
        axes.set_title(name)
        axes.set_ylabel("largest group / k")
        axes.set_ylim(bottom=1)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=len(styles))
    axes.set_xlabel(f"k, in units of 0.001 % of the sample; the largest ratio in each of {SUBRANGES} ranges")
    figure.savefig(path, dpi=130)
