"""What a release of a table was made from, as it is handed over to recheck it: hierarchies, original, population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from shoal.engines.recognize import by_name
from shoal.engines.safe_harbor import recoded
from shoal.engines.scope import Scope
from shoal.errors import InputError, PolicyError
from shoal.judge.finding import CONSISTENT, RECOMPUTED, STATED, Finding
from shoal.judge.originals.population import beside, outside, reading_of
from shoal.model.audit import Audit
from shoal.model.hierarchy import GENERATED, Hierarchy
from shoal.model.policy import PLACE
from shoal.model.record import digest, source_of
from shoal.model.safe_harbor import OLDEST
from shoal.publishing.opening import opened, read_census
from shoal.publishing.verifying.own_rows import Outer
from shoal.publishing.verifying.recorded import Record

RULED = ("a zip code", "a birth date or age")  # what the Safe Harbor recodes, as columns are recognized by name


def hierarchies_of(
    record: Record, given: Mapping[str, Any], folder: Path, needed: Sequence[str]
) -> tuple[dict[str, Any], list[Finding]]:
    """The hierarchies a release was published by: handed over, or found by name beside the certificate or here.

    needed  columns whose hierarchy must be found; of another column it may be missing, which is said
    """
    out: dict[str, Any] = {}
    findings: list[Finding] = []
    for name in given:
        if name not in record.hierarchies:
            raise InputError(f"the certificate names no hierarchy of a column {name!r}")
    for name, (source, expected) in record.hierarchies.items():
        if source not in GENERATED and expected is None:
            findings.append(Finding(f"hierarchy of {name}", False, "the certificate names it without its hash"))
            continue
        if source in GENERATED:
            out[name] = source
            text = f"generated ({source}); a label is read by what it says"
            findings.append(Finding(f"hierarchy of {name}", True, text, CONSISTENT))
            continue
        try:
            found = Hierarchy.of(given[name] if name in given else source_of(name, source, folder))
        except InputError:
            if name in needed or name in given:
                raise
            text = "not at hand; hand it over to have it checked"
            findings.append(Finding(f"hierarchy of {name}", True, text, STATED))
            continue
        except PolicyError as error:
            raise InputError(f"the hierarchy of {name!r} cannot be used: {error!s}") from None
        out[name] = found
        same = digest(found) == expected
        text = "the one certified" if same else "not the one certified"
        findings.append(Finding(f"hierarchy of {name}", same, text, RECOMPUTED))
    return out, findings


def left_as_they_were(record: Record, columns: Sequence[str]) -> list[Finding]:
    """Whether the Safe Harbor is said to have passed over a column that is called a zip, an age or a birth."""
    if record.harbor is None:
        return []
    recognized = ((name, by_name(name)) for name in columns if name not in record.harbor.columns)
    bare = [(name, said.what) for name, said in recognized if said is not None and said.what in RULED]
    text = f"column {bare[0][0]!r} is called {bare[0][1]}, and it was not recoded" if bare else "none was passed over"
    year = str(record.raw.get("made_at"))[:4]
    if not bare and not (year.isdigit() and int(year) - OLDEST - record.harbor.born in (1, 2)):  # made over New Year
        return [Finding("recoded columns", False, "another year is certified than that of the oldest when it was made")]
    return [Finding("recoded columns", not bare, text, RECOMPUTED if bare else CONSISTENT)]


def original_of(
    original: Any, record: Record, text: tuple[str | None, str | None], place: tuple[str | None, str | None]
) -> pl.DataFrame:
    """The original as a frame, its coordinates joined as the release shows them.

    text  separator and encoding of a CSV;  place  table and query of a database
    """
    source = opened(original, *text, Scope(table=place[0], query=place[1]))
    if record.harbor is not None:
        rules = {n: rule for n, rule in record.harbor.columns.items() if n in source.columns}
        source = source.with_columns(recoded(source[n], rule, record.harbor.born) for n, rule in rules.items())
    pair = record.raw["policy"].get("coordinates")
    if isinstance(pair, list) and len(pair) == 2 and all(isinstance(c, str) and c in source.columns for c in pair):
        joined = pl.concat_str([pl.col(c).cast(pl.String) for c in pair], separator=" ").alias(PLACE)
        source = source.with_columns(joined).drop(pair)
    return source


def population_beside(record: Record, population: Any, given: Mapping[str, Any], folder: Path) -> Outer:
    """What adds to the audit of a release what its population tells."""
    policy, census = record.policy, None
    sources: dict[str, Any] = {}
    if population is not None:
        if policy.population is None:
            raise InputError("the certificate names no population; leave it out")
        pair = record.raw["policy"].get("coordinates")
        census = read_census(population, policy.quasi_identifiers, tuple(pair) if pair else None)
        sources = hierarchies_of(record, given, folder, tuple(record.hierarchies))[0]
    said = record.said
    read = reading_of(policy, said.publish, sources, said.stars, said.blanks, said.sheet)

    def add(frame: pl.DataFrame, audit: Audit) -> Audit:
        found = outside(frame, policy, census, read, None)
        return audit if found is None else beside(audit, found, policy.privacy)

    return add
