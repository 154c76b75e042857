"""What a judge says of one statement, and how it knows."""

from __future__ import annotations

from typing import NamedTuple

RECOMPUTED, CONSISTENT, STATED = "recomputed", "checked for consistency", "stated"


class Finding(NamedTuple):
    """One statement of a certificate.

    check  what was looked at; holds: nothing speaks against it; found: a sentence
    how    "recomputed" from the files; "checked for consistency": it contradicts nothing that can be seen; "stated":
           nobody but who made the certificate vouches for it
    """

    check: str
    holds: bool
    found: str
    how: str = RECOMPUTED
