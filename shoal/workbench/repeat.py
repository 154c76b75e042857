"""What was clicked, as a policy in TOML, a Python script, a notebook and a command line: each makes the release again.

With the seed and the secret of the release the same bytes come out, on every way.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from pprint import pformat
from typing import Any


def toml(settings: Mapping[str, Any], title: str = "") -> str:
    """A policy file: plain settings first, then tables such as [hierarchies]."""
    plain = {n: v for n, v in settings.items() if not isinstance(v, Mapping)}
    nested = {n: v for n, v in settings.items() if isinstance(v, Mapping) and v}
    lines = [f"# {title}"] if title else []
    lines += [f"{_key(n)} = {_value(v)}" for n, v in plain.items() if v is not None]
    for name, held in nested.items():
        lines += ["", f"[{_key(name)}]", *(f"{_key(n)} = {_value(v)}" for n, v in held.items())]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    bare = name and all(c.isascii() and (c.isalnum() or c in "_-") for c in name)
    return name if bare else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(n)} = {_value(v)}" for n, v in value.items()) + "}"
    return _text(str(value))


def script(table: str, settings: Mapping[str, Any], output: str, secret: str | None, reading: Mapping[str, Any]) -> str:
    """A Python script that makes the release, its certificate and its report."""
    given = "\n".join(
        f"    {name}={pformat(value, width=100, sort_dicts=False).replace(chr(10), chr(10) + '    ')},"
        for name, value in {**settings, **reading}.items()
    )
    key = "" if secret is None else f"    secret=Path({secret!r}).read_bytes(),  # the same rows in the same order\n"
    path = "from pathlib import Path\n\n" if secret is not None else ""
    stem = Path(output).stem
    return (
        f"{path}import shoal\n\n"
        f"release = shoal.anonymize(\n    {table!r},\n{given}\n{key})\n"
        f"certificate = release.write({output!r})\n"
        f"release.report({str(Path(output).with_name(f'{stem}.report.html'))!r})\n"
        f"print(shoal.verify({output!r}, certificate))\n"
    )


def notebook(code: str) -> str:
    """The same script as a Jupyter notebook (nbformat 4.5), a cell for each step."""
    made, _, after = code.partition("certificate = ")
    words = "The release is made, checked on the bytes written, and checked again against its certificate."
    cells = [_cell("n0", "markdown", "# A release made with shoal\n\n" + words), _cell("n1", "code", made.strip())]
    cells.append(_cell("n2", "code", ("certificate = " + after).strip()))
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def _cell(name: str, kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"id": name, "cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def command(table: str, policy: str, output: str, secret: str | None, reading: Mapping[str, Any]) -> str:
    """The command line that makes the same release of the policy file."""
    stem = Path(output).stem
    words = ["shoal", "anonymize", table, "--policy", policy, "-o", output]
    words += [] if secret is None else ["--secret", secret]
    words += ["--report", str(Path(output).with_name(f"{stem}.report.html"))]
    for name, value in reading.items():
        words += [f"--{name}", str(value)]
    return shlex.join(words)
