"""The private record beside a certificate, and a release verified with it as with a certificate."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import shoal
from shoal.judge.file import seal


def kept(certificate: str | Path) -> Path:
    """The record that ``write`` left beside a certificate."""
    path = Path(certificate)
    return path.with_name(path.name.removesuffix(".json").removesuffix(".certificate") + ".record.json")


def beside(record: str | Path) -> Path:
    """The certificate that belongs to a record of the usual name."""
    path = Path(record)
    named = path.with_name(path.name.removesuffix(".record.json") + ".certificate.json")
    return named if named.exists() else path.with_name(path.name.removesuffix(".record.json") + ".json")


def _pair(given: str | Path | None, release: str | Path) -> dict[str, Any]:
    if given is None:
        from shoal.paths import certificate_path

        given = kept(certificate_path(Path(release)))
    try:
        private = "private" in json.loads(Path(given).read_text())
    except (ValueError, TypeError, RecursionError):
        private = str(given).endswith("record.json")
    return {"certificate": beside(given), "record": given} if private else {"certificate": given}


def verify(release: str | Path, record: str | Path | None = None, original: Any = None, **more: Any) -> Any:
    """``shoal.verify`` with the record in the place of the certificate, which lies beside it."""
    return _as_record(shoal.verify(release, original=original, **_pair(record, release), **more))


def _as_record(verdict: Any) -> Any:
    """What was found, by the names that the record's statements have."""
    own = {f.check.removeprefix("record, ") for f in verdict.findings if f.check.startswith("record, ")}
    found = [f for f in verdict.findings if f.check not in own]
    return replace(verdict, findings=tuple(f._replace(check=f.check.removeprefix("record, ")) for f in found))


def prove(release: str | Path, record: str | Path | None = None, original: Any = None, **more: Any) -> Any:
    """``shoal.prove`` in the same way."""
    return _as_record(shoal.prove(release, original=original, **_pair(record, release), **more))


def holding(verdict: Any) -> Any:
    """A verdict, once everything that was looked at holds."""
    assert verdict.holds, [f for f in verdict.findings if not f.holds]
    return verdict


def failing(verdict: Any) -> list[str]:
    """The checks of a verdict that do not hold."""
    return [f.check for f in verdict.findings if not f.holds]


def write_sealed(paper: Path, facts: dict[str, Any]) -> None:
    """A certificate or record with these entries, sealed as a forger would."""
    paper.write_text(json.dumps(facts | {"seal": seal(facts)}))


def forge(paper: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """A certificate or record changed and sealed again, as a forger would."""
    facts = json.loads(paper.read_text())
    change(facts)
    write_sealed(paper, facts)


def put(*way: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    """A change of one entry; ``to`` may be a function of the whole."""

    def change(facts: dict[str, Any]) -> None:
        held: Any = facts
        for name in way[:-1]:
            held = held[name]
        held[way[-1]] = to(facts) if callable(to) else to

    return change


def resealed(paper: Path, **more: Any) -> None:
    """The same certificate or record with other entries, of a release that was written over, sealed again."""
    forge(paper, lambda facts: facts.update(more))
