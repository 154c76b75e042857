"""The folder of a series: its files, and how a part is added atomically.

::

    series.json                    the request; public
    0001/release.csv               a part; public
    0001/release.certificate.json  its certificate, which names the SHA-256 of the previous one, and in the first part
                                   that of series.json
    private/                       only its owner may enter: key, head.json, ledger-0001/ ...

A part is added by three renames: its ledger, its folder, the head. If the process is killed before the second rename,
the series is unchanged, and a ledger without a part is ignored. After the second rename, the series has one part more,
and the head is updated the next time the series is opened. A head that names more parts than there are, or a part
without its ledger, is refused, because the record of something published would be lost.

The ledger records what was published about each person. Each part has a folder of two files that only its owner may
enter: ``persons.parquet`` with a line for each person in the part, and ``ledger.json``, which names the part's
certificate, the hash of the other file, and the hash of the previous ledger.json, with an HMAC. No value of the table
is in the ledger: persons, published tuples, and sensitive values are BLAKE2b hashes with the series' key.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.atomic import Piece, clear_stale, folder_next_to, publish_together
from shoal.errors import ExistsError, InputError, PolicyError, VerificationError
from shoal.judge.file import seal
from shoal.judge.series import CERTIFICATE, RELEASE, refuse_other
from shoal.judge.tables.large import count_release, hash_of
from shoal.model.certificate import PRIVATE_SETTINGS, canonical, digest, read_json
from shoal.model.hierarchy import REGIONS, Hierarchy, is_built
from shoal.model.policy import Policy
from shoal.model.refusals import refuse_generated
from shoal.publishing.documents import made_now

__all__ = ["Folder", "held", "is_series", "open_series", "part_name", "part_numbers", "start"]


KEY_BYTES = 32
PERSONS, LEDGER = "persons.parquet", "ledger.json"
SCHEMA = {
    "person": pl.String,
    "part": pl.Int64,
    "tuple": pl.String,
    "value": pl.String,
    "possible": pl.String,
}


_HASHED = 1 << 17  # texts hashed at a time, because as Python objects they take several times the memory of a column


class Keyed:
    """Keyed hashes of texts: 16 bytes of BLAKE2b in hexadecimal. ``what`` separates persons from values.

    A loop over distinct texts, about a microsecond each.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def one(self, what: str, texts: Sequence[str | None]) -> str:
        """The hash of one text, or of several in their order."""
        data = json.dumps([what, *texts], ensure_ascii=False).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=self._key, digest_size=16).hexdigest()

    def column(self, what: str, texts: pl.Series) -> pl.Series:
        """The hash of each text in a column, as by ``one``; equal texts are hashed once."""
        distinct = texts if texts.n_unique() == texts.len() else texts.unique()
        some = (distinct.slice(at, _HASHED) for at in range(0, max(distinct.len(), 1), _HASHED))
        made = pl.concat([pl.Series("hash", self._each(what, part), dtype=pl.String) for part in some])
        if distinct is texts:
            return made
        named = pl.DataFrame([distinct.alias("text"), made])
        both = (
            texts.alias("text").to_frame().join(named, on="text", how="left", nulls_equal=True, maintain_order="left")
        )
        return both["hash"]

    def _each(self, what: str, texts: pl.Series) -> Iterator[str]:
        begin = hashlib.blake2b(f'["{what}", '.encode(), key=self._key, digest_size=16).copy
        escaped = texts.str.contains(r'["\\\x00-\x1f]').any()  # a text that json.dumps would escape
        quoted = json.encoder.encode_basestring
        for text in texts:
            hashed = begin()
            if text is None:
                hashed.update(b"null]")
            else:
                hashed.update((f"{quoted(text)}]" if escaped else f'"{text}"]').encode("utf-8", "surrogatepass"))
            yield hashed.hexdigest()

    def table(self, tuples: pl.DataFrame, rows: np.ndarray) -> str:
        """The hash of a table without its order, from the texts of its tuples and the number of rows of each.

        O(n log n) for n tuples.
        """
        names = [f"c{i}" for i in range(tuples.width)]
        held = pl.DataFrame([c.alias(name) for c, name in zip(tuples, names, strict=True)])
        counted = held.with_columns(n=pl.Series(rows)).group_by(names).agg(pl.col("n").sum()).sort(names)
        made = hashlib.blake2b(b'["table"]', key=self._key, digest_size=16)
        for part in counted.iter_slices(_HASHED):
            made.update(part.write_csv(include_header=False, quote_style="non_numeric").encode())
        return made.hexdigest()

    def mac(self, content: Mapping[str, Any]) -> str:
        """HMAC-SHA-256 of a JSON object without its own ``mac``."""
        return hmac.new(self._key, canonical(content, ("mac",)), "sha256").hexdigest()


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """What the parts up to ``number`` have published about each person.

    lines     for each part, a line for each person in it, see ``persons``
    waiting   person -> number of parts for which they have waited
    units     of mode "again": [tuple, possible, copies], see ``shoal.publishing.series.again``
    tables    of mode "increment": for each part, the hash of its table; "" if unknown
    sealed    SHA-256 of the ledger.json that was read, which the next one names

    A part writes only its own lines, and looks persons up in one column of the earlier files. So the cost of adding a
    part is that of its own content plus a lookup in the other parts' persons.
    """

    number: int = 0
    lines: Sequence[pl.LazyFrame] = ()
    waiting: Mapping[str, int] = field(default_factory=dict)
    units: Sequence[tuple[str, str, int]] = ()
    tables: tuple[str, ...] = ()
    sealed: str = ""

    @property
    def persons(self) -> pl.DataFrame:
        """A line for each person ever published: ``person``, the last ``part`` that contains them, their published
        ``tuple``, their ``value``, and the ``possible`` values that remain (hashes separated by blanks)."""
        every = pl.concat([pl.LazyFrame(schema=SCHEMA), *self.lines])
        return every.unique("person", keep="last", maintain_order=True).collect()

    @property
    def people(self) -> int:
        """The number of people who were ever published."""
        if not self.lines:
            return 0
        return int(pl.concat([part.select("person") for part in self.lines]).collect()["person"].n_unique())

    def known(self, persons: pl.Series) -> pl.Series:
        """Those of these people who were published before, each once."""
        if not self.lines:
            return persons.clear()
        every = pl.concat([part.select("person") for part in self.lines])
        new = persons.alias("person").to_frame().lazy()
        return every.join(new, on="person", how="semi").collect(engine="streaming")["person"].unique()

    def after(
        self,
        new: pl.LazyFrame,
        *,
        waiting: Mapping[str, int] | None = None,
        units: Sequence[tuple[str, str, int]] = (),
    ) -> Ledger:
        """The ledger after one more part. new: lines of the people in the part, in the order of their hashes."""
        lines = (*self.lines, new)
        tables = (*self.tables, "")
        return replace(
            self, number=self.number + 1, lines=lines, waiting=dict(waiting or {}), units=units, tables=tables
        )

    def of_table(self, seen: str) -> Ledger:
        """This ledger, with the hash of the last part's table."""
        return replace(self, tables=(*self.tables[:-1], seen))

    def fill(self, folder: Path, keyed: Keyed, series: str, certificate: str) -> None:
        """Write the two files into a folder, for the part whose certificate has this SHA-256."""
        self.lines[-1].sink_parquet(folder / PERSONS, compression="zstd", compression_level=1, statistics=False)
        content: dict[str, Any] = {
            "series": series,
            "number": self.number,
            "certificate": certificate,
            "previous": self.sealed,
            "persons": hash_of(folder / PERSONS),
            "waiting": dict(sorted(self.waiting.items())),
            "units": sorted(map(list, self.units)),
            "table": self.tables[-1],
        }
        content["mac"] = keyed.mac(content)
        (folder / LEDGER).write_text(json.dumps(content))

    @classmethod
    def read(cls, inside: Path, keyed: Keyed, series: str, certificates: Sequence[str]) -> Ledger:
        """The ledger after the parts with these certificates; VerificationError if one is lost, changed, or of another
        series.

        inside  the private folder, with the ledger of each part
        """
        ledger = cls()
        for number, certificate in enumerate(certificates, start=1):
            ledger = cls._next(ledger, inside / f"ledger-{part_name(number)}", keyed, (series, number, certificate))
        return ledger

    @classmethod
    def _next(cls, before: Ledger, folder: Path, keyed: Keyed, own: tuple[str, int, str]) -> Ledger:
        if not (folder / LEDGER).is_file() or not (folder / PERSONS).is_file():
            raise VerificationError(
                f"the ledger {folder.name!r} of the series is lost; without it nobody knows what was shown of whom, so "
                "no part can be added: put it back from a copy"
            )
        content = read_json(folder / LEDGER, "ledger")
        if not hmac.compare_digest(str(content.get("mac")), keyed.mac(content)) or (
            hash_of(folder / PERSONS) != content["persons"]
        ):
            raise VerificationError(f"the ledger {folder.name!r} was changed, or belongs to another key")
        named = (content["series"], content["number"], content["certificate"])
        if named != own or content["previous"] != before.sealed:
            raise VerificationError(
                f"the ledger {folder.name!r} belongs to another part; put back the one of this part"
            )
        return cls(
            number=content["number"],
            lines=(*before.lines, pl.scan_parquet(folder / PERSONS, glob=False)),
            waiting={str(p): int(n) for p, n in content["waiting"].items()},
            units=[(str(t), str(p), int(n)) for t, p, n in content["units"]],
            tables=(*before.tables, str(content.get("table", ""))),  # series of earlier versions have none
            sealed=sha256((folder / LEDGER).read_bytes()),
        )


