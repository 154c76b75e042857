"""What every command shares: printing an answer and saying how far the work is."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.model.settings import SHORTHANDS
from shoal.watching import Progress as Told
from shoal.watching import compiling, listening

if TYPE_CHECKING:
    from shoal import Crosswalk
    from shoal.publishing.crosswalks.crosswalk import Drawing

_LIKE_THEIR_FLAGS = (
    "sensitive identifiers insensitive person household max_suppressed max_average_risk minimality missing shards "
    "preset population population_weights population_size publish coordinates boundary max_width grid extent center "
    "sparse max_level range_step global_recoding coarsen method effort seed keep_order star separator encoding engine "
    "memory threads temporary glob table query master parts threshold shapes explored certificate unmatched "
    "max_clusters max_diameter epsilon r original id shape_id "
    "similar at_most strict_roles max_composition force_composition after output_table"
)
_FLAGS = {name: f"--{name.replace('_', '-')}" for name in (*SHORTHANDS, *_LIKE_THEIR_FLAGS.split())} | {
    "quasi_identifiers": "--quasi", "hierarchies": "--hierarchy", "weights": "--weight", "overwrite": "--force",
    "setup_costs": "--setup-cost", "earlier": "--with", "earlier_originals": "--with-original",
}  # fmt: skip
_ANY = "|".join(sorted(_FLAGS, key=len, reverse=True))
_GIVEN = re.compile(
    rf"(?<![\w'\"-])({_ANY})="
    r"(\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|'[^']*'|[\w.-]+|(?=[\s,;)]|$))(?![\w'])"
)
_CELL = re.compile(rf"(?<![\w'\"-])({_ANY})\['([^']*)'\] ?= ?('[^']*'|[\w.-]+)")  # weights['age'] = -1
_BARE = re.compile(rf"(?<![\w'\"=/.-])({'|'.join(n for n in _FLAGS if '_' in n)})(?![\w'\"=\[/]|\.\w)")
_OTHERWISE = {
    "column=NAME": "--column NAME", "x=NAME": "--x NAME", "y=NAME": "--y NAME", "(weights)": "(--weight)",
    "(hierarchies)": "(--hierarchy)", "a file of polygons": "a file of polygons (--shapes FILE)",
    "light='nearest'": "--islands join", "light='leave'": "--islands leave",
}  # fmt: skip


def in_flags(message: str) -> str:
    """A sentence of the library for somebody at a command line: ``k=5`` is ``--k 5`` there."""

    def flag(found: re.Match[str]) -> str:
        name, value = _FLAGS[found[1]], found[2]
        if value in ("True", "[...]", "...", "{column: ...}", ""):
            return name
        if value[0] == value[-1] == "'":
            return f"{name} {shlex.quote(value[1:-1])}"
        return f"{name} {value.strip('[]()').replace(chr(39), '').replace(', ', ',').rstrip(',')}"

    def cell(found: re.Match[str]) -> str:
        return f"{_FLAGS[found[1]]} {shlex.quote(found[2] + '=' + found[3].strip(chr(39)))}"

    for text, said in _OTHERWISE.items():
        message = message.replace(text, said)
    message = _GIVEN.sub(flag, _CELL.sub(cell, message))
    return _BARE.sub(lambda found: _FLAGS[found[1]], message)


def present(*paths: Path, folders: bool = False) -> None:
    """InputError unless these are files (or folders), with the nearest name in the folder."""
    from shoal.errors import InputError

    for path in paths:
        if path.is_file():
            continue
        if path.is_dir() and not folders:
            raise InputError(f"{str(path)!r} is a folder; name the file in it")
        if path.is_dir():
            continue
        if len(paths) > 1 and not path.suffix:
            hint = "column names are separated by commas without blanks (--quasi age,zip)"
            raise InputError(f"there is no file {str(path)!r} to read; {hint}")
        there = [p.name for p in path.parent.glob("*") if p.is_file()] if path.parent.is_dir() else []
        if matching := fnmatch.filter(there, path.name):
            many = f"as a pattern its name matches {len(matching)} file{'s' * (len(matching) > 1)} there"
            raise InputError(
                f"there is no file {str(path)!r} to read; {many}; anonymize and audit read patterns with --glob"
            )
        near = get_close_matches(path.name, there, n=1, cutoff=0.75)
        hint = f"did you mean {str(path.with_name(near[0]))!r}?" if near else "give its whole path, or change folder"
        raise InputError(f"there is no file {str(path)!r} to read; {hint}")


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
    """A line with a running clock, and the share done and time left where the search says it, on standard error while a
    terminal is attached; silent otherwise."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)

        told = Told(what)

        def said(share: float | None) -> None:
            told(what, share)
            more = "compiling, once per machine" if share is None else f"{share:.0%} of the search done{told.left()}"
            progress.update(task, description=f"{what}; {more}")

        with compiling(lambda: said(None)), listening(said):
            yield


def beside(output: Path | None, certificate: Path | None) -> Path | None:
    """Where the certificate of an output goes."""
    from shoal.engines.atomic import certificate_path, check_place

    if output is None or certificate is not None:
        return certificate
    check_place(output)
    return certificate_path(output)


