"""Certificate, record, and signature: the files that are written next to a release.

Either all of them are written or none. An Ed25519 signature shows that the owner of a private key vouches for
statements that no one can recompute. Every certificate and report states in the same form what made it, and when.
"""

from __future__ import annotations

import base64
import datetime
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.engines import lakes
from shoal.engines.atomic import Piece, Wanted, check_folder, check_outputs, publish_together
from shoal.errors import ExistsError, InputError, MissingDependencyError
from shoal.judge.file import seal
from shoal.judge.finding import STATED, Finding
from shoal.model.cards import json_value
from shoal.model.certificate import canonical, read_json
from shoal.paths import JSON, RECORD, apart_path, certificate_path, record_path
from shoal.version import __version__

Content = Callable[[], Mapping[str, Any]]


def sealed(content: Mapping[str, Any], sign: str | Path | None = None) -> str:
    """A certificate file or a record as text, with its seal and, if there is a key, a signature."""
    made = json.loads(json.dumps(content, default=json_value))
    made["seal"] = seal(made)
    if sign is not None:
        made = signed(made, sign)
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class Documents:
    """A public certificate, signed if there is a key, and optionally a private record.

    certificate, record  their paths; record None: none is written
    sign                 file of the private key
    after                the output by which both are named, if the certificate's path isn't given
    place                its address, if it is a table on a server, or of Delta or Iceberg
    """

    certificate: Path
    record: Path | None = None
    sign: str | Path | None = None
    after: Path | None = None
    place: str | None = None

    @classmethod
    def next_to(
        cls,
        path: Path,
        certificate: str | Path | None,
        record: bool,
        sign: str | Path | None = None,
        place: str | None = None,
    ) -> Documents:
        """The files next to a path, unless the certificate's path is given.

        ``o.csv``, ``o.parquet``, and the folder ``o`` would have the same certificate. If another one has it, the
        certificate gets the whole name of the output, such as ``o.parquet.certificate.json``.
        """
        if certificate is not None:
            return cls(Path(certificate), record_path(Path(certificate)) if record else None, sign)
        after = path if path.name else path.resolve()
        own, apart = (
            cls(public, record_path(public) if record else None, sign, after, place)
            for public in (certificate_path(after), apart_path(after))
        )
        return own if own.of_others() is None else apart

    def wanted(self) -> list[Wanted]:
        """The outputs, for ``check_outputs``."""
        return [(self.certificate, JSON), *([] if self.record is None else [(self.record, RECORD)])]

    def check(
        self,
        wanted: Sequence[Wanted],
        read: Iterable[str | Path | None],
        *,
        overwrite: bool,
        folder: Path | None = None,
    ) -> int:
        """Refuse unsafe outputs and invalid keys before the search, and return the bits ``closed``.

        wanted  the other outputs
        folder  the folder of parts that contains them, if there is one
        """
        self.refuse_others()
        read, closed = [*read, self.sign], 0
        if folder is not None:
            closed = check_folder(folder, read, overwrite=overwrite)
        closed |= check_outputs([*wanted, *self.wanted()], read, overwrite=overwrite)
        if self.sign is not None:
            read_key(self.sign, "private")
        return closed

    def of_others(self) -> tuple[str, str, str] | None:
        """Which of both files, named by the output, belongs to another output: its name, what it is, and of what."""
        for file, what in ((self.certificate, "certificate"), (self.record, "record")):
            stated = None if file is None else _certified(file)
            if file is not None and stated is not None and not self._is_own(stated):
                return file.name, what, f"the table {stated['table']!r}" if "table" in stated else repr(stated["file"])
        return None

    def refuse_others(self) -> None:
        """ExistsError if the certificate or the record, named by the output, belongs to another output."""
        if self.after is not None and (taken := self.of_others()) is not None:
            name, what, of = taken
            raise ExistsError(
                f"{name!r} is the {what} of {of}, and would be that of {self.after.name!r} too; name another output, "
                f"or the certificate with ⟨certificate=...⟩, or move {name!r} away"
            )

    def _is_own(self, stated: Mapping[str, Any]) -> bool:
        """Whether a certificate is that of an earlier version of the output."""
        assert self.after is not None
        if self.place is not None and lakes.is_target(self.place):
            return stated["file"] in {file.name for file in lakes.readable(self.place)}
        if ("table" in stated) is (self.place is None):
            return False
        other = self.after.with_name(stated["file"])
        return other == self.after or (other.exists() and self.after.exists() and other.samefile(self.after))

    def pieces(self, public: Content, private: Content) -> list[Piece]:
        """The functions that fill both files after all earlier outputs were judged."""

        def certify(temporary: Path) -> None:
            temporary.write_text(sealed(public(), self.sign), encoding="utf-8")

        def keep(temporary: Path) -> None:
            temporary.write_text(sealed(private()), encoding="utf-8")

        made = [Piece(self.certificate, certify)]
        return made if self.record is None else [*made, Piece(self.record, keep, private=True)]

    def publish(self, pieces: Sequence[Piece], public: Content, private: Content, *, closed: int) -> Path:
        """Write and judge the pieces, then both files; all get their names together. Returns the certificate's path.

        public, private  functions that give the content of the files, called after the pieces are judged
        """
        publish_together([*pieces, *self.pieces(public, private)], closed=closed)
        return self.certificate