FORMAT = 1
SERIES = "series.json"
PRIVATE, KEY, HEAD = "private", "key", "head.json"
MODES = ("increment", "again", "views")
_PART = re.compile(r"\d{4,}\Z")


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def part_name(number: int) -> str:
    """1 -> 0001."""
    return f"{number:04d}"


@dataclass(frozen=True)
class Folder:
    """An opened series.

    place    the folder
    about    the content of series.json
    policy   the request
    digests  SHA-256 of series.json and of the certificate of every part, in order
    keyed    hashes with its key
    ledger   the ledger of the last part
    """

    place: Path
    about: Mapping[str, Any]
    policy: Policy
    digests: tuple[str, ...]
    keyed: Keyed
    ledger: Ledger

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.digests) - 1

    def release(self, number: int) -> Path:
        """The published table of a part."""
        return self.place / part_name(number) / RELEASE

    def shown(self, number: int) -> pl.DataFrame:
        """The distinct published rows of a part: quasi-identifiers and sensitive columns as text."""
        cells = count_release(self.release(number), [*self.policy.grouped, *self.policy.sensitive]).cells
        cells = cells.with_columns(pl.all().cast(pl.String))
        return cells.with_columns(pl.when(pl.all() == "").then(None).otherwise(pl.all()).name.keep())

    def private(self, name: str) -> Path:
        """The path of a file or folder that only the owner may read."""
        return self.place / PRIVATE / name

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder inside the private one for an unfinished part; its files are moved from there, not copied."""
        clear_stale(self.private(KEY).parent)
        made = folder_next_to(self.private("part"))
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def add(
        self,
        release: Path,
        certificate: bytes,
        ledger: Ledger,
        judge: Callable[[Path], object],
        private: Mapping[str, bytes] | None = None,
        closed: int = 0,
    ) -> Folder:
        """The series with one more part. judge gets the folder of the part before it has its name, and may refuse it.

        release  the table, in the folder ``scratch``
        private  further files for the private folder
        closed   permission bits that the part may not have, from ``closed_to``
        """
        number, sealed = self.parts + 1, sha256(certificate)
        head = _head(self.keyed, number, sealed)
        more = [Piece(self.private(name), _bytes(data), private=True) for name, data in dict(private or {}).items()]
        publish_together(
            [
                *more,
                Piece(
                    self.private(f"ledger-{part_name(number)}"),
                    lambda folder: ledger.fill(folder, self.keyed, str(self.about["id"]), sealed),
                    folder=True,
                    private=True,
                ),
                Piece(self.place / part_name(number), _part(release, certificate), judge, folder=True),
                Piece(self.private(HEAD), _bytes(head), private=True),
            ],
            closed=closed,
        )
        return replace(self, digests=(*self.digests, sealed), ledger=ledger)


def _bytes(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


def _part(release: Path, certificate: bytes) -> Callable[[Path], object]:
    def fill(folder: Path) -> None:
        os.replace(release, folder / RELEASE)
        (folder / CERTIFICATE).write_bytes(certificate)

    return fill


def _head(keyed: Keyed, number: int, certificate: str) -> bytes:
    content: dict[str, Any] = {"number": number, "certificate": certificate}
    content["mac"] = keyed.mac(content)
    return json.dumps(content).encode()


def start(place: Path, policy: Policy, mode: str, settings: Mapping[str, Any]) -> None:
    """Create the folder of a series without parts, completely or not at all.

    settings  of the mode; they are stored in series.json

    Raises PolicyError for a request that no series can keep, ExistsError for a folder that exists and isn't empty.
    """
    if mode not in MODES:
        raise PolicyError.unknown("mode of a series", mode, MODES)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise ExistsError(f"{str(place)!r} exists already; name a new folder for the series")
    if not place.resolve().parent.is_dir():
        raise InputError(f"there is no folder {str(place.resolve().parent)!r} to make the series in; make it first")
    refuse_policy(policy, mode)
    files: dict[str, bytes] = {}
    trees: dict[str, Any] = {}
    for name, source in policy.hierarchies.items():
        tree = Hierarchy.of(source)
        if is_built(source) or tree.builder is not None:
            trees[name] = source if isinstance(source, str) else tree.builder
            continue
        taken = Path(source).name if isinstance(source, (str, Path)) else f"{name}.csv"
        own = f"hierarchy-{len(files)}-{re.sub(r'[^A-Za-z0-9_.-]', '_', taken)}"
        files[own] = tree.file.encode()
        trees[name] = own
    about: dict[str, Any] = {
        "format": FORMAT,
        "kind": "series",
        **made_now(),
        "id": secrets.token_hex(16),
        "mode": mode,
        **settings,
        "policy": {n: v for n, v in policy.describe().items() if n not in PRIVATE_SETTINGS} | {"hierarchies": trees},
        "hierarchies": {n: {"sha256": digest(Hierarchy.of(h))} for n, h in policy.hierarchies.items()},
    }
    about["seal"] = seal(json.loads(json.dumps(about, default=str)))
    text = json.dumps(about, indent=2, ensure_ascii=False, default=str) + "\n"
    key = secrets.token_bytes(KEY_BYTES)

    def fill(folder: Path) -> None:
        inside = folder / PRIVATE
        inside.mkdir(mode=0o700)
        for name, data in ((KEY, key), (HEAD, _head(Keyed(key), 0, sha256(text.encode())))):
            _owner_only(inside / name, data)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        (folder / SERIES).write_text(text, encoding="utf-8")

    if place.is_dir():
        place.rmdir()  # it is empty
    temporary = place.parent / f".shoal-series-{secrets.token_hex(6)}"
    temporary.mkdir()
    try:
        fill(temporary)
        open_series(temporary)  # check that the files contain the request
        os.rename(temporary, place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _owner_only(path: Path, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def refuse_policy(policy: Policy, mode: str) -> None:
    """PolicyError for a setting whose promise a series can't keep across parts."""
    odd = {
        "population": policy.population is not None or policy.population_weights is not None,
        "household": policy.household is not None,
        "coordinates": policy.coordinates is not None,
        "⟨publish='centers'⟩": policy.publish == "centers",
        f"⟨missing={policy.missing!r}⟩": policy.missing != "category",
        "⟨preset='hipaa-safe-harbor'⟩": policy.preset == "hipaa-safe-harbor",
        "keep_order": policy.keep_order,
        "regions of a graph": any(
            h == REGIONS or (isinstance(h, Hierarchy) and h.kind == REGIONS) for h in policy.hierarchies.values()
        ),
        "minimality, which is proved of one release alone,": policy.minimality is not None,
    }
    for what, asked in odd.items():
        if asked:
            raise PolicyError(f"a series cannot keep {what} from part to part; take it out of the policy")
    refuse_generated(policy)
    if mode == "again":
        refuse_again(policy)


