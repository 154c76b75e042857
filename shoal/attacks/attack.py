"""The motivated intruder test: runs every attack on a release of shoal, ARX, sdcMicro, or any other tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.attacks import composition, files, linkage, minimality
from shoal.attacks import linkage as inference
from shoal.attacks.reading import Figure, People, Reading, numbered, read
from shoal.engines import lakes
from shoal.engines.codes import as_text
from shoal.engines.columns import empty_as_missing
from shoal.engines.csv import where_needed
from shoal.engines.open import open_table
from shoal.engines.source import refuse_database
from shoal.engines.table import require
from shoal.errors import InputError, PolicyError, one_line, within
from shoal.model.arguments import column_names, keywords, mapping, seed_of, suggesting
from shoal.model.cards import grid, number, several
from shoal.model.certificate import read_json
from shoal.model.foreign import lost_cells, unfit_hierarchy
from shoal.model.hierarchy import GENERATED
from shoal.model.policy import Policy
from shoal.paths import certificate_path, internal_path
from shoal.watching import watched

ERRORS = (0.0, 0.05, 0.15)


@dataclass(frozen=True, eq=False)
class Attack:
    """The figures that an intruder reaches on a release.

    findings  every figure, in the order of the attacks
    rows, k, l  the rows of the release, and its promises (1 if unknown)
    quasi_identifiers, sensitive  its columns
    internal  whether the original was used; if so, the figures are about the original, and you must not publish them
    notes     sentences that a reader of the figures must know
    sources   the files that were used
    """

    findings: tuple[Figure, ...]
    rows: int
    k: int
    l: float
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    internal: bool
    notes: tuple[str, ...] = ()
    sources: tuple[str | Path, ...] = ()

    @property
    def table(self) -> pl.DataFrame:
        """A row for each finding."""
        rows = []
        for f in self.findings:
            base = max(f.baselines.values(), default=None)
            rows.append([f.attack, f.name, f.figure, f.low, f.high, base, f.promise, f.risk, f.gain])
        kinds = [pl.String] * 2 + [pl.Float64] * 6 + [pl.Boolean]
        return pl.DataFrame(rows, dict(zip(_HEAD, kinds, strict=True)), orient="row")

    def above(self, threshold: float) -> tuple[Figure, ...]:
        """The findings whose risk is above a threshold, the highest first."""
        if not 0 <= threshold <= 1:
            raise PolicyError(f"⟨fail_above={threshold!r}⟩: a risk is a share from 0 to 1")
        found = [f for f in self.findings if f.risk is not None and f.risk > threshold + 1e-9]
        return tuple(sorted(found, key=lambda f: -(f.risk or 0.0)))

    def passes(self, fail_above: float = 0.5) -> bool:
        """Whether no finding's risk is above a threshold.

        The risk of linkage is that of the person who is linked most often. The risk of inference by class is the
        largest share of a value in a class, and of other inference the share of right guesses. The risk of claims is
        the share of right claims. The risk of a file is 1 if it leaks.
        """
        return not self.above(fail_above)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "internal": self.internal,
            "rows": self.rows,
            "k": self.k,
            "l": self.l,
            "quasi_identifiers": list(self.quasi_identifiers),
            "sensitive": list(self.sensitive),
            "findings": [f.as_dict() for f in self.findings],
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        gains = sum(f.gain for f in self.findings)
        return f"<Attack on {self.rows:,} rows: {len(self.findings)} findings, {gains} above baseline and promise>"

    def __str__(self) -> str:
        return "\n".join(one_line(line_of(f)) for f in self.findings)

    def report(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """One self-contained HTML page that opens offline, with a JSON file of its figures next to it.

        If the original was used, the page contains figures of it. Then its name ends in .internal.html, its first lines
        state this, and only the owner can read new files. Returns the path of the page.
        """
        from shoal.engines.atomic import publish_page
        from shoal.report.exploring import attack_page

        path = internal_path(Path(path)) if self.internal else Path(path)
        return publish_page(path, self.as_dict, attack_page, self.sources, overwrite=overwrite, private=self.internal)

    def _repr_html_(self) -> str:
        rows = [["–" if x is None else x for x in row] for row in self.table.rows()]
        return grid("What an intruder reaches", _HEAD, rows)


_HEAD = ("attack", "variant", "figure", "low", "high", "baseline", "promise", "risk", "gain")


def line_of(finding: Figure) -> str:
    """A finding as one line of text."""
    if finding.figure is None:
        why = "unknown" if finding.people else "nothing to guess in this release"
        return f"{finding.attack}, {finding.name}: {finding.measures}: {why}"
    span = "" if finding.low is None else f" ({number(finding.low)} to {number(finding.high)})"
    base = "; ".join(f"{name} {number(value)}" for name, value in finding.baselines.items())
    promise = "" if finding.promise is None else f"; promise {number(finding.promise)}"
    worst = "" if finding.worst is None else f"; worst {number(finding.worst[1])}, {finding.worst[0]}"
    return (
        f"{finding.attack}, {finding.name}: {finding.measures} {number(finding.figure)}{span}"
        f"{'; ' + base if base else ''}{promise}{worst}{'  GAIN' if finding.gain else ''}"
    )


@watched
@suggesting
def attack(
    release: Any,
    original: Any = None,
    register: Any = None,
    earlier: Sequence[Any] = (),
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] | None = None,
    certificate: str | Path | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    k: int | None = None,
    l: float | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    seed: int = 0,
) -> Attack:
    """What a motivated intruder learns from a release of any tool.

    release      a ``Release``, a path, or a frame
    original     the table from which it was made. Guesses are checked against it, and the answer is internal
    register     a table of people with the quasi-identifiers, and possibly the sensitive columns: people who might be
                 in the release. A person who is not in the original is a stranger
    earlier      other releases of the same people, for composition
    quasi_identifiers, sensitive, k, l   by default from the certificate of the release. For a path, this is
                 RELEASE.certificate.json next to it; ``certificate`` names another file
    hierarchies  for each column, to read labels that no notation explains
    separator    of every CSV;  encoding: of every CSV that is not UTF-8
    seed         of the samples: at most 5,000 people are linked

    Every finding has its paper, what the intruder knows, a 95 % interval, its baselines, the worst group, and a way to
    lower it; see ``Figure``. If a finding needs a table that you do not pass, it is left out, and a note reports it.
    Raises InputError and PolicyError for missing columns. O(rows columns + sample classes columns).
    Sources: each finding names its own; docs/attacks.md lists them.
    """
    chosen = seed_of(seed) or 0
    claims = _asked(release, certificate, mapping("hierarchies", hierarchies))
    quasi = column_names("quasi_identifiers", quasi_identifiers or claims.quasi)
    if not quasi:
        raise PolicyError(
            "no quasi-identifier is named and there is no certificate; say ⟨quasi_identifiers=[...]⟩ (the columns "
            "others may know)"
        )
    own = column_names("sensitive", claims.sensitive if sensitive is None else sensitive)
    if earlier is None or isinstance(earlier, (str, Path)) or hasattr(earlier, "columns"):
        raise PolicyError("⟨earlier=⟩: pass a list of releases, as in ⟨earlier=['january.csv']⟩")
    given_trees = mapping("hierarchies", hierarchies)
    keywords("quasi-identifier or sensitive column (⟨hierarchies⟩)", given_trees, [*quasi, *own])
    trees = {**claims.hierarchies, **given_trees}
    with within("the release"):
        frame = _open(claims.table, separator, encoding, [*quasi, *own])
    known, tables = [], {}
    for name, given in (("register", register), ("original", original)):
        if given is not None:
            with within(f"the {name}"):
                tables[name] = _open(given, separator, encoding, quasi, [*quasi, *own])
            known.append(tables[name])
    reading = read(frame, quasi, own, known, trees, claims.stars, k or claims.k, l or claims.l, claims.notations)
    people = {name: reading.people(table) for name, table in tables.items()}
    found = [*_found(reading, people.get("original"), people.get("register"), chosen)]
    found += files.found(reading, claims.table, people.get("original"), separator)
    notes = _notes_on_labels(reading, trees, given_trees, bool(claims.quasi)) + _notes_on_values(reading, trees, known)
    notes += _notes(reading, tables, earlier)
    if claims.centers:
        notes.append("centers represent no set of values: only people who have a center's own values are linked to it")
    if earlier:
        others = []
        for i, given in enumerate(earlier, 1):
            with within(f"the other release {i}"):
                others.append(_open(given, separator, encoding, ()))
        people_of = tables.get("original", tables.get("register"))
        told_together, more = composition.found(reading, others, people_of, trees)
        found += told_together
        notes += more
    paths = (p for p in (release, original, register, *earlier) if isinstance(p, (str, Path)))
    return Attack(
        tuple(found), reading.rows, reading.k, reading.l, quasi, own, original is not None, tuple(notes), tuple(paths)
    )


def _found(reading: Reading, original: People | None, register: People | None, seed: int) -> list[Figure]:
    """Findings of linkage and inference."""
    out: list[Figure] = []
    truth = None
    if original is not None:
        truth = linkage.truth_of(reading, original, seed)
        person = linkage.sample(original.rows, len(reading.size), seed)
        own = truth.placed(reading, person)
        for error in ERRORS:
            out += linkage.linked(reading, truth, person, own, error, seed)
    if register is not None:
        out += linkage.unchecked(reading, register, seed)
    strangers = None if register is None or original is None else without(register, original)
    for column in reading.sensitive:
        out.append(inference.by_class(reading, column, seed))
        if original is not None:
            out += inference.by_classifier(reading, column, original, strangers, truth, seed)
    out.sort(key=lambda f: f.attack != "linkage")
    everybody = original if original is not None else register if register and register.rows == reading.rows else None
    if everybody is not None:
        for column in reading.sensitive:
            out += minimality.found(reading, everybody, original, column)
    if truth is not None:
        out += minimality.downcoded(reading, truth, seed)
    return out


def without(register: People, original: People) -> People:
    """The people of a register who aren't in the original. Of equal tuples, the surplus over the original remains."""
    import numpy as np

    shared = [n for n in register.sensitive if n in original.sensitive]
    whole = [np.column_stack([t.codes, *(t.sensitive[n] for n in shared)]) for t in (register, original)]
    number = numbered(np.concatenate(whole))
    mine, theirs = number[: register.rows], number[register.rows :]
    order = np.argsort(mine, kind="stable")
    first = np.searchsorted(mine[order], mine[order])
    place = np.arange(len(mine)) - first  # index among equal tuples
    many = np.bincount(theirs, minlength=int(number.max()) + 1)
    kept = np.sort(order[place >= many[mine[order]]])
    return People(register.codes[kept], {n: v[kept] for n, v in register.sensitive.items()})


