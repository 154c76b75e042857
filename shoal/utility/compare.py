"""Compares releases of one table from any tool: privacy, loss, and statistics that can still be computed from them.

The statistics are counts, marginals, correlations, and a classifier (scikit-learn, extra ``learn``).
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.attacks.reading import coded
from shoal.engines.codes import as_text
from shoal.engines.columns import empty_as_missing
from shoal.engines.csv import where_needed
from shoal.engines.open import open_table
from shoal.engines.source import refuse_database
from shoal.engines.table import require
from shoal.errors import InputError, PolicyError, within
from shoal.model.arguments import column_names, keywords, mapping, seed_of, suggesting
from shoal.model.cards import grid, number
from shoal.model.foreign import ORDER, Domain, Spread, domain_of, lost_cells, spread
from shoal.model.hierarchy import GENERATED
from shoal.model.policy import Policy
from shoal.watching import watched

Text = tuple[str | None, str | None]  # separator and encoding of text files

QUERIES = 400
BLOCK = 1 << 14  # rows of all columns that are in memory at once


class ReadRelease(NamedTuple):
    """A parsed release: per quasi-identifier its distinct cells, and the cell of every row.

    And the hierarchies of its labels.
    """

    frame: pl.DataFrame
    spreads: list[Spread]
    cells: list[np.ndarray]
    trees: Mapping[str, Any]


class Queries(NamedTuple):
    """Counts over two columns: (column, column, low, high, low, high) and the true count of each."""

    asked: list[tuple[int, int, int, int, int, int]]
    truth: list[int]


def queries(domains: Sequence[Domain], codes: Sequence[np.ndarray], seed: int) -> Queries:
    """Random queries, each with a true count of at least 1 % of the rows."""
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
        if a == b:  # both ranges are in one column, and the estimate uses only one
            ends[2:] = ends[:2]
        inside = (codes[a] >= ends[0]) & (codes[a] < ends[1]) & (codes[b] >= ends[2]) & (codes[b] < ends[3])
        if inside.sum() >= least:
            asked.append((a, b, ends[0], ends[1], ends[2], ends[3]))
            truth.append(int(inside.sum()))
    return Queries(asked, truth)


def query_error(read: ReadRelease, queries: Queries) -> dict[str, Any]:
    """The median and the 90 % quantile of |estimate - truth| / truth."""
    errors = []
    for (a, b, *ends), truth in zip(queries.asked, queries.truth, strict=True):
        share = read.spreads[a].share(ends[0], ends[1])[read.cells[a]]
        if a != b:
            share = share * read.spreads[b].share(ends[2], ends[3])[read.cells[b]]
        errors.append(abs(float(share.sum()) - truth) / truth)
    if not errors:
        return {"median": None, "p90": None, "queries": 0}
    return {"median": float(np.median(errors)), "p90": float(np.quantile(errors, 0.9)), "queries": len(errors)}


def marginal_distance(
    read: ReadRelease, domains: Sequence[Domain], codes: Sequence[np.ndarray], names: Sequence[str]
) -> dict[str, Any]:
    """The total variation distance between the original's shares and the expected shares of the release."""
    out = {}
    for name, s, c, d, own in zip(names, read.spreads, read.cells, domains, codes, strict=True):
        size = len(d.values)
        here = s.marginal(np.bincount(c, minlength=s.size.size), size)
        truth = np.bincount(own, minlength=size)
        out[name] = float(0.5 * np.abs(here / max(here.sum(), 1) - truth / max(truth.sum(), 1)).sum())
    return {"columns": out, "mean": sum(out.values()) / len(out)}


def correlation_change(read: ReadRelease, domains: Sequence[Domain], codes: Sequence[np.ndarray]) -> float | None:
    """The mean absolute change of Pearson's correlation over pairs of columns of numbers; None with fewer than two."""
    lines = [None if d.ruler == ORDER else d.scaled for d in domains]
    numeric = {j: at for j, at in enumerate(lines) if at is not None and np.nanstd(at) > 0}
    if len(numeric) < 2:
        return None
    before = correlations([_filled(at) for at in numeric.values()], [codes[j] for j in numeric])
    means = [read.spreads[j].means(at) for j, at in numeric.items()]
    after = correlations(means, [read.cells[j] for j in numeric])
    pairs = np.triu_indices(len(numeric), 1)
    return float(np.abs(before - after).round(9)[pairs].mean())  # without the rounding errors of large sums