def refuse_again(policy: Policy) -> None:
    """PolicyError for a request that mode "again" doesn't support."""
    if len(policy.sensitive) != 1:
        raise PolicyError("mode 'again' keeps the possible values of one sensitive column; name one")
    shorts = {m.short for m in policy.privacy}
    if "l" not in shorts or shorts - {"l", "k"}:
        raise PolicyError(
            "mode 'again' promises k and l in the frequency form; let the policy ask for l, such as l = 2, with or "
            "without k, and for no other model"
        )
    if max(m.l for m in policy.privacy if m.short == "l") < 2:  # type: ignore[attr-defined]
        raise PolicyError("mode 'again' with ⟨l=1⟩ would keep one possible value for everybody; ask for ⟨l=2⟩ or more")
    levels = policy.global_recoding or policy.coarsen or policy.max_level
    if levels or policy.max_suppressed or policy.max_average_risk:
        raise PolicyError(
            "mode 'again' keeps groups, not levels or budgets; take ⟨global_recoding⟩, coarsen, ⟨max_level⟩, "
            "⟨max_suppressed⟩ and ⟨max_average_risk⟩ out of the policy"
        )


def is_series(place: str | Path) -> bool:
    """Whether a folder is a series."""
    return (Path(place) / SERIES).is_file()