def _notes_on_labels(
    reading: Reading, trees: Mapping[str, Any], given: Mapping[str, Any], certified: bool
) -> list[str]:
    """Sentences on cells that nothing explains, and on given hierarchies that explain nothing.

    certified  whether there is a certificate, which can be read only with the hierarchies that it names
    """
    found = [lost_cells(n, s, trees.get(n)) for n, s in zip(reading.quasi, reading.spreads, strict=True)]
    for name, tree in given.items():
        if name in reading.sensitive and not certified:
            found.append(f"the hierarchy of the sensitive column {name!r} changes no figure: attacks don't read it")
        elif name in reading.quasi and not (isinstance(tree, str) and tree in GENERATED):
            found.append(unfit_hierarchy(name, as_text(reading.frame[name]).unique(), tree))
    return [note for note in found if note]


def _notes_on_values(reading: Reading, trees: Mapping[str, Any], known: Sequence[pl.DataFrame]) -> list[str]:
    """Sentences on columns without a hierarchy in which the release has values that no given table has."""
    notes = []
    for name, domain in zip(reading.quasi, reading.domains, strict=True):
        if known and name not in trees:
            held = {value for table in known for value in as_text(table[name]).unique()}
            if more := sum(value not in held for value in domain.values):
                shown = several(more, "value")
                notes.append(f"column {name!r}: no table given has {shown} of the release; if these are classes "
                             "of a hierarchy, pass it")  # fmt: skip
    return notes


