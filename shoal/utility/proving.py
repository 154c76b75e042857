"""A certificate's lower bound held against a second search on the table itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.engines.targets import certificate_of
from shoal.errors import InputError
from shoal.judge.finding import STATED, Finding
from shoal.model.certificate import ROUNDING, Certificate
from shoal.model.policy import Policy
from shoal.model.task import nothing
from shoal.publishing.recorded import read_record
from shoal.publishing.verify import Verdict, verify
from shoal.watching import watched


@watched
def prove(
    release: str | Path,
    certificate: str | Path | None = None,
    original: Any = None,
    *,
    effort: str | float = "balanced",
    population: Any = None,
    separator: str | None = None,
    encoding: str | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    signer: str | Path | None = None,
    progress: Callable[[str, float | None], None] = nothing,
) -> Verdict:
    """``verify`` with the original, and then the search made again: is the lower bound true, and is it proved again?

    original  the table it was made from, a path or a frame
    effort    of the search: "fast", "balanced", "thorough" or seconds; the rest is asked as it was asked then
    others    as in ``verify``

    The finding "bound" is replaced: false where a release that costs less than the bound was found, "recomputed" where
    the search proved at least as much, "stated" in between.  ``verify`` shares no code with the solvers; this runs them
    again, so that a bound somebody wrote into a file does not stand, and one that shoal miscomputes is seen only where
    a cheaper release turns up.  Costs what ``anonymize`` costs.  Raises InputError for anything but the release of a
    table, and without the original.

    Examples:
        >>> import polars as pl, shoal, tempfile, pathlib
        >>> people = pl.DataFrame({"age": [34, 34, 35, 61, 61, 62]})
        >>> place = pathlib.Path(tempfile.mkdtemp()) / "release.csv"
        >>> beside = shoal.anonymize(people, quasi_identifiers=["age"], k=3, publish="ranges").write(place)
        >>> next(f.how for f in prove(place, original=people).findings if f.check == "bound")
        'recomputed'
    """
    from shoal.pipeline import prepare

    if original is None:
        raise InputError("a bound is proved again from the table the release was made from; name it as the original")
    beside = certificate_of(release, certificate)
    if read_record(beside).get("kind", "table") != "table":
        raise InputError("only the bound of a table's release is proved again; verify rechecks this file")
    how = {"population": population, "separator": separator, "encoding": encoding, "hierarchies": hierarchies}
    verdict = verify(release, beside, original, signer=signer, progress=progress, **how)
    more = {name: given for name, given in (("hierarchies", hierarchies), ("population", population)) if given}
    asked = Policy.read(beside, **more, effort=effort, seed=None)
    again = prepare(original, asked, separator=separator, encoding=encoding, progress=progress).certificate
    others = tuple(f for f in verdict.findings if f.check != "bound")
    findings = (*others, judged(verdict.certificate, again))
    return replace(verdict, holds=all(f.holds for f in findings), findings=findings)


def judged(stated: Certificate, again: Certificate) -> Finding:
    """A certified bound beside cost and bound of a second answer to the same question."""
    said = f"{stated.lower_bound:.9g} {stated.unit} certified"
    if again.unit != stated.unit:
        return Finding("bound", True, f"{said}; searched again by {again.unit}, which says nothing of it", STATED)
    if again.cost < stated.lower_bound * (1 - ROUNDING):
        return Finding("bound", False, f"{said}, and a release that costs {again.cost:.9g} was found")
    if again.lower_bound >= stated.lower_bound * (1 - ROUNDING):
        return Finding("bound", True, f"{said}, {again.lower_bound:.9g} proved again")
    text = f"{said}, {again.lower_bound:.9g} proved again, and no release that costs less than certified was found"
    return Finding("bound", True, text, STATED)