def part_numbers(place: Path) -> list[int]:
    """The numbers of the existing parts, in order."""
    return sorted(int(p.name) for p in place.iterdir() if p.is_dir() and _PART.match(p.name))


def open_series(place: Path) -> Folder:
    """A series with its key and its last ledger.

    Raises InputError for a folder that isn't a series, VerificationError if parts or ledgers are lost, changed,
    reordered, or older than what was published.
    """
    refuse_other(place)
    inside = place / PRIVATE
    if not (inside / KEY).is_file():
        raise VerificationError(
            f"the key of the series {place.name!r} is lost; without it nobody can tell who was published before, so no "
            "part can be added: put back the folder 'private'"
        )
    about = read_json(place / SERIES, "series")
    keyed = Keyed((inside / KEY).read_bytes())
    numbers = part_numbers(place)
    if numbers != list(range(1, len(numbers) + 1)):
        raise VerificationError(f"part {_gap(numbers)} of the series is missing; put it back from a copy")
    digests = [sha256((place / SERIES).read_bytes())]
    for number in numbers:
        path = place / part_name(number) / CERTIFICATE
        if not path.is_file():
            raise VerificationError(f"part {number} of the series lacks its certificate; put it back from a copy")
        said = read_json(path).get("series")
        if not isinstance(said, dict) or said.get("previous") != digests[-1] or said.get("number") != number:
            raise VerificationError(
                f"part {number} does not follow the one before: it is another, or one of the two was changed"
            )
        digests.append(sha256(path.read_bytes()))
    head = read_json(inside / HEAD, "head") if (inside / HEAD).is_file() else {}
    if head.get("mac") != keyed.mac(head):
        raise VerificationError("the head of the ledger is lost or was changed; put back the folder 'private'")
    if head["number"] > len(numbers):
        raise VerificationError(
            f"the ledger knows {head['number']} parts and the folder holds {len(numbers)}; put back the parts that "
            "were published"
        )
    if head["number"] < len(numbers) - 1 or head["certificate"] != digests[head["number"]]:
        raise VerificationError(
            f"the ledger is older than the series: it ends with part {head['number']} and {len(numbers)} were "
            "published; put back the folder 'private' as it was after the last part"
        )
    ledger = Ledger.read(inside, keyed, str(about["id"]), digests[1:])
    return Folder(place, about, Policy.read(place / SERIES), tuple(digests), keyed, ledger)