def _notes(reading: Reading, tables: Mapping[str, Any], earlier: Sequence[Any]) -> list[str]:
    """Sentences that explain what the figures leave out."""
    notes = []
    if "original" not in tables:
        notes.append("no original: guesses cannot be checked, so linkage by errors, classifiers, minimality and "
                     "downcoding are left out")  # fmt: skip
    if "register" not in tables:
        notes.append("no register: only people in the table are attacked")
    if not earlier:
        notes.append("no other release of these people: composition is left out")
    if reading.l <= 1 and reading.sensitive:
        notes.append("no l of the frequency form (no value more than 1/l of a class): minimality is left out")
    elif (
        reading.sensitive and "original" not in tables and tables.get("register", reading.frame).height != reading.rows
    ):
        notes.append("minimality needs everybody in the table and nobody else: an original, or a register of them")
    if not reading.sensitive:
        notes.append("no sensitive column is named: nothing is inferred")
    return notes


class _Claims:
    """What a release states about itself: its table, columns, promises, and the hierarchies for its labels."""

    def __init__(self, table: Any, policy: Any = None, stars: Mapping[str, int] | None = None) -> None:
        self.table = table
        self.quasi: Sequence[str] = () if policy is None else policy.grouped
        self.sensitive: Sequence[str] = () if policy is None else policy.sensitive
        self.hierarchies: Mapping[str, Any] = {} if policy is None else policy.hierarchies
        self.stars = dict(stars or {})
        self.notations: Mapping[str, str] = {} if policy is None else policy.notations
        self.centers = policy is not None and policy.publish == "centers"
        models = () if policy is None else policy.privacy
        self.k = max((m.k for m in models if hasattr(m, "k") and type(m).__name__ == "KAnonymity"), default=1)
        self.l: dict[str, float] = {}  # of each sensitive column that has a promise
        for model in models:
            if type(model).__name__ == "LDiversity":
                for name in self.sensitive if model.column is None else [model.column]:
                    self.l[name] = max(float(model.l), self.l.get(name, 1.0))


