"""What the guide quotes as a message is a message: its words are in one text of the source, in their order."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from shoal.errors import Sentence

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "messages.md"
HOLES = r"\.\.\.|\b[A-Z][A-Z0-9]*\b(?! LF)|\bB4\b|#REF!"  # what differs from message to message
FOREIGN = {"OutOfMemoryError: Java heap space"}  # Spark's own


def quoted(text: str) -> list[str]:
    """The messages in the first columns of the page's tables."""
    cells = re.findall(r"(?m)^\| (.+?) \|", text)
    return [m for cell in cells for m in re.findall(r'"([^"]+)"|^`([^`]+)`', cell) for m in m if m]


@cache
def sources() -> list[str]:
    """Every text in the source, what is put into it as a blank."""
    found = []
    for path in sorted((ROOT / "shoal").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(str(v.value) if isinstance(v, ast.Constant) else " " for v in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                found.append("".join(t for t in (_text(node.left), _text(node.right)) if t))
    return [Sentence(text) for text in found]


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else " " for v in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else " "


def rule(message: str) -> re.Pattern[str]:
    parts = [re.escape(p.strip(" .?'\"")) for p in re.split(HOLES, message)]
    return re.compile(r"[\s\S]{0,90}?".join(p for p in parts if p))


MESSAGES = quoted(PAGE.read_text(encoding="utf-8"))


def test_there_are_messages() -> None:
    assert len(MESSAGES) > 30


@pytest.mark.parametrize("message", [m for m in MESSAGES if m not in FOREIGN])
def test_it_is_a_message(message: str) -> None:
    assert any(rule(message).search(text) for text in sources()), f"no text of the source says {message!r}"


def test_what_nothing_says_is_found() -> None:
    with pytest.raises(AssertionError):
        test_it_is_a_message("the fish has left the shoal")
