"""Parts of a series: a shuffled table, with a certificate that names the previous part; a module for each mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl

from shoal.engines.order import ShuffleKey, permutation
from shoal.engines.store import sliced
from shoal.engines.unassigned import Unassigned, singled_in_memory
from shoal.errors import InfeasibleError, InputError, VerificationError
from shoal.judge.file import unquoted
from shoal.judge.series import judge_together
from shoal.judge.tables.large import ReleaseContents, hash_of
from shoal.judge.tables.privacy import judge
from shoal.judge.tables.shown import shown_loss
from shoal.model.audit import Audit
from shoal.model.certificate import Guarantee
from shoal.model.policy import Policy
from shoal.publishing.documents import sealed
from shoal.publishing.series_folder import CERTIFICATE, RELEASE
from shoal.publishing.tables import statement
from shoal.publishing.tables.limits import scales_of
from shoal.publishing.verifying.verify import verify

MANY_MADE_UP = 0.05  # above this share, statistics of a part can show its made-up rows


@dataclass(frozen=True, kw_only=True)
class NewPart:
    """A part that is ready to be added: the file of its table, the bytes of its certificate, and its figures.

    made_up    rows without a person
    waiting    rows that wait for the next part
    held_back  rows of groups that are held back
    loss       the loss that the table shows
    other_kind columns that have ranges in the part before and sets in this one, or the reverse
    warnings   sentences that its owner should read; a property
    """

    release: Path = field(repr=False)
    certificate: bytes = field(repr=False)
    rows: int
    groups: int
    smallest: int
    loss: Mapping[str, float | None]
    privacy: Mapping[str, Any]
    made_up: int = 0
    waiting: int = 0
    held_back: int = 0
    other_kind: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what a reader of the part would not expect: columns of another kind than before, and many
        rows that are about no one."""
        other = tuple(
            f"column {name!r} has ranges in one of this part and the part before, and sets in the other, so its values "
            "were read as numbers or dates in one table and as texts in the other; write them alike in each table"
            for name in self.other_kind
        )
        if self.made_up <= MANY_MADE_UP * self.rows:
            return other
        share = 100 * self.made_up / self.rows
        return (
            *other,
            f"{self.made_up:,} of {self.rows:,} rows ({share:.1f} %) are made up, and statistics of the part count "
            "them; fewer or coarser quasi-identifiers, a smaller l, and a series that starts with fewer signatures "
            "need fewer; a series that starts without counterfeits holds rows back instead",
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; "warnings" only if there are any."""
        names = ("rows", "groups", "smallest", "loss", "privacy", "made_up", "waiting", "held_back")
        warned = {"warnings": list(self.warnings)} if self.warnings else {}
        return {name: getattr(self, name) for name in names} | warned


class _CertificateContent:
    """The attributes of a release that ``certificate_file`` needs."""

    def __init__(self, policy: Policy, audit: Audit, carried: Unassigned) -> None:
        self.policy, self.audit = policy, audit
        self.facts = SimpleNamespace(rows=audit.rows, carried=carried, harbor=None)
        self.certificate = SimpleNamespace(unit="stars" if policy.publish == "stars" else "ncp", ratio=None)
        self._placement = SimpleNamespace(order="fresh secret", orders={}, separator=lambda path: ",")


def make_part(
    frame: pl.LazyFrame,
    policy: Policy,
    series: Mapping[str, Any],
    scratch: Path,
    *,
    carried: Unassigned | None = None,
    sign: str | Path | None = None,
    made_up: int = 0,
    waiting: int = 0,
    held_back: int = 0,
) -> NewPart:
    """Write a published table, audit it, and make its certificate.

    frame    columns of text, rows in a secret order
    scratch  the folder for the table
    series   the certificate's entries about the series: id, mode, number, previous, ...

    Raises VerificationError if the table doesn't meet its models.
    """
    names = [*policy.grouped, *policy.sensitive]
    held = _held(frame, names)
    if not held.counts.size:
        raise InputError("nothing is left to publish in this part")
    models = [m for m in policy.of_rows if m.applies_to != "population"]
    audit = judge(held.cells, policy.grouped, policy.sensitive, models, counts=held.counts, **scales_of(policy))
    failed = [c.model for c in audit.checks if not c.passes]
    if failed:
        raise VerificationError(f"the part does not meet {failed[0]}, and nothing is published")
    release = scratch / RELEASE
    _write(frame, release)
    paper: Any = _CertificateContent(policy, audit, _shown_in(frame, carried or Unassigned()))
    shown = shown_loss(held.cells, held.counts, statement.published(paper, ()))
    written = {"sha256": hash_of(release), "bytes": release.stat().st_size}
    content = statement.certificate_file(paper, Path(RELEASE), written, shown, (), bound=False)
    proof = {**content["certificate"], "guarantee": Guarantee().as_dict()}  # the theorems hold for single releases
    text = sealed({**content, "certificate": proof, "series": dict(series)}, sign)
    return NewPart(
        release=release, certificate=text.encode(), rows=audit.rows, groups=audit.classes,
        smallest=audit.smallest_class, loss=shown.loss, privacy=statement.privacy(paper),
        made_up=made_up, waiting=waiting, held_back=held_back,
    )  # fmt: skip


def of_other_kind(before: Path, now: Path, policy: Policy) -> tuple[str, ...]:
    """The columns of ranges that have sets in one of two parts and ranges in the other. O(rows of both).

    Only the published texts tell this, so a column that has neither in one of the parts is not named.
    """
    if policy.publish != "ranges":
        return ()
    names = [n for n in policy.grouped if n not in policy.hierarchies]
    kinds = [_ways_of(path, names) for path in (before, now)]
    return tuple(
        name for name in names if {len(kind[name]) for kind in kinds} == {1} and kinds[0][name] != kinds[1][name]
    )


def _ways_of(path: Path, names: Sequence[str]) -> dict[str, set[str]]:
    """For each column, whether a part has ranges or sets in it. A value that is written like one of them is quoted."""
    shown = pl.scan_csv(path, infer_schema=False, glob=False, with_column_names=unquoted)
    ways = {"ranges": r"^\[.*\]$", "sets": r"^\{.*\}$"}
    found = shown.select(
        pl.col(n).str.contains(form).any().alias(f"{n} {way}") for n in names for way, form in ways.items()
    )
    held = found.collect().row(0, named=True) if names else {}
    return {n: {way for way in ways if held[f"{n} {way}"]} for n in names}


def refuse_together(earlier: Sequence[Path], part: NewPart, policy: Policy) -> None:
    """InfeasibleError if each part meets a model, but all parts together don't.

    This is possible only for models that compare a group with the whole table. For all other models, parts that meet
    the model also meet it together.
    """
    models = [m for m in policy.of_rows if m.compares]
    if not models or not earlier:
        return
    found = judge_together([*earlier, part.release], policy.describe(), models, policy.hierarchies)
    if not found.holds:
        raise InfeasibleError(
            f"all parts together: {found.found}, though each part meets it, so nothing is published; ask for a "
            "stricter level when you start a series, or start a new series with this part"
        )


def _write(frame: pl.LazyFrame, path: Path) -> None:
    with open(path, "wb") as file:
        for at, rows in enumerate(sliced(frame)):
            rows.write_csv(file, include_header=not at)


def _shown_in(frame: pl.LazyFrame, carried: Unassigned) -> Unassigned:
    """The insensitive columns with the unique rows of the part alone, so that waiting rows leave no trace.

    Counted column by column, because the table may be larger than memory; the judge counts the file by its own code.
    """
    if not carried.columns:
        return carried
    found = singled_in_memory(frame.select(n).collect(engine="streaming").to_series() for n in carried.columns)
    return replace(carried, alone=found.alone, together=found.together)


def shuffled(frame: pl.DataFrame) -> pl.LazyFrame:
    """The rows in a secret order."""
    return frame[permutation(frame.height, ShuffleKey.of(None).order)].lazy()


def _held(frame: pl.LazyFrame, names: list[str]) -> ReleaseContents:
    counted = frame.group_by(names).agg(pl.len().alias("shoal rows")).collect(engine="streaming")
    return ReleaseContents(counted.select(names), counted["shoal rows"].to_numpy(), tuple(frame.collect_schema()))


def judged_bytes(policy: Policy) -> Any:
    """A judge for the folder of a part, which checks every line of its certificate on the written bytes."""

    def look(folder: Path) -> None:
        found = verify(folder / RELEASE, folder / CERTIFICATE, hierarchies=dict(policy.hierarchies))
        wrong = [f for f in found.findings if not f.holds]
        if wrong:
            raise VerificationError(f"the part is not published: {wrong[0].check}, {wrong[0].found}")

    return look