def correlations(values: Sequence[np.ndarray], codes: Sequence[np.ndarray]) -> np.ndarray:
    """Pearson's correlation of every two of d columns, float64[d, d]; 0 if one of them is constant.

    values  per column float64[v], the number of each code;  codes  per column int64[n]
    O(n d) for reading, and a product of matrices, which takes n d^2 additions; ``BLOCK`` rows are in memory at once.
    """
    units = []
    for at, code in zip(values, codes, strict=True):
        count = np.bincount(code, minlength=at.size)
        off = at - count @ at / max(code.size, 1)
        present = at[count > 0]
        constant = present.size < 2 or np.ptp(present) <= 1e-12 * np.abs(present).max()
        units.append(np.zeros(at.size) if constant else off / np.sqrt(count @ off**2))
    whole = np.zeros((len(units), len(units)))
    for first in range(0, codes[0].size, BLOCK):
        rows = np.stack([unit[code[first : first + BLOCK]] for unit, code in zip(units, codes, strict=True)])
        whole += rows @ rows.T
    return whole


def _filled(at: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(at), np.nanmean(at), at)


def learns() -> bool:
    """Whether scikit-learn is installed."""
    return find_spec("sklearn") is not None


def classifier(
    read: ReadRelease, domains: Sequence[Domain], exact: pl.DataFrame, codes: Sequence[np.ndarray], target: str | None
) -> dict[str, Any] | None:
    """Logistic regression trained on the release and scored on exact rows; None without scikit-learn or a target.

    codes  of the exact rows, one array per column
    """
    if target is None or not learns():
        return None

    train, test = [], []
    for d, s, c, code in zip(domains, read.spreads, read.cells, codes, strict=True):
        if (at := d.scaled) is not None:
            scale = np.nanstd(at) or 1.0
            train.append((s.means(at) / scale)[c][:, None])
            filled = _filled(at)
            # -1: a value that the original lacks
            test.append((np.append(filled, filled.mean()) / scale)[code][:, None])
            continue
        shares = np.column_stack([s.share(v, v + 1) for v in range(min(len(d.values), 200))])
        train.append(shares[c])
        test.append(np.eye(len(d.values) + 1, shares.shape[1] + 1)[code, : shares.shape[1]])
    targets = (as_text(read.frame[target]), as_text(exact[target]))
    return learned(np.hstack(train), np.hstack(test), *(t.fill_null("missing").to_numpy() for t in targets))


READINGS = {
    "strict": "a star and a missing value are values of their own: rows are alike where they show the same",
    "wildcard": "a star and a missing value may stand for anything: k is the fewest rows that a row may be taken for, "
    "which is how sdcMicro counts",
    "without_suppressed": "rows with every quasi-identifier hidden are left out, which is how ARX counts",
}


APART = 4  # with three or more sensitive columns, simultaneous l-diversity is computed up to this l


class Original(NamedTuple):
    """The data with which releases are compared: columns, their values in order, queries, rows for a classifier.

    names  the columns that are read: quasi-identifiers, sensitive columns, the target
    codes  per quasi-identifier int64[rows]: the index of every row's value in its domain; the same for the exact rows
    """

    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    target: str | None
    names: tuple[str, ...]
    table: pl.DataFrame
    domains: list[Domain]
    codes: list[np.ndarray]
    counts: Queries
    exact: pl.DataFrame
    held: list[np.ndarray]
    population: Any


