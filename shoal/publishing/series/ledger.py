"""The private ledger of a series: what has been shown of every person, under keyed hashes.

A ledger is a folder of two files that only its owner may enter: ``persons.parquet`` with a line per person, and
``ledger.json``, which names the certificate it belongs to and the hash of the other file, under an HMAC.  No value of
the table stands in it: persons, published tuples and sensitive values are BLAKE2b hashes under the series' key.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import VerificationError
from shoal.model.record import canonical, read_json

KEY_BYTES = 32
PERSONS, LEDGER = "persons.parquet", "ledger.json"
SCHEMA = {
    "person": pl.String,
    "part": pl.Int64,
    "tuple": pl.String,
    "value": pl.String,
    "possible": pl.String,
}


class Keyed:
    """Keyed hashes of texts: 16 bytes of BLAKE2b in hexadecimal; ``what`` keeps persons and values apart.

    A loop over distinct texts, about a microsecond each.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def one(self, what: str, texts: Sequence[str | None]) -> str:
        """The hash of one text, or of several in their order."""
        data = json.dumps([what, *texts], ensure_ascii=False).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=self._key, digest_size=16).hexdigest()

    def column(self, what: str, texts: Iterable[str | None]) -> list[str]:
        """A hash for each text, as ``one`` gives it; equal texts are hashed once."""
        begun = hashlib.blake2b(f'["{what}", '.encode(), key=self._key, digest_size=16)
        quoted = json.encoder.encode_basestring  # what json.dumps writes of a text
        known: dict[str | None, str] = {}
        out = []
        for text in texts:
            found = known.get(text)
            if found is None:
                hashed = begun.copy()
                rest = "null]" if text is None else f"{quoted(text)}]"
                hashed.update(rest.encode("utf-8", "surrogatepass"))
                found = known[text] = hashed.hexdigest()
            out.append(found)
        return out

    def mac(self, content: Mapping[str, Any]) -> str:
        """HMAC-SHA-256 of a JSON object, its own ``mac`` left out."""
        return hmac.new(self._key, canonical(content, ("mac",)), "sha256").hexdigest()


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """What has been shown by the parts up to ``number``.

    persons   a line per person ever published: ``person``, the last ``part`` with them, the ``tuple`` they were
              published in, their ``value``, and the values that remain ``possible`` (hashes with blanks between)
    waiting   person -> number of parts they have waited for
    units     of mode "again": [tuple, possible, copies], see ``shoal.publishing.series.again``
    """

    number: int = 0
    persons: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))
    waiting: Mapping[str, int] = field(default_factory=dict)
    units: Sequence[tuple[str, str, int]] = ()

    def files(self, keyed: Keyed, series: str, certificate: str) -> dict[str, bytes]:
        """The two files, for the part whose certificate has this SHA-256."""
        buffer = io.BytesIO()
        self.persons.sort("person").write_parquet(buffer, statistics=False)
        held = buffer.getvalue()
        content: dict[str, Any] = {
            "series": series,
            "number": self.number,
            "certificate": certificate,
            "persons": hashlib.sha256(held).hexdigest(),
            "waiting": dict(sorted(self.waiting.items())),
            "units": sorted(map(list, self.units)),
        }
        content["mac"] = keyed.mac(content)
        return {PERSONS: held, LEDGER: json.dumps(content).encode()}

    @classmethod
    def read(cls, folder: Path, keyed: Keyed, series: str, certificate: str) -> Ledger:
        """The ledger of the part with this certificate; VerificationError for a lost, changed or other one."""
        if not (folder / LEDGER).is_file() or not (folder / PERSONS).is_file():
            raise VerificationError(
                f"the ledger {folder.name!r} of the series is lost; without it nobody knows what was shown of whom, so "
                "no part can be added: put it back from a copy"
            )
        content = read_json(folder / LEDGER, "ledger")
        held = (folder / PERSONS).read_bytes()
        sound = hmac.compare_digest(str(content.get("mac")), keyed.mac(content))
        if not sound or hashlib.sha256(held).hexdigest() != content["persons"]:
            raise VerificationError(f"the ledger {folder.name!r} was changed, or belongs to another key")
        if content["series"] != series or content["certificate"] != certificate:
            raise VerificationError(
                f"the ledger {folder.name!r} belongs to another part; put back the one of this part"
            )
        units = [(str(t), str(p), int(n)) for t, p, n in content["units"]]
        return cls(
            number=content["number"],
            persons=pl.read_parquet(io.BytesIO(held)),
            waiting={str(p): int(n) for p, n in content["waiting"].items()},
            units=units,
        )
