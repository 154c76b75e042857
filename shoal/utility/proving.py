"""A certificate's lower bound held against a second search on the table itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.engines.targets import certificate_of, record_path
from shoal.errors import InputError
from shoal.judge.finding import STATED, Finding
from shoal.model.certificate import ROUNDING, Certificate
from shoal.model.policy import Policy
from shoal.model.task import nothing
from shoal.pipeline import prepare
from shoal.publishing.crosswalks.recomputed import SAME, asked_again
from shoal.publishing.verifying.recheck import sources_of
from shoal.publishing.verifying.recorded import read_record
from shoal.publishing.verifying.verify import Verdict, verify
from shoal.watching import watched


@watched
def prove(
    release: str | Path,
    certificate: str | Path | None = None,
    original: Any = None,
    *,
    effort: str | float = "balanced",
    record: str | Path | None = None,
    population: Any = None,
    separator: str | None = None,
    encoding: str | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    signer: str | Path | None = None,
    table: str | None = None,
    query: str | None = None,
    progress: Callable[[str, float | None], None] = nothing,
) -> Verdict:
    """``verify`` with the original, and then the search made again: is the lower bound true, and is it proved again?

    original  what it was made from, as in ``verify``: a table, a path or a frame; of a crosswalk the source or a list
    effort    of the search: "fast", "balanced", "thorough" or seconds; the rest is asked as it was asked then.  "same":
              made again with the method, effort and seed on record, and the finding "repeated" says whether it costs
              what is certified; of efforts in seconds it need not
    record    the private record, which holds the bound; RELEASE.record.json when None
    others    as in ``verify``

    The finding "bound" is replaced: false where an answer that costs less than the bound was found, "recomputed" where
    the search proved at least as much, "stated" in between.  ``verify`` shares no code with the solvers; this runs them
    again, so that a bound somebody wrote into a file does not stand, and one that shoal miscomputes is seen only where
    a cheaper answer turns up.  Costs what making it costs.  Raises InputError without the
    original, and where the certificate does not hold the whole question: a set-up cost for each record, say.

    Examples:
        >>> import polars as pl, shoal, tempfile, pathlib
        >>> people = pl.DataFrame({"age": [34, 34, 35, 61, 61, 62]})
        >>> place = pathlib.Path(tempfile.mkdtemp()) / "release.csv"
        >>> beside = shoal.anonymize(people, quasi_identifiers=["age"], k=3, publish="ranges").write(place)
        >>> next(f.how for f in prove(place, original=people).findings if f.check == "bound")
        'recomputed'
    """
    if original is None:
        raise InputError("a bound is proved again from what the release was made from: say original=TABLE")
    beside = certificate_of(release, certificate)
    text: dict[str, Any] = {"separator": separator, "encoding": encoding}
    place: dict[str, Any] = {"table": table, "query": query}
    kept = record_path(beside) if record is None else Path(record)
    if not kept.is_file():
        raise InputError(f"a bound is proved again from the private record; there is no {kept.name!r}: say record=FILE")
    others: dict[str, Any] = {"record": kept, "population": population, "hierarchies": hierarchies, "signer": signer}
    verdict = verify(release, beside, original, progress=progress, **others, **text, **place)
    known = read_record(kept, private=True)
    stated = verdict.record
    assert stated is not None
    if known.get("kind", "table") == "table":
        more = {name: given for name, given in (("hierarchies", hierarchies), ("population", population)) if given}
        asked = Policy.read(kept, **more, **({} if effort == SAME else {"effort": effort}))
        again = prepare(original, asked, **text, **place, progress=progress).certificate
        pairs = {"bound": (stated, again)}
    else:
        progress("solving", None)
        sources = sources_of(original, known, separator, encoding, (hierarchies or {}, beside.parent))
        pairs = asked_again(Path(release), known, sources, effort)
    rest = tuple(f for f in verdict.findings if f.check not in pairs)
    findings = (*rest, *(judged(*pair)._replace(check=check) for check, pair in pairs.items()))
    if effort == SAME:
        findings = (*findings, repeated(*pairs["bound"]))
    return replace(verdict, holds=all(f.holds for f in findings), findings=findings)


def repeated(stated: Certificate, again: Certificate) -> Finding:
    """Whether an answer made again as it was made costs what is certified."""
    if again.unit == stated.unit and abs(again.cost - stated.cost) <= ROUNDING * abs(stated.cost):
        return Finding("repeated", True, f"made again, it costs {again.cost:.9g} {again.unit}, as certified")
    said = f"{stated.cost:.9g} {stated.unit} certified; made again, it costs {again.cost:.9g} {again.unit}"
    return Finding("repeated", True, f"{said}: by another version, machine or order of rows perhaps", STATED)


def judged(stated: Certificate, again: Certificate) -> Finding:
    """A certified bound beside cost and bound of a second answer to the same question."""
    said = f"{stated.lower_bound:.9g} {stated.unit} certified"
    if again.unit != stated.unit:
        return Finding("bound", True, f"{said}; searched again by {again.unit}, which says nothing of it", STATED)
    if again.cost < stated.lower_bound * (1 - ROUNDING):
        return Finding("bound", False, f"{said}, and an answer that costs {again.cost:.9g} was found")
    if again.lower_bound >= stated.lower_bound * (1 - ROUNDING):
        return Finding("bound", True, f"{said}, {again.lower_bound:.9g} proved again")
    text = f"{said}, {again.lower_bound:.9g} proved again, and no answer that costs less than certified was found"
    return Finding("bound", True, text, STATED)