@dataclass(frozen=True, eq=False)
class Comparison:
    """Privacy, loss, and utility of each release; ``as_dict()`` has every figure, ``table`` the main ones.

    original the same figures of the original table, for comparison
    sources  the files compared: no page may replace them, or be readable by more people
    """

    releases: Mapping[str, Mapping[str, Any]]
    original: Mapping[str, Any]
    rows: int
    notes: tuple[str, ...] = ()
    sources: tuple[str | Path, ...] = ()

    @property
    def table(self) -> pl.DataFrame:
        """A row for the original, then one for each release."""
        return pl.DataFrame([dict(zip(_HEAD, row, strict=True)) for row in self._rows()])

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON: {"releases": {name: {"privacy", "loss", "utility"}}, "readings", ...}."""
        return {
            "releases": {name: dict(facts) for name, facts in self.releases.items()},
            "original": dict(self.original),
            "internal": True,
            "rows": self.rows,
            "readings": dict(READINGS),
            "notes": list(self.notes),
        }

    def _rows(self) -> list[list[Any]]:
        """The main figures: first a row for the original, then one for each release."""
        out = []
        for name, facts in [("the original", self.original), *self.releases.items()]:
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
        return f"<Comparison of {', '.join(self.releases)}, {self.rows:,} rows>"

    def __str__(self) -> str:
        return "\n".join(
            f"{row[0]}: "
            + ", ".join(f"{h} {number(v)}" for h, v in zip(_HEAD[1:], row[1:], strict=True) if v is not None)
            for row in self._rows()
        )

    def report(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """One self-contained HTML page that opens offline, with its figures as JSON in it and in a file next to it.

        Both contain figures of the original: the page states this, and only the owner can read new files.
        """
        from shoal.engines.atomic import publish_page
        from shoal.report.exploring import comparison_page

        page = partial(comparison_page, head=_HEAD, rows=self._rows())
        return publish_page(path, self.as_dict, page, self.sources, overwrite=overwrite, private=True)

    def _repr_html_(self) -> str:
        rows = self._rows()
        kept = [i for i in range(len(_HEAD)) if any(row[i] is not None for row in rows)]
        return grid("Releases of one table", [_HEAD[i] for i in kept], [[row[i] for i in kept] for row in rows])


_HEAD = (
    "release", "k", "k by wildcards", "l", "simultaneous l", "k-map", "presence", "loss (NCP)",
    "share of values hidden", "query error, median", "query error, p90", "distance of marginals",
    "change of correlations", "accuracy", "AUC",
)  # fmt: skip


@watched
@suggesting
def compare(
    original: Any,
    releases: Mapping[str, Any],
    policy: Policy | Mapping[str, Any] | None = None,
    *,
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    hierarchies: Mapping[str, Any] | None = None,
    target: str | None = None,
    held_out: Any = None,
    population: Any = None,
    separator: str | None = None,
    encoding: str | None = None,
    seed: int = 0,
) -> Comparison:
    """Privacy, loss, and utility of releases of one table, from shoal or any other tool, judged in the same way.

    original     a path or a frame, as for ``anonymize``
    releases     name -> a ``Release``, a path, or a frame
    policy       roles and hierarchies, as in the request for a release; keywords override it
    hierarchies  for each column, to read labels that no notation explains; those of a ``Release`` are known
    target       the column that a classifier learns (scikit-learn, extra ``learn``); the first sensitive one if None
    held_out     rows with the same columns that no release contains, to judge the classifier. Without them, it is
                 judged on the original's rows, which makes every release look better
    population   the table from which the original was drawn: the people that each class fits are counted in it
    separator    of every CSV;  encoding: of every CSV that is not UTF-8
    seed         of the random queries

    For utility, a cell represents its members, each equally likely. Query error is |estimate - truth| / truth over 400
    counts, with a random run of values in each of two columns and a truth of at least 1 % of the rows (at least 10).
    The distance of marginals is total variation. The change of correlations is the mean absolute change over pairs of
    columns of numbers. Raises PolicyError and InputError for missing columns. O(rows columns + queries rows), and a
    product of matrices for the correlations, O(rows columns^2).
    """
    if releases is not None and not isinstance(releases, Mapping):
        kind = type(releases).__name__
        raise PolicyError(f"releases is one {kind}; name each release, as in {{'ours': release, 'theirs': 'arx.csv'}}")
    if not releases:
        raise PolicyError("no release is given; name at least one, as in {'ours': release}")
    sensitive = column_names("sensitive", sensitive)
    quasi = column_names("quasi_identifiers", quasi_identifiers)
    given_trees = mapping("hierarchies", hierarchies)
    asked = policy if policy is None or isinstance(policy, Policy) else Policy.of(policy, k=1)
    if asked is not None:
        quasi, sensitive = quasi or asked.quasi_identifiers, sensitive or asked.sensitive
    if not quasi:
        raise PolicyError("no quasi-identifier is named; say ⟨quasi_identifiers=[...]⟩ (the columns others may know)")
    if target is not None and not isinstance(target, str):
        raise PolicyError(f"⟨target={target!r}⟩: name the one column that a classifier learns")
    keywords("quasi-identifier or sensitive column (⟨hierarchies⟩)", given_trees, [*quasi, *sensitive])
    of_policy = {} if asked is None else {name: tree for name, tree in asked.hierarchies.items() if name in quasi}
    read_by = _trees({**of_policy, **given_trees})
    text = separator, encoding
    with nullcontext() if asked is None else asked.naming():
        whole = _original(original, quasi, sensitive, target, (held_out, population), text, seed_of(seed) or 0)
    found: dict[str, Any] = {}
    notes: list[str] = []
    as_it_is = _facts(_read(whole.table, whole, {}, (None, None)), whole)
    for name, given in releases.items():
        with within(f"the release {name!r}"):
            read = _read(given, whole, read_by, text)
        notes += _notes(name, given, read, whole)
        found[name] = _facts(read, whole)
    if whole.target is None:
        notes.append("no classifier: no sensitive column or target is named")
    elif not learns():
        notes.append('no classifier: scikit-learn is not installed; pip install "shoal[learn]"')
    elif held_out is None:
        notes.append("the classifier is judged on the original's rows, from which the releases were made")
    files = (p for p in (original, held_out, population, *releases.values()) if isinstance(p, (str, Path)))
    return Comparison(found, as_it_is, whole.table.height, tuple(notes), tuple(files))


def _original(
    data: Any, quasi: tuple[str, ...], sensitive: tuple[str, ...], target: str | None, more: tuple[Any, Any],
    text: Text, seed: int,
) -> Original:  # fmt: skip
    names = tuple(dict.fromkeys([*quasi, *sensitive, *([target] if target else [])]))
    table = _open(data, names, text)
    if not table.height:
        raise InputError("the original has no rows; there is nothing to compare with")
    texts = [as_text(table[n]) for n in quasi]
    kinds = [table[n].dtype for n in quasi]
    orders = [kind.categories.to_list() if isinstance(kind, pl.Enum) else None for kind in kinds]
    domains = [domain_of(t.unique().to_list(), order) for t, order in zip(texts, orders, strict=True)]
    codes = [coded(t, d.values) for t, d in zip(texts, domains, strict=True)]
    (held_out, population), exact, held = more, table, codes
    if held_out is not None:
        exact = _open(held_out, names, text)
        held = [coded(as_text(exact[n]), d.values) for n, d in zip(quasi, domains, strict=True)]
    target = target or next(iter(sensitive), None)
    counts = queries(domains, codes, seed)
    return Original(quasi, sensitive, target, names, table, domains, codes, counts, exact, held, population)


def _trees(given: Mapping[str, Any]) -> dict[str, Any]:
    """The hierarchies that can be read. Generated ones are left out, because each table generates its own."""
    return {n: h for n, h in given.items() if not isinstance(h, str) or h not in GENERATED}


def _notes(name: str, given: Any, read: ReadRelease, whole: Original) -> list[str]:
    """Notes that a reader of the figures must know.

    Raises InputError for a release with more rows than the original.
    """
    if (left := whole.table.height - read.frame.height) < 0:
        raise InputError(f"the release {name!r} has more rows than the original")
    notes = []
    if not hasattr(given, "facts"):
        nulls = {c: (whole.table[c].null_count(), read.frame[c].null_count()) for c in whole.quasi}
        notes += [_blurred(name, c) for c, (before, after) in nulls.items() if 0 < before < after]
    lost = (lost_cells(c, s, read.trees.get(c)) for c, s in zip(whole.quasi, read.spreads, strict=True))
    notes += [f"{name}: {note}" for note in lost if note]
    if left:
        rows = whole.table.height
        notes.append(f"{name}: {left:,} of {rows:,} rows of the original are not in it; they count as lost")
    return notes


def _facts(read: ReadRelease, whole: Original) -> dict[str, Any]:
    domains, codes = whole.domains, whole.codes
    return {
        "privacy": _privacy(read, whole),
        "loss": _loss(read, domains, whole.table.height),
        "utility": {
            "query_error": query_error(read, whole.counts),
            "marginal_distance": marginal_distance(read, domains, codes, whole.quasi),
            "correlation_change": correlation_change(read, domains, codes),
            "classifier": classifier(read, domains, whole.exact, whole.held, whole.target),
        },
    }


def _blurred(name: str, column: str) -> str:
    return (
        f"{name}: column {column!r} has more missing values than the original; those that are stars count as values, "
        "so pass the release itself, or one made with numeric_stars='text'"
    )


def _open(data: Any, names: Sequence[str], text: Text) -> pl.DataFrame:
    refuse_database(data)
    separator, encoding = where_needed(data, *text)
    opened = open_table(data, separator=separator, encoding=encoding, needed=names)
    require(opened.columns, names)
    return empty_as_missing(opened.polars(list(names)))


def _read(given: Any, whole: Original, hierarchies: Mapping[str, Any], text: Text) -> ReadRelease:
    own: Mapping[str, Any] = {}
    stars: Mapping[str, int] = {}
    if hasattr(given, "policy") and hasattr(given, "table"):
        own, stars, given = _trees(given.policy.hierarchies), given.facts.stars, given.table
    frame = _open(given, whole.names, text)
    trees = {**own, **hierarchies}
    spreads, cells = [], []
    for name, domain in zip(whole.quasi, whole.domains, strict=True):
        texts = as_text(frame[name])
        distinct = texts.unique(maintain_order=True).to_list()
        found = spread(distinct, domain, trees.get(name), name)
        blank = frame[name].null_count()
        if blank and stars.get(name) and None in domain.number and frame[name].dtype != pl.String:
            found.stated[distinct.index(None)] = min(stars[name] / blank, 1.0)  # stars and missing values look the same
        spreads.append(found)
        cells.append(coded(texts, distinct))
    return ReadRelease(frame, spreads, cells, trees)


def _privacy(read: ReadRelease, whole: Original) -> dict[str, Any]:
    """The audit, and k in the readings of other tools."""
    from shoal.publishing.tables.audited import audit

    trees = {name: tree for name, tree in read.trees.items() if name in (*whole.quasi, *whole.sensitive)}
    found = audit(
        read.frame, quasi_identifiers=whole.quasi, sensitive=whole.sensitive, population=whole.population,
        hierarchies=trees,
    ).as_dict()  # fmt: skip
    rows = read.frame.height
    wild = np.column_stack([s.wild[c] for s, c in zip(read.spreads, read.cells, strict=True)])
    kept = ~wild.all(axis=1)
    strict = np.column_stack(read.cells)
    sizes = _different(strict[kept])[1]
    return {
        "strict": {
            "k": found["k"], "groups": found["classes"], "uniques": found["uniques"], "risk": found["risk"],
            "sensitive": found["sensitive"], "simultaneous_l": _simultaneous(read, whole.sensitive, strict),
            "population": found["population"],
        },
        "wildcard": {"k": wildcard_k(strict, wild)},
        "without_suppressed": {"k": int(sizes.min()) if sizes.size else None, "rows_left_out": int(rows - kept.sum())},
    }  # fmt: skip


def _simultaneous(read: ReadRelease, sensitive: Sequence[str], strict: np.ndarray) -> int | None:
    """The largest l such that every row is in a set of l rows of its class that differ pairwise in all columns.

    None for one column. With three or more columns, at most ``APART``.
    """
    from shoal.judge.models.size_and_diversity import simultaneous

    if len(sensitive) < 2 or not read.frame.height:
        return None
    codes = np.column_stack([as_text(read.frame[n]).rank("dense").fill_null(0).to_numpy() for n in sensitive])
    group = np.unique(strict, axis=0, return_inverse=True)[1].reshape(-1)
    most = int(codes.max()) + 1
    return simultaneous(codes.astype(np.int64), group, most if len(sensitive) == 2 else min(most, APART))


MOST_COMPARED = 200_000_000


def _different(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different rows, int64[m, d], and how often each occurs, int64[m]; hashed, where numpy would sort them."""
    found = pl.DataFrame(rows).group_by(pl.all()).len()
    return found.drop("len").to_numpy(), found["len"].to_numpy().astype(np.int64)


