"""A release that is a table of a server of databases, as the file that its certificate speaks of."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shoal.engines import servers
from shoal.engines.scope import Scope
from shoal.engines.source import without_secrets
from shoal.engines.store import store
from shoal.errors import InputError, PolicyError
from shoal.publishing.verifying.recorded import read_record


@contextmanager
def as_file(address: str, certificate: Any) -> Iterator[Path]:
    """A CSV of the table that a certificate names, its rows laid out by their contents, in a folder for a while.

    PolicyError without a certificate, InputError for one of a file, or a table that is not there.
    """
    servers.refuse_address(address)
    if certificate is None:
        shown = without_secrets(address)
        raise PolicyError(f"{shown!r} is a server of databases; name the certificate of the table too")
    raw = read_record(Path(certificate))
    about: Any = raw.get("release")
    table = about.get("table") if isinstance(about, dict) else None
    if not isinstance(table, str):
        raise InputError("this is the certificate of a file, not of a table of a server; name the file")
    server = servers.connect(address)
    room = Path(tempfile.mkdtemp(prefix="shoal-"))  # its owner's alone
    try:
        with servers.in_a_sentence(server):
            servers.named(server, Scope(table=table))  # refused by name where it is not there
            made = room / f"{table}.csv".replace("/", "_")
            store(servers.held_there(server, table), made, str(raw.get("separator") or ","))
        yield made
    finally:
        server.close()
        shutil.rmtree(room, ignore_errors=True)
