"""Releases of one table side by side, whoever made them: privacy, loss, and what can still be computed from them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.engines.codes import as_text
from shoal.engines.open import open_table
from shoal.engines.table import require
from shoal.errors import InputError, PolicyError, within
from shoal.model.arguments import column_names, mapping, seed_of
from shoal.model.cards import grid, number
from shoal.model.hierarchy import GENERATED
from shoal.utility.foreign import ORDER, Domain, Spread, domain_of, spread
from shoal.watching import watched

READINGS = {
    "strict": "a star and a missing value are values of their own: rows are alike where they show the same",
    "wildcard": "a star and a missing value may stand for anything: k is the fewest rows that a row may be taken for, "
    "which is how sdcMicro counts",
    "without_suppressed": "rows with every quasi-identifier hidden are left out, which is how ARX counts",
}
QUERIES = 400
APART = 4  # rows that differ pairwise in three sensitive columns or more are sought up to so many


class Asked(NamedTuple):
    """What is compared: columns, queries and the classifier's target."""

    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    target: str | None
    seed: int
    population: Any


class Read(NamedTuple):
    """A release understood: per quasi-identifier its cells, and the cell of every row; hierarchies it is read by."""

    frame: pl.DataFrame
    spreads: list[Spread]
    cells: list[np.ndarray]
    trees: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Per release its privacy, loss and utility; ``as_dict()`` has every figure, ``table`` the main ones."""

    releases: Mapping[str, Mapping[str, Any]]
    rows: int
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> pl.DataFrame:
        """One row a release."""
        return pl.DataFrame([dict(zip(_HEAD, row, strict=True)) for row in self._rows()])

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON: {"releases": {name: {"privacy", "loss", "utility"}}, "readings", ...}."""
        return {
            "releases": {name: dict(facts) for name, facts in self.releases.items()},
            "rows": self.rows,
            "readings": dict(READINGS),
            "notes": list(self.notes),
        }

    def _rows(self) -> list[list[Any]]:
        out = []
        for name, facts in self.releases.items():
            privacy, utility = facts["privacy"], facts["utility"]
            error, learned = utility["query_error"], utility["classifier"] or {}
            levels = [found["l"] for found in privacy["strict"]["sensitive"].values()]
            row: list[Any] = [name, privacy["strict"]["k"], privacy["wildcard"]["k"]]
            people = privacy["strict"]["population"] or {}
            row += [
                min((x for x in levels if x is not None), default=None),
                privacy["strict"]["simultaneous_l"],
                people.get("k_map"),
                people.get("presence", [None])[-1],
                facts["loss"]["ncp"],
                facts["loss"]["hidden"],
            ]
            row += [error["median"], error["p90"], utility["marginal_distance"]["mean"], utility["correlation_change"]]
            out.append([*row, learned.get("accuracy"), learned.get("auc")])
        return out

    def __repr__(self) -> str:
        return "\n".join(
            f"{row[0]}: "
            + ", ".join(f"{h} {number(v)}" for h, v in zip(_HEAD[1:], row[1:], strict=True) if v is not None)
            for row in self._rows()
        )

    def report(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """One self-contained HTML page that opens offline; its figures stand in it as JSON too."""
        from shoal.engines.atomic import publish_text
        from shoal.engines.targets import PAGE, check_outputs
        from shoal.report.comparing import page

        check_outputs([(path, PAGE)], overwrite=overwrite)
        publish_text(path, page(self.as_dict(), _HEAD, self._rows()))
        return Path(path)

    def _repr_html_(self) -> str:
        return grid("Releases of one table", _HEAD, self._rows())


_HEAD = (
    "release", "k", "k by wildcards", "l", "simultaneous l", "k-map", "presence", "loss (NCP)",
    "share of values hidden", "query error, median", "query error, p90", "distance of marginals",
    "change of correlations", "accuracy", "AUC",
)  # fmt: skip


@watched
def compare(
    original: Any,
    releases: Mapping[str, Any],
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    hierarchies: Mapping[str, Any] | None = None,
    target: str | None = None,
    held_out: Any = None,
    population: Any = None,
    separator: str | None = None,
    seed: int = 0,
) -> Comparison:
    """Releases of one table, ours or another tool's, judged and used in the same way.

    original     a path or a frame, as for ``anonymize``
    releases     name -> a ``Release``, a path or a frame
    hierarchies  per column, to read labels that no notation explains; those of a ``Release`` are known
    target       the column that a classifier learns (scikit-learn, extra ``learn``); the first sensitive one when None
    held_out     rows of the same columns that no release was made from, to judge the classifier on; without them it is
                 judged on the original's rows, which flatters every release alike
    population   the table the original was drawn from: the people every class fits are counted in it
    seed         of the random queries

    Utility: every cell stands for its members, each as likely.  Query error is |estimate - truth| / truth over 400
    counts with a random run of values in each of two columns and a truth of at least 1 % of the rows (10 at least);
    the distance of marginals is total variation; the change of correlations is the mean absolute one over pairs of
    number columns.  Raises PolicyError and InputError for columns that are not there.  O(rows columns + queries rows).
    """
    if not mapping("releases", releases):
        raise PolicyError("no release is given; name at least one, as in {'ours': release}")
    sensitive = column_names("sensitive", sensitive)
    quasi = column_names("quasi_identifiers", quasi_identifiers)
    asked = Asked(quasi, sensitive, target or next(iter(sensitive), None), seed_of(seed) or 0, population)
    if not asked.quasi:
        raise PolicyError("no quasi-identifier is named; say quasi_identifiers=[...] (the columns others may know)")
    read_by = {
        n: h for n, h in mapping("hierarchies", hierarchies).items() if not (isinstance(h, str) and h in GENERATED)
    }
    names = [*asked.quasi, *asked.sensitive, *([target] if target and target not in sensitive else [])]
    table = _open(original, names, separator)
    texts = [as_text(table[n]) for n in asked.quasi]
    domains = [domain_of(t.unique().to_list(), _order(table[n].dtype)) for n, t in zip(asked.quasi, texts, strict=True)]
    codes = [_coded(t, d.values) for t, d in zip(texts, domains, strict=True)]
    queries = _queries(domains, codes, asked.seed)
    found: dict[str, Any] = {}
    notes: list[str] = []
    for name, given in releases.items():
        with within(f"the release {name!r}"):
            read = _read(given, names, domains, asked, read_by, separator)
        lost = sum(s.unknown for s in read.spreads)
        if not hasattr(given, "stars"):
            notes += [_blurred(name, c) for c in asked.quasi if 0 < table[c].null_count() < read.frame[c].null_count()]
        if lost:
            notes.append(f"{name}: {lost} different cells are not understood and count as stars; hand over hierarchies")
        if read.frame.height > table.height:
            raise InputError(f"the release {name!r} has more rows than the original")
        if left := table.height - read.frame.height:
            notes.append(f"{name}: {left:,} of {table.height:,} rows of the original are not in it; they count as lost")
        found[name] = {
            "privacy": _privacy(read, asked),
            "loss": _loss(read, domains, table.height),
            "utility": {
                "query_error": _errors(read, queries, table.height),
                "marginal_distance": _marginals(read, domains, codes, asked),
                "correlation_change": _correlation(read, domains, codes),
                "classifier": _learned(read, domains, table, codes, asked, held_out),
            },
        }
    if asked.target is None:
        notes.append("no classifier: no sensitive column or target is named")
    elif not _sklearn():
        notes.append('no classifier: scikit-learn is not installed; pip install "shoal[learn]"')
    elif held_out is None:
        notes.append("the classifier is judged on the original's rows, from which the releases were made")
    return Comparison(found, table.height, tuple(notes))


def _order(kind: pl.DataType) -> list[str] | None:
    return kind.categories.to_list() if isinstance(kind, pl.Enum) else None


def _blurred(name: str, column: str) -> str:
    return (
        f"{name}: column {column!r} has more missing values than the original; those that are stars count as values, "
        "so hand over the release itself, or one made with numeric_stars='text'"
    )


def _open(data: Any, names: Sequence[str], separator: str | None) -> pl.DataFrame:
    opened = open_table(data, separator=separator, needed=names)
    require(opened.columns, names)
    return opened.polars(list(names))


def _coded(texts: pl.Series, values: Sequence[str | None]) -> np.ndarray:
    """int64[rows]: the place of every text among the values; -1 for others."""
    pool = pl.DataFrame({"x": pl.Series(list(values), dtype=pl.String), "i": np.arange(len(values))})
    joined = texts.alias("x").to_frame().join(pool, on="x", how="left", nulls_equal=True, maintain_order="left")
    return joined["i"].fill_null(-1).to_numpy().astype(np.int64)


def _read(
    given: Any, names: Sequence[str], domains: Sequence[Domain], asked: Asked, hierarchies: Mapping[str, Any],
    separator: str | None,
) -> Read:  # fmt: skip
    own: Mapping[str, Any] = {}
    stars: Mapping[str, int] = getattr(given, "stars", {})
    if hasattr(given, "policy") and hasattr(given, "table"):
        held = given.policy.hierarchies.items()
        own = {n: h for n, h in held if not isinstance(h, str) or h not in GENERATED}
        given = given.table
    frame = _open(given, names, separator)
    trees = {**own, **hierarchies}
    spreads, cells = [], []
    for name, domain in zip(asked.quasi, domains, strict=True):
        texts = as_text(frame[name])
        distinct = texts.unique(maintain_order=True).to_list()
        found = spread(distinct, domain, trees.get(name))
        blank = frame[name].null_count()
        if blank and stars.get(name) and None in domain.number and frame[name].dtype != pl.String:
            found.told[distinct.index(None)] = min(stars[name] / blank, 1.0)  # stars and missing values look alike
        spreads.append(found)
        cells.append(_coded(texts, distinct))
    return Read(frame, spreads, cells, trees)


def _privacy(read: Read, asked: Asked) -> dict[str, Any]:
    """The audit under our reading, then k under the readings other tools take."""
    from shoal.publishing.audited import audit

    trees = {name: tree for name, tree in read.trees.items() if name in (*asked.quasi, *asked.sensitive)}
    found = audit(
        read.frame,
        quasi_identifiers=asked.quasi,
        sensitive=asked.sensitive,
        population=asked.population,
        hierarchies=trees,
    ).as_dict()
    rows = read.frame.height
    wild = np.column_stack([s.wild[c] for s, c in zip(read.spreads, read.cells, strict=True)])
    kept = ~wild.all(axis=1)
    strict = np.column_stack(read.cells)
    sizes = np.unique(strict[kept], axis=0, return_counts=True)[1]
    return {
        "strict": {
            "k": found["k"], "groups": found["classes"], "uniques": found["uniques"], "risk": found["risk"],
            "sensitive": found["sensitive"], "simultaneous_l": _simultaneous(read, asked, strict),
            "population": found["population"],
        },
        "wildcard": {"k": wildcard_k(strict, wild)},
        "without_suppressed": {"k": int(sizes.min()) if sizes.size else None, "rows_left_out": int(rows - kept.sum())},
    }  # fmt: skip


def _simultaneous(read: Read, asked: Asked, strict: np.ndarray) -> int | None:
    """The most l for which every row lies in l rows of its class that differ in every sensitive column; None for one.

    Beyond two columns up to ``APART``.
    """
    from shoal.judge.simultaneous import simultaneous

    if len(asked.sensitive) < 2 or not read.frame.height:
        return None
    codes = np.column_stack([as_text(read.frame[n]).rank("dense").fill_null(0).to_numpy() for n in asked.sensitive])
    group = np.unique(strict, axis=0, return_inverse=True)[1].reshape(-1)
    most = int(codes.max()) + 1
    return simultaneous(codes.astype(np.int64), group, most if len(asked.sensitive) == 2 else min(most, APART))


def wildcard_k(cells: np.ndarray, wild: np.ndarray, most: int = 200_000_000) -> int | None:
    """Fewest rows that a row may be taken for when hidden cells match anything; None past ``most`` comparisons.

    cells  int64[rows, columns]; wild: bool alike.  Rows with the same columns hidden are compared at once:
    O(m^2 t d) for t different rows in m such sets.
    """
    if not cells.size:
        return 0
    shown = np.where(wild, -1, cells)
    rows, count = np.unique(shown, axis=0, return_counts=True)
    masks, kind = np.unique(rows == -1, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    if len(masks) * len(rows) > most // max(cells.shape[1], 1):
        return None
    total = np.zeros(len(rows), np.int64)
    for a, b in itertools.product(range(len(masks)), repeat=2):
        common = ~(masks[a] | masks[b])
        mine, other = np.flatnonzero(kind == a), np.flatnonzero(kind == b)
        both = np.concatenate([rows[mine], rows[other]])[:, common]
        if not both.shape[1]:
            total[mine] += count[other].sum()
            continue
        group = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
        sums = np.bincount(group[mine.size :], weights=count[other], minlength=int(group.max()) + 1)
        total[mine] += sums[group[: mine.size]].astype(np.int64)
    return int(total.min())


def _loss(read: Read, domains: Sequence[Domain], rows: int) -> dict[str, Any]:
    """Mean loss of a cell and share of hidden ones; a row that the release lacks is lost and hidden entirely."""
    gone = rows - read.frame.height
    per, hidden = {}, 0.0
    for name, s, c, d in zip(read.frame.columns, read.spreads, read.cells, domains, strict=False):
        per[name] = float((s.loss(d)[c].sum() + gone) / max(rows, 1))
        hidden += float(s.wild[c].sum() + gone) / max(rows, 1)
    return {"ncp": sum(per.values()) / len(per), "columns": per, "hidden": hidden / len(per), "rows_missing": gone}


class Queries(NamedTuple):
    """Counts over two columns: (column, column, low, high, low, high) and the truth of each."""

    asked: list[tuple[int, int, int, int, int, int]]
    truth: list[int]


def _queries(domains: Sequence[Domain], codes: Sequence[np.ndarray], seed: int) -> Queries:
    rng = np.random.default_rng(seed)
    rows = codes[0].size
    least = max(10, rows // 100)
    pairs = list(itertools.combinations(range(len(codes)), 2)) or [(0, 0)]
    asked: list[tuple[int, int, int, int, int, int]] = []
    truth: list[int] = []
    for _ in range(20 * QUERIES):
        if len(asked) == QUERIES:
            break
        a, b = pairs[rng.integers(len(pairs))]
        ends = []
        for j in (a, b):
            size = len(domains[j].values)
            wide = int(rng.integers(1, max(size // 2, 1) + 1))
            low = int(rng.integers(0, size - wide + 1)) if size else 0
            ends += [low, low + wide]
        inside = (codes[a] >= ends[0]) & (codes[a] < ends[1]) & (codes[b] >= ends[2]) & (codes[b] < ends[3])
        if inside.sum() >= least:
            asked.append((a, b, ends[0], ends[1], ends[2], ends[3]))
            truth.append(int(inside.sum()))
    return Queries(asked, truth)


def _errors(read: Read, queries: Queries, rows: int) -> dict[str, Any]:
    errors = []
    for (a, b, *ends), truth in zip(queries.asked, queries.truth, strict=True):
        share = read.spreads[a].share(ends[0], ends[1])[read.cells[a]]
        if a != b:
            share = share * read.spreads[b].share(ends[2], ends[3])[read.cells[b]]
        errors.append(abs(float(share.sum()) - truth) / truth)
    if not errors:
        return {"median": None, "p90": None, "queries": 0}
    return {"median": float(np.median(errors)), "p90": float(np.quantile(errors, 0.9)), "queries": len(errors)}


def _marginals(read: Read, domains: Sequence[Domain], codes: Sequence[np.ndarray], asked: Asked) -> dict[str, Any]:
    """Total variation between the original's shares and those expected from the release."""
    out = {}
    for name, s, c, d, own in zip(asked.quasi, read.spreads, read.cells, domains, codes, strict=True):
        size = len(d.values)
        here = s.marginal(np.bincount(c, minlength=s.size.size), size)
        truth = np.bincount(own, minlength=size)
        out[name] = float(0.5 * np.abs(here / max(here.sum(), 1) - truth / max(truth.sum(), 1)).sum())
    return {"columns": out, "mean": sum(out.values()) / len(out)}


def _correlation(read: Read, domains: Sequence[Domain], codes: Sequence[np.ndarray]) -> float | None:
    """Mean absolute change of Pearson's correlation over pairs of number columns; None with fewer than two."""
    numeric = [j for j, d in enumerate(domains) if d.at is not None and d.ruler != ORDER and np.nanstd(d.at) > 0]
    changes = []
    for a, b in itertools.combinations(numeric, 2):
        before = _pearson(*(_filled(domains[j].at)[codes[j]] for j in (a, b)))
        after = _pearson(*(read.spreads[j].means(domains[j].at)[read.cells[j]] for j in (a, b)))  # type: ignore[arg-type]
        changes.append(abs(before - after))
    return float(np.mean(changes)) if changes else None


def _filled(at: np.ndarray | None) -> np.ndarray:
    assert at is not None  # only number columns are asked
    return np.where(np.isnan(at), np.nanmean(at), at)


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    """0 where a column does not vary."""
    if x.size < 2 or not x.std() or not y.std():
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def _sklearn() -> bool:
    from importlib.util import find_spec

    return find_spec("sklearn") is not None


def _learned(
    read: Read, domains: Sequence[Domain], table: pl.DataFrame, codes: Sequence[np.ndarray], asked: Asked, held_out: Any
) -> dict[str, Any] | None:
    """Logistic regression trained on the release, judged on exact rows; None without scikit-learn or a target."""
    if asked.target is None or not _sklearn():
        return None
    from shoal.utility.learning import learned

    exact = table if held_out is None else _open(held_out, table.columns, None)
    own = (
        codes
        if held_out is None
        else [_coded(as_text(exact[n]), d.values) for n, d in zip(asked.quasi, domains, strict=True)]
    )
    train, test = [], []
    for d, s, c, code in zip(domains, read.spreads, read.cells, own, strict=True):
        if d.at is not None:
            scale = np.nanstd(d.at) or 1.0
            train.append((s.means(d.at) / scale)[c][:, None])
            filled = _filled(d.at)
            test.append((np.append(filled, filled.mean()) / scale)[code][:, None])  # -1: a value the original lacks
            continue
        shares = np.column_stack([s.share(v, v + 1) for v in range(min(len(d.values), 200))])
        train.append(shares[c])
        test.append(np.eye(len(d.values) + 1, shares.shape[1] + 1)[code, : shares.shape[1]])
    targets = (as_text(read.frame[asked.target]), as_text(exact[asked.target]))
    return learned(np.hstack(train), np.hstack(test), *(t.fill_null("missing").to_numpy() for t in targets))