def papers(proof: Path | None, kept: tuple[bool, bool]) -> list[tuple[Any, Any]]:
    """The certificate and the record that are written beside an output, with their forms, for ``check_outputs``.

    kept  whether the record, and whether the proved ratio, are left out
    """
    from shoal.engines.atomic import JSON, RECORD, record_path

    return [(proof, JSON), (None if proof is None or kept[0] else record_path(proof), RECORD)]


def put(
    made: Crosswalk, output: Path | None, certificate: Path | None, also: Mapping[str, Path] | None = None,
    drawn: Sequence[tuple[Path | None, Callable[[], Drawing]]] = (), kept: tuple[bool, bool] = (False, False),
) -> dict[str, str | None]:  # fmt: skip
    """Write an answer where it was asked for, its certificate and record beside it; all paths, for the JSON object.

    also   name of a companion -> its path
    kept   whether the record, and whether the proved ratio, are left out
    drawn  where maps and pictures go, and how they are drawn: with the answer or not at all
    """
    from shoal.engines.atomic import Piece, closed_to, publish_together, record_path

    more, pictures = also or {}, [(path, draw()) for path, draw in drawn if path is not None]
    proof = beside(next((p for p in (output, *more.values()) if p is not None), None), certificate)
    written = output is not None or bool(more)
    if written:
        bound = "none" if kept[1] else "ratio"
        made.write(output, proof, also=more, drawn=pictures, record=not kept[0], bound=bound)
    else:
        pieces = [Piece(path, drawing.fill) for path, drawing in pictures]
        publish_together(pieces, closed=closed_to(made.read))
        if proof is not None:
            made.certify(proof)
    return {
        "output": None if output is None else str(output),
        "certificate_file": None if proof is None else str(proof),
        **({"record_file": str(record_path(proof))} if written and proof and not kept[0] else {}),
    }


def reported(made: Any, path: Path | None, **more: Any) -> dict[str, Any]:
    """Write the report where it was asked for; its path and figures, for the JSON object, without a value of the table.

    made  anything with ``report`` and ``figures``;  more: arguments of its ``report``
    """
    if path is None:
        return {}
    path = made.report(path, **more)
    told = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    figures = {name: held for name, held in told.items() if name not in ("shown", "pairs")}
    columns = [  # of a crosswalk their names
        {name: held for name, held in c.items() if name != "distribution"} if isinstance(c, dict) else c
        for c in figures["columns"]
    ]
    beside = str(path.with_suffix(".json"))
    return {"report": str(path), "figures_file": beside, "figures": {**figures, "columns": columns}}


def exploration(path: Path | None, report: Path | None) -> Any:
    """What explore found before, for a report; None where none is named."""
    from shoal.errors import PolicyError

    if path is None:
        return None
    if report is None:
        raise PolicyError("--explored is shown in the report: add --report FILE")
    from shoal.utility.explore import Exploration

    return Exploration.read(path)


def seconds(begun: float, read: float, solved: float) -> dict[str, float]:
    """Seconds of reading and solving, and of writing up to now."""
    spans = {"read": read - begun, "solve": solved - read, "write": time.perf_counter() - solved}
    return {name: round(value, 4) for name, value in spans.items()}


def listed(text: str | None) -> list[str] | None:
    """Column names separated by commas; a name holding a comma stands in double quotes."""
    if text is None:
        return None
    import csv

    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True)) if name.strip()]


def pairs(given: Iterable[str], option: str, convert: Callable[[str], Any] = str) -> dict[str, Any]:
    """column=value options as a mapping."""
    from shoal.errors import PolicyError

    out: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise PolicyError(f"{option} {text!r}: write column=value")
        try:
            out[name] = convert(value)
        except ValueError:
            raise PolicyError(f"{option} {text!r}: {value!r} is not a number") from None
    return out


def refuse_unmet(holds: bool) -> None:
    """Leave with status 1 when a check failed; what was found has been printed already."""
    if not holds:
        sys.exit(1)


@contextmanager
def progress() -> Iterator[Callable[[str, float | None], None]]:
    """A callback (what, share done or None) that moves a bar with time left on standard error, if anyone watches."""
    if not sys.stderr.isatty():
        yield lambda _what, _share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<28}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def say(what: str, share: float | None) -> None:
            bar.update(task, description=what, total=None if share is None else 1.0, completed=share or 0.0)

        with compiling(lambda: say("compiling, once per machine", None)):
            yield say


def source_of(tables: list[str], glob: bool) -> Any:
    """What was named on the command line: a path, or several; InputError for a name that nothing has."""
    from shoal.engines.source import is_remote
    from shoal.errors import InputError

    present(*(Path(path) for path in tables if not glob and not is_remote(path)), folders=True)
    if glob and len(tables) > 1:
        raise InputError("--glob takes one pattern; put it in quotes, so that the shell leaves it alone")
    found = [path if is_remote(path) else Path(path) for path in tables]
    return found[0] if len(found) == 1 else found


def short(value: Any) -> str:
    """A number for people."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
