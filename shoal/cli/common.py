"""What every command shares: printing an answer and saying how far the work is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


def answer(payload: Mapping[str, Any], lines: Iterable[str], as_json: bool) -> None:
    """Print one JSON object, or the same facts as lines for people; never a row of the table."""
    if as_json:
        print(json.dumps(payload, ensure_ascii=False, default=_plain))
    else:
        for line in lines:
            print(line)


def _plain(value: Any) -> Any:
    """numpy scalars and the like as plain JSON values."""
    if hasattr(value, "item"):
        return value.item()
    if hasattr(value, "as_dict"):
        return value.as_dict()
    return str(value)


@contextmanager
def working(what: str) -> Iterator[None]:
    """A line with a running clock on standard error while a terminal is attached; silent otherwise."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(what, total=None)
        yield
