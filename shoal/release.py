"""A release: the published table, its certificate and its audit; written whole and verified, or not at all."""

from __future__ import annotations

import datetime
import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import VerificationError
from shoal.model.audit import Audit, finite
from shoal.model.certificate import Certificate
from shoal.model.policy import Policy
from shoal.model.privacy import PrivacyModel


def audit_table(table: Any, policy: Policy, threshold: float, models: Sequence[PrivacyModel]) -> Audit:
    """Judge an opened table: only the named columns leave the engine."""
    from shoal.judge.privacy import judge

    names = [*policy.grouped, *policy.sensitive]
    if hasattr(table, "polars"):
        frame = table.polars(names)
    else:
        frame = table.frame.select(names).collect(backend="polars").to_native()
    return judge(frame, policy.grouped, policy.sensitive, models, threshold)


@dataclass(frozen=True, eq=False)
class Release:
    """What may be published, with what it cost.

    table        the same kind of frame as came in (a path gives Polars)
    certificate  cost, lower bound and the theorem behind each
    cost         {"stars", "suppressed_tuples", "ncp"}; ``loss`` has the other measures too, ``measure`` computes them
    groups       number of classes of rows published alike; rows: number of rows
    stars        per quasi-identifier, the number of starred cells; changed: of cells published coarser
    before       privacy of the table as it came
    """

    table: Any
    policy: Policy
    certificate: Certificate
    method: str
    attempts: tuple[Mapping[str, Any], ...]
    cost: Mapping[str, float]
    measure: Callable[[], Mapping[str, float]]
    groups: int
    rows: int
    stars: Mapping[str, int]
    changed: Mapping[str, int]
    published: Mapping[str, frozenset[str | None]]
    before: Mapping[str, Any]
    from_path: str | None
    separator: str | None
    seconds: dict[str, float] = field(default_factory=dict)

    @cached_property
    def audit(self) -> Audit:
        """The published table judged by code that shares nothing with what made it."""
        from shoal.engines.open import open_table

        clock = time.perf_counter()
        found = audit_table(open_table(self.table), self.policy, 0.2, self.policy.privacy)
        self.seconds["verify"] = time.perf_counter() - clock
        return found

    @cached_property
    def loss(self) -> Mapping[str, float]:
        """Every loss measure by its name; computed when first asked for."""
        return {**self.measure(), **self.cost}

    def check(self) -> None:
        """VerificationError unless the published table meets every model asked for and has every row."""
        self._accept(self.audit)

    def _accept(self, audit: Audit) -> None:
        if audit.rows != self.rows:
            raise VerificationError(f"the release has {audit.rows} rows, the table {self.rows}; nothing was published")
        for found in audit.checks:
            if not found.passes:
                where = f" in column {found.column!r}" if found.column else ""
                raise VerificationError(
                    f"the release reaches only {found.level} where {found.model} asked for {dict(found.asked)}{where}; "
                    "nothing was published. This is a defect of shoal: please report it"
                )
        if audit.classes > self.groups:  # fewer where a format writes two values alike, as Excel an empty text
            raise VerificationError(f"the release has {audit.classes} classes, expected {self.groups}")

    def write(
        self, path: str | Path, certificate: str | Path | None = None, *, progress: Callable[[str], None] | None = None
    ) -> Path:
        """Write the table by the file's ending, verified on the bytes written, and its certificate beside it.

        path         CSV (also .gz), Parquet or Excel
        certificate  a JSON file; RELEASE.certificate.json when None

        The file appears under its name only after the judge has read it back; raises VerificationError otherwise.
        Returns the certificate's path.
        """
        from shoal.engines.files import check_targets, publish_file, store
        from shoal.engines.open import open_table

        path = Path(path)
        beside = certificate_path(path) if certificate is None else Path(certificate)
        check_targets([path, beside], [self.from_path])
        frame = open_table(self.table)
        clock = time.perf_counter()
        content = (
            frame.polars(frame.columns)
            if hasattr(frame, "polars")
            else frame.frame.collect(backend="polars").to_native()
        )
        from shoal.engines.columns import starred_text
        from shoal.engines.files import kind_of
        from shoal.judge.file import seal

        facts: dict[str, Any] = {}
        shown = dict(self.stars)
        if kind_of(path) == "csv":
            content, shown = starred_text(content, self.stars, self.published, self.policy.star)
            facts["starred_as_missing"] = [name for name, count in self.stars.items() if count != shown[name]]

        def fill(temporary: Path) -> None:
            nonlocal clock
            store(content, temporary, self._separator(path))
            self.seconds["write"] = time.perf_counter() - clock
            clock = time.perf_counter()

        def judge_bytes(temporary: Path) -> None:
            audit, facts["sha256"], facts["bytes"] = self._judge_file(temporary, self._separator(path), shown)
            self._accept(audit)
            self.__dict__["audit"] = audit
            self.seconds["verify"] = time.perf_counter() - clock
            record = json.loads(json.dumps(self.record(path, facts), default=str))
            text = json.dumps({**record, "seal": seal(record)}, indent=2, ensure_ascii=False)
            publish_file(beside, lambda t: t.write_text(text + "\n", encoding="utf-8"))

        publish_file(path, fill, judge_bytes)
        return beside

    def _separator(self, path: Path) -> str:
        """As in the table that came, if the new file is not of another kind."""
        from shoal.engines.files import usual_separator

        usual = usual_separator(path)
        return usual if usual != "," else self.separator or usual

    def _judge_file(self, path: Path, separator: str, stars: Mapping[str, int]) -> tuple[Audit, str, int]:
        """Read the bytes again: privacy, classes, stars, and that nothing but published values stands there."""
        from shoal.judge.file import judge_release

        return judge_release(
            path,
            self.policy.grouped,
            self.policy.sensitive,
            self.policy.privacy,
            star=self.policy.star,
            stars=stars,
            allowed=self.published,
            separator=separator,
        )

    def report(self, path: str | Path) -> Path:
        """One self-contained HTML page that opens offline."""
        from shoal.engines.files import check_target, publish_file
        from shoal.report.page import page

        path = check_target(path, self.from_path)
        text = page(
            {**self.as_dict(), "loss": dict(self.loss)}, self.audit.as_dict(), self.policy.describe(), dict(self.before)
        )
        publish_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
        return path

    def privacy(self) -> dict[str, Any]:
        """Level reached by each model asked for; several sensitive columns: the weakest."""
        out: dict[str, Any] = {}
        weaker_of = {model.short: model.weaker for model in self.policy.privacy}
        for found in self.audit.checks:
            weaker = weaker_of[found.short]
            known = out.get(found.short)
            level = finite(found.level)
            out[found.short] = level if known is None or level is None else weaker(known, level)
        if "k" not in out:
            out["k"] = self.audit.k
        return out

    def as_dict(self) -> dict[str, Any]:
        """The facts of ``--json``: plain values only."""
        return {
            "rows": self.rows,
            "groups": self.audit.classes,
            "smallest_group": self.audit.smallest_class,
            "privacy": self.privacy(),
            "loss": dict(self.cost),
            "stars": dict(self.stars),
            "changed": dict(self.changed),
            "certificate": self.certificate.as_dict(),
            "method": self.method,
            "attempts": [dict(a) for a in self.attempts],
            "seconds": {k: round(v, 4) for k, v in self.seconds.items()},
        }

    def record(self, path: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
        """What the certificate file holds."""
        import shoal

        inside = self.as_dict()
        return {
            "format": 1,
            "made_by": {
                "shoal": shoal.__version__,
                "python": platform.python_version(),
                "polars": pl.__version__,
            },
            "made_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "release": {"file": path.name, "rows": self.rows, **facts},
            "policy": self.policy.describe(),
            "shuffled": not self.policy.keep_order,
            "missing_values": "a missing value is a value of its own, never a wildcard",
            **{k: inside[k] for k in ("groups", "smallest_group", "privacy", "loss", "stars", "changed", "method")},
            "separator": self._separator(path),
            "certificate": inside["certificate"],
        }


def certificate_path(path: Path) -> Path:
    """release.csv -> release.certificate.json, beside it."""
    name = path.name
    for ending in (".csv.gz", ".tsv.gz", path.suffix):
        if ending and name.lower().endswith(ending):
            name = name[: -len(ending)]
            break
    return path.with_name(f"{name}.certificate.json")


def file_hash(path: str | Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