def wildcard_k(cells: np.ndarray, wild: np.ndarray) -> int | None:
    """The fewest rows that match a row if hidden cells match anything; None beyond ``MOST_COMPARED``.

    cells  int64[rows, columns]; wild: bool, same shape. Rows with the same hidden columns are compared at once: O(m^2 t
           d) for t different rows in m such sets and d columns.
    """
    if not cells.size:
        return 0
    shown = np.where(wild, -1, cells)
    rows, count = _different(shown)
    masks, kind = np.unique(rows == -1, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    if len(masks) * len(rows) > MOST_COMPARED // max(cells.shape[1], 1):
        return None
    total = count.copy()  # different rows with the same hidden columns don't match
    of = np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])
    for a, b in itertools.combinations(range(len(masks)), 2):
        common, mine, other = ~(masks[a] | masks[b]), of[a], of[b]
        first, second = _matching(rows[:, common], count, mine, other)
        total[mine] += first
        total[other] += second
    return int(total.min())


def _matching(
    rows: np.ndarray, count: np.ndarray, mine: np.ndarray, other: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each of ``mine``, int64[x], the rows among ``other`` that are equal to it, and the reverse; each row counts
    ``count``. Hashed as in ``_different``, where equal hashes are compared."""
    if not rows.shape[1]:
        return np.full(mine.size, count[other].sum()), np.full(other.size, count[mine].sum())
    at = np.concatenate([mine, other])
    first = np.arange(at.size) < mine.size
    both = pl.DataFrame(rows[at])
    sums = both.with_columns(mine=np.where(first, count[at], 0), other=np.where(first, 0, count[at])).select(
        pl.col("mine", "other").sum().over(both.columns)
    )
    return sums["other"].to_numpy()[first], sums["mine"].to_numpy()[~first]


def _loss(read: ReadRelease, domains: Sequence[Domain], rows: int) -> dict[str, Any]:
    """The mean loss of a cell, and the share of hidden cells.

    A row that the release lacks counts as completely lost.
    """
    gone = rows - read.frame.height
    per, hidden = {}, 0.0
    for name, s, c, d in zip(read.frame.columns, read.spreads, read.cells, domains, strict=False):
        per[name] = float((s.loss(d)[c].sum() + gone) / max(rows, 1))
        hidden += float(s.wild[c].sum() + gone) / max(rows, 1)
    return {"ncp": sum(per.values()) / len(per), "columns": per, "hidden": hidden / len(per), "rows_missing": gone}


def learned(train: np.ndarray, test: np.ndarray, wanted: np.ndarray, truth: np.ndarray) -> dict[str, Any] | None:
    """Accuracy and area under the ROC curve of logistic regression; None if the release has only one class.

    train, test    float64[rows, features]; wanted, truth: the classes
    For two classes, the area is that of the rarer class. For more, it is the mean of one against the rest, or None if
    it is undefined. ``majority`` is the accuracy if the most frequent class is always predicted.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    if np.unique(wanted).size < 2:
        return None
    middle, scale = train.mean(axis=0), train.std(axis=0)
    varied = scale > 1e-9  # a column of stars varies only by rounding, and contributes nothing
    scale[~varied] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=300).fit((train - middle) / scale * varied, wanted)
    prepared = (test - middle) / scale * varied
    chances = model.predict_proba(prepared)
    classes, counts = np.unique(truth, return_counts=True)
    area = None
    if set(classes) == set(model.classes_):
        areas = [float(roc_auc_score(truth == c, chances[:, i])) for i, c in enumerate(model.classes_)]
        area = areas[1] if len(areas) == 2 else float(np.mean(areas))
    return {
        "accuracy": float((model.predict(prepared) == truth).mean()),
        "auc": area,
        "majority": float(counts.max() / truth.size),
        "method": "logistic regression",
    }
