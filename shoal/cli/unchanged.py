"""``--if-changed``: a run ends at once if its outputs exist and come from the same inputs and the same request.

The private record of the earlier run has digests of its request, inputs, and outputs, with a salt of its own. The
certificate, which is public, has none of them. Only that record shows that an output is from an earlier run.
"""

from __future__ import annotations

import glob
import hashlib
import hmac
import json
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shoal.cli.common import Job, answer, certificate_place, job, say
from shoal.engines.atomic import Piece, Wanted, check_outputs, publish_together
from shoal.errors import InputError, PolicyError
from shoal.judge.file import seal
from shoal.paths import JSON, PAGE, RECORD, is_page, record_path, sides_of
from shoal.version import __version__

ASIDE = ("force", "as_json")  # options that have no effect on the outputs' contents
BESIDE = (".wal", "-wal", "-shm")  # files with changes that a database has not yet written to its main file


class CommandRun(NamedTuple):
    """A run: its request, the files that it reads, and those that it writes.

    asked  options and arguments by name;  read: files and folders;  outputs: files, or a folder of parts
    """

    asked: Mapping[str, Any]
    read: Sequence[Path]
    outputs: Sequence[Path]

    def inputs(self, salt: bytes) -> dict[str, str]:
        """The digest of each input by its path, and that of the request under "request"."""
        text = json.dumps({**self.asked, "shoal": __version__}, sort_keys=True, default=str)
        request = hmac.new(salt, text.encode(), hashlib.sha256).hexdigest()
        return {"request": request, **{str(path): _digest(path, salt) for path in self.read}}

    def written(self, salt: bytes) -> dict[str, str]:
        """The digest of each output, and of the files next to it that belong to it."""
        sides = {side for one in self.outputs for side in (PAGE.next_to(one) if is_page(one) else sides_of(one))}
        return {str(path): _digest(path, salt) for path in (*self.outputs, *sorted(sides)) if path.exists()}


def repeated(
    wanted: Iterable[Wanted], read: Iterable[Any], *, overwrite: bool, folder: Path | None = None,
    refused: str | None = None,
) -> bool:  # fmt: skip
    """Whether outputs may be replaced. Ends the command with status 0 if nothing has changed.

    wanted, read, overwrite  as for ``check_outputs``, which is called afterwards
    folder                   an output that is a folder of parts
    refused                  why this command cannot use ``--if-changed``; None if it can
    """
    own = job()
    if not own.if_changed:
        return overwrite
    places = [(Path(path), form) for path, form in wanted if path is not None]
    kept = next((path for path, form in places if form is RECORD), None)
    if refused is not None:
        raise PolicyError(f"--if-changed: {refused}; leave it out")
    if kept is None and own.asked.get("no_record"):
        raise PolicyError("--if-changed finds an earlier run by its record, and --no-record writes none; leave one out")
    if kept is None:
        raise PolicyError("--if-changed finds an earlier run by the record next to its output; say -o FILE")
    asked = {name: value for name, value in own.asked.items() if name not in ASIDE}
    outputs = [*(path for path, form in places if form is not RECORD), *([] if folder is None else [folder])]
    run = CommandRun(asked, _input_files(read), outputs)
    earlier = _recorded_run(kept, own.command)
    if earlier is None:
        own.keep = _run_recorder(kept, run)
        return overwrite
    salt = bytes.fromhex(earlier["salt"])
    changed = _first_difference(run, earlier, salt)
    if changed is None:
        _repeat_answer(own, earlier)
    say(f"runs again: {changed}")
    own.keep = _run_recorder(kept, run)
    return True


def check_files(
    wanted: Sequence[Wanted], first: Path | None, certificate: Path | None, read: Iterable[Any],
    kept: tuple[bool, bool], force: bool,
) -> None:  # fmt: skip
    """Refuses harmful output paths before any work, and ends the command if ``--if-changed`` finds no change.

    wanted              the outputs other than certificate and record
    first, certificate  the output after which these are named, and the certificate's path if it is given
    read                the inputs;  kept: ``OutputFiles``
    """
    from shoal.publishing.documents import Documents

    proof, (no_record, _) = certificate_place(first, certificate), kept
    if first is not None:
        Documents.next_to(first, certificate, not no_record).refuse_others()
    record = None if proof is None or no_record else record_path(proof)
    wanted, read = [*wanted, (proof, JSON), (record, RECORD)], list(read)
    check_outputs(wanted, read, overwrite=repeated(wanted, read, overwrite=force))