def _gap(numbers: list[int]) -> int:
    return next(i for i, n in enumerate([*numbers, -1], start=1) if n != i)


def _refuse_changed_releases(series: Folder) -> None:
    """Raise VerificationError if the table of a part is lost, or isn't the one that its certificate names. O(bytes)."""
    for number in range(1, series.parts + 1):
        path = series.release(number)
        if not path.is_file():
            raise VerificationError(
                f"part {number} of the series lacks its table {RELEASE!r}; put back the file that was published"
            )
        named = read_json(path.with_name(CERTIFICATE)).get("release", {})
        if path.stat().st_size != named.get("bytes") or hash_of(path) != named.get("sha256"):
            raise VerificationError(
                f"the table of part {number}, {part_name(number)}/{RELEASE}, was changed after it was published; put "
                "back the file that was published, because the next part must keep the promise together with it"
            )


@contextlib.contextmanager
def held(place: Path) -> Iterator[Folder]:
    """Open a series and lock it, so that no other process adds to it. The lock ends with the process."""
    refuse_other(place)
    inside = place / PRIVATE
    if not inside.is_dir():
        open_series(place)
    handle = os.open(inside / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # the system has no such locks
            pass
        except OSError:
            raise InputError(f"another process adds to the series {place.name!r}; wait until it is done") from None
        found = open_series(place)
        _refuse_changed_releases(found)
        for path in inside.glob("ledger-*"):  # ledgers of parts that were never published
            if int(path.name.removeprefix("ledger-")) > found.parts:
                shutil.rmtree(path, ignore_errors=True)
        yield found
    finally:
        os.close(handle)
