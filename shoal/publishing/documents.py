"""The files beside what is published, and the one way by which all of them get their names: together, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.engines.atomic import (
    JSON,
    RECORD,
    Piece,
    Wanted,
    certificate_path,
    check_folder,
    check_outputs,
    publish_together,
    record_path,
)
from shoal.judge.file import seal
from shoal.publishing import signing

Content = Callable[[], Mapping[str, Any]]


def sealed(content: Mapping[str, Any], sign: str | Path | None = None) -> str:
    """A certificate file or a record as the text of a file, with its seal and, where there is a key, a signature."""
    made = json.loads(json.dumps(content, default=_plain))
    made["seal"] = seal(made)
    if sign is not None:
        made = signing.sign(made, sign)
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


@dataclass(frozen=True)
class Documents:
    """A public certificate, signed where there is a key, and, unless left out, a private record.

    certificate, record  their paths; record None: none is written
    sign                 file of the private key
    """

    certificate: Path
    record: Path | None = None
    sign: str | Path | None = None

    @classmethod
    def next_to(
        cls, path: Path, certificate: str | Path | None, record: bool, sign: str | Path | None = None
    ) -> Documents:
        """The files beside a path, where none is named for the certificate."""
        public = certificate_path(path) if certificate is None else Path(certificate)
        return cls(public, record_path(public) if record else None, sign)

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
        """Refuse, before any work, outputs that would do harm or a key that is none; returns the bits of ``closed``.

        wanted  the other outputs;  folder: one that they stand in, of parts
        """
        read, closed = [*read, self.sign], 0
        if folder is not None:
            closed = check_folder(folder, read, overwrite=overwrite)
        closed |= check_outputs([*wanted, *self.wanted()], read, overwrite=overwrite)
        if self.sign is not None:
            signing.private_key(self.sign)
        return closed

    def pieces(self, public: Content, private: Content) -> list[Piece]:
        """What fills both files, after all that stands before them was judged."""

        def certify(temporary: Path) -> None:
            temporary.write_text(sealed(public(), self.sign), encoding="utf-8")

        def keep(temporary: Path) -> None:
            temporary.write_text(sealed(private()), encoding="utf-8")

        made = [Piece(self.certificate, certify)]
        return made if self.record is None else [*made, Piece(self.record, keep, private=True)]

    def publish(self, pieces: Sequence[Piece], public: Content, private: Content, *, closed: int) -> Path:
        """Write and judge the pieces, then both files; all get their names together.  Returns the certificate's path.

        public, private  what the files hold, asked for when the pieces were judged
        """
        publish_together([*pieces, *self.pieces(public, private)], closed=closed)
        return self.certificate