def _first_difference(run: CommandRun, earlier: Mapping[str, Any], salt: bytes) -> str | None:
    """What differs from the earlier run; None if nothing does."""
    inputs, was = run.inputs(salt), earlier["inputs"]
    if inputs["request"] != was.get("request"):
        return "the request is different, or the version of shoal is"
    for name in inputs | was:
        if inputs.get(name) != was.get(name):
            return f"{name} has changed"
    written, was = run.written(salt), earlier["written"]
    for name in written | was:
        if written.get(name) != was.get(name):
            return f"{name} is not as it was written" if name in written else f"{name} is gone"
    return None


def _repeat_answer(own: Job, earlier: Mapping[str, Any]) -> None:
    """Prints the answer of the earlier run, and exits."""
    facts = {**earlier["answer"], "unchanged": True}
    lines = ["unchanged: request, inputs and outputs are those of the last run; nothing is done"]
    names = {"output": "release", "certificate_file": "certificate", "record_file": "record", "report": "report"}
    lines += [f"{words:<12} {facts[name]}" for name, words in names.items() if facts.get(name)]
    own.if_changed = False
    answer(facts, lines, bool(own.asked.get("as_json")))
    sys.exit(0)


def _run_recorder(record: Path, run: CommandRun) -> Callable[[Mapping[str, Any]], None]:
    """A function that adds the run to its record at the end. The inputs' digests are taken now, before they are read:
    if one changes in the meantime, the next run does not count as unchanged."""
    salt = secrets.token_bytes(16)
    inputs = run.inputs(salt)

    def keep(facts: Mapping[str, Any]) -> None:
        held = json.loads(record.read_text(encoding="utf-8"))
        held["run"] = {
            "command": job().command, "salt": salt.hex(), "inputs": inputs, "written": run.written(salt),
            "answer": facts,
        }  # fmt: skip
        held["seal"] = seal(held)
        text = json.dumps(held, indent=2, ensure_ascii=False) + "\n"
        publish_together([Piece(record, lambda to: to.write_text(text, encoding="utf-8"), private=True)])

    return keep


def _recorded_run(record: Path, command: str | None) -> dict[str, Any] | None:
    """The run stored in a record; None if there is none, or if the record was modified."""
    try:
        held = json.loads(record.read_text(encoding="utf-8"))
        run: dict[str, Any] = held["run"]
        bytes.fromhex(run["salt"])
        whole = held["seal"] == seal(held) and run["command"] == command
        return run if whole and all(isinstance(run[name], dict) for name in ("inputs", "written", "answer")) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _input_files(read: Iterable[Any]) -> list[Path]:
    """The input files, with the files that belong to them; PolicyError for an input that is not a local file."""
    found: list[Path] = []
    for given in read:
        if given is None:
            continue
        if isinstance(given, str) and "://" in given:
            raise PolicyError(
                "--if-changed compares files, and what is read here is no file of this machine; leave it out"
            )
        path = Path(given)
        found.append(path)
        found += [side for side in sides_of(path) if side.exists()]
        found += [side for end in BESIDE if (side := path.with_name(path.name + end)).exists()]
    return list(dict.fromkeys(found))


def matching(pattern: str) -> list[Path]:
    """The files that match a pattern of --glob now."""
    return [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]


def _digest(path: Path, salt: bytes) -> str:
    """A keyed hash of a file, or of all files in a folder with their names; InputError if there is none."""
    total = hmac.new(salt, digestmod=hashlib.sha256)
    inside = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for one in inside:
        if one is not path:
            total.update(f"{one.relative_to(path)}\0".encode())
        try:
            with open(one, "rb") as file:
                while block := file.read(1 << 20):
                    total.update(block)
        except FileNotFoundError:
            raise InputError(f"there is no file {str(one)!r} to read; give its whole path, or change folder") from None
        total.update(b"\0")
    return total.hexdigest()