def _asked(release: Any, certificate: str | Path | None, hierarchies: Mapping[str, Any]) -> _Claims:
    """The claims of a release in memory, or of a certificate that is named or is next to a path."""
    if hasattr(release, "policy") and hasattr(release, "table"):
        return _Claims(release.table, release.policy, release.facts.stars)
    path = certificate
    if path is None and isinstance(release, (str, Path)) and certificate_path(lakes.folder_of(release)).is_file():
        path = certificate_path(lakes.folder_of(release))
    if path is None:
        return _Claims(release)
    record = read_json(Path(path))
    try:
        policy = Policy.read(path, **({"hierarchies": dict(hierarchies)} if hierarchies else {}))
    except PolicyError as error:
        raise InputError(f"{Path(path).name!r} is no certificate of a table: {error}") from None
    return _Claims(release, policy, record.get("stars"))


def _open(
    given: Any, separator: str | None, encoding: str | None, needed: Sequence[str], read: Sequence[str] | None = None
) -> pl.DataFrame:
    """A table in memory. read: the columns that are read if they are there; None: all"""
    table = given.table if hasattr(given, "policy") else given
    refuse_database(table)
    separator, encoding = where_needed(table, separator, encoding)
    opened = open_table(table, separator=separator, encoding=encoding, needed=needed)
    require(opened.columns, needed)
    return empty_as_missing(opened.polars([c for c in opened.columns if read is None or c in read]))
