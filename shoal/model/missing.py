"""The readings of missing values in words: one each, named in the certificate."""

from __future__ import annotations

READINGS = {
    "category": "a missing value is a value of its own, never a wildcard",
    "apart": "rows with a missing quasi-identifier are grouped among themselves, never with rows without one; among "
    "them a missing value is a value of its own",
}


def missing_words(reading: str) -> str:
    """A reading in one sentence."""
    return READINGS[reading]