def _certified(file: Path) -> Mapping[str, Any] | None:
    """What a certificate or a record states about its output, or about the first of several; None if it is neither."""
    try:
        held = read_json(file)
        about = held.get("release") or held["also"][0]
        return about if Path(about["file"]).name == about["file"] != "" else None
    except (InputError, OSError, KeyError, IndexError, TypeError):
        return None


ALGORITHM = "Ed25519"


def _library() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingDependencyError.needed("cryptography", "a signature", "sign") from None
    return serialization, ed25519


def make_key(path: str | Path) -> tuple[Path, Path]:
    """Write a new private key (mode 0600, PEM) and next to it the public one, KEY.pub; returns both paths.

    Raises ExistsError if one of the files exists: a key is never overwritten.
    """
    serialization, ed25519 = _library()
    path = Path(path)
    public = path.with_name(path.name + ".pub")
    for file in (path, public):
        if file.exists() or file.is_symlink():
            raise ExistsError(f"{str(file)!r} exists already; a key is never written over, name another file")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} to write a key into; make it first")
    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    shown = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    with open(path, "xb", opener=lambda name, how: os.open(name, how, 0o600)) as secret:
        secret.write(private)
    with open(public, "xb") as open_to_all:
        open_to_all.write(shown)
    return path, public


def signed(record: Mapping[str, Any], key: str | Path) -> dict[str, Any]:
    """A record with a signature of all its other entries."""
    private = read_key(key, "private")
    bare = {k: v for k, v in record.items() if k != "signature"}
    value = base64.b64encode(private.sign(canonical(bare))).decode()
    return {**bare, "signature": {"algorithm": ALGORITHM, "value": value}}


def signed_by(record: Mapping[str, Any], public: str | Path) -> bool:
    """Whether a record has a signature made with the private key of a public one."""
    from cryptography.exceptions import InvalidSignature

    key = read_key(public, "public")
    found = record.get("signature")
    if not isinstance(found, Mapping) or found.get("algorithm") != ALGORITHM or set(found) != {"algorithm", "value"}:
        return False
    try:
        key.verify(base64.b64decode(str(found["value"]), validate=True), canonical(record, ("signature",)))
    except (InvalidSignature, ValueError):
        return False
    return True


def signature(record: Mapping[str, Any], signer: str | Path | None) -> Finding:
    """The finding on a record's signature, with or without the public key of the expected signer."""
    if signer is not None:
        good = signed_by(record, signer)
        return Finding("signature", good, f"made with the key of {Path(signer).name}" if good else
                       f"not made with the key of {Path(signer).name}")  # fmt: skip
    forge = "anyone who can write files can forge a certificate"
    if "signature" in record:
        return Finding(
            "signature", True, f"there, not checked: name the public key (--signer); without it {forge}", STATED
        )
    return Finding(
        "signature", True, f"none: {forge}; you can trust what is only stated as far as the source of the file", STATED
    )


def read_key(path: str | Path, kind: str) -> Any:
    """The "private" or "public" key in a PEM file; InputError if there is none."""
    serialization, ed25519 = _library()
    name, way = Path(path).name, {"private": " without a password; shoal keygen KEY makes one",
                                  "public": "; shoal keygen KEY writes it as KEY.pub"}[kind]  # fmt: skip
    try:
        content = Path(path).read_bytes()
    except OSError:
        raise InputError(f"there is no key file {str(path)!r} that can be read") from None
    private = kind == "private"
    try:
        if private:
            key = serialization.load_pem_private_key(content, password=None)
        else:
            key = serialization.load_pem_public_key(content)
    except (ValueError, TypeError):
        raise InputError(f"{name!r} holds no {kind} key{way}") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey if private else ed25519.Ed25519PublicKey):
        raise InputError(f"{name!r} holds a {kind} key of another kind than {ALGORITHM}")
    return key


def made_now() -> dict[str, Any]:
    """{"made_by": versions, "made_at": the time in UTC, to the second}.

    If the environment sets SOURCE_DATE_EPOCH, it is the time, so that the same inputs give the same bytes
    (reproducible-builds.org).
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = float(epoch) if epoch.isdecimal() and len(epoch) < 12 else time.time()
    return {
        "made_by": {"shoal": __version__, "python": platform.python_version(), "polars": pl.__version__},
        "made_at": datetime.datetime.fromtimestamp(moment, datetime.UTC).isoformat(timespec="seconds"),
    }
