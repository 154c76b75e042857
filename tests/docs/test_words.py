"""The guide is plain English: no retired words, few long sentences, few stacks of relative clauses.

Code and the targets of links are not prose.  Messages, help and reports have no retired word either.

Words that the glossary retires name no module and no class.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
DIRECTIVES = DOCS / "reference.md"  # names of calls for mkdocstrings, no sentences
THINGS = r"(?:it|they|you|we|this|that|these|those|one|none|nothing|any|all|no|a|an|the|there)"

# what is retired, and what the guide writes instead
RETIRED = {
    r"stands?\b(?! for\b)": "is, appears, occurs",
    r"stood\b": "was, appeared",
    r"(?:is|are|be|was|were) told\b": "is detected, is inferred",
    r"tells? (?:apart|from)\b": "distinguish",
    r"said\b": "stated, reported, specified",
    r"says of\b": "reports about",
    r"by (?:a )?hair\b": "narrowly",
    r"carried along\b": "kept unchanged, or insensitive column",
    r"points? at nobody\b": "identifies nobody",
    r"is asked for\b": "you request",
    r"asked with\b": "call",
    r"what was asked\b": "the request",
    r"by itself and nothing else\b": "alone",
    r"beside\b": "next to, with, as well as",
    r"besides,|, besides\b": "also",
    r"whoever\b": "anyone who",
    r"whatever\b": "any",
    r"(?:no|some|every)body's\b": "of no one, someone's, everyone's",
    r"in spite of\b": "although",
    r"by the letter of\b": "exactly as",
    r"word (?:for|by) word\b": "exactly",
    r"hands? over\b|handed over\b": "pass, provide",
    r"the house\b": "the architecture",
    r"(?:Had|Were|Should|Did|Be) " + THINGS + r"\b(?=[^.?!]*[.!])": "if ...",
    r"Whether it is\b": "ask directly",
    r"leaves with status\b": "exits with status",
    r"for want of\b": "without",
    r"twins?\b(?!,)": "counterpart",
    r"dear(?:er|est)?\b": "expensive, costs more",
    r"hence\b|thus\b|thereby\b|therein\b|thereof\b|wherein\b|whereby\b|lest\b|ere\b|albeit\b": "so, in this way",
    r"hitherto\b|henceforth\b|whence\b|nought\b|heed(?:s|ed)?\b|amid(?:st)?\b": "so far, from which, obey",
    r"at hand\b": "your",
    r"betimes\b|forthwith\b|aforesaid\b|beforehand\b": "in advance, before the run",
    r"may be had\b": "is available",
    r"manners of\b": "interface of",
}
LONG, RELATIVES, SHARE = (
    35,
    3,
    0.04,
)  # words and relative clauses of a sentence, the share of sentences that may have more
RELATIVE = re.compile(r"(?i)\b(?:which|who|whom|whose|that|where)\b")


def prose(text: str) -> str:
    """The text of a page without code blocks, code in a line, and the targets of links."""
    text = re.sub(r"(?ms)^```.*?^```", "", text)
    text = re.sub(r"``.+?``|`[^`\n]*`", "CODE", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def sentences(text: str) -> list[str]:
    """The sentences of a page's paragraphs and list items; tables and headings are left out."""
    found = []
    for part in re.split(r"\n\s*\n|(?m:^\s*(?:[-*] |\d+\. |> |\|.*$|#+ .*$))", prose(text)):
        found += re.split(r"(?<=[.?!:;∎□])\s+(?=[A-Z*\[`(]|(?:shoal|k|l)\b)", " ".join(part.split()))
    return [one for one in found if one]


def too_many(text: str, limit: int, count: re.Pattern[str]) -> list[str]:
    """Sentences with more than so many matches, where they are more than one and more than their share."""
    every = sentences(text)
    over = [one for one in every if len(count.findall(one)) > limit]
    return over if len(over) > max(1, SHARE * len(every)) else []


def retired(text: str) -> list[tuple[int, str, str]]:
    """(line of prose, word, what the guide writes instead)."""
    text = prose(text)
    return [
        (text[: m.start()].count("\n") + 1, m[0], better)
        for word, better in RETIRED.items()
        for m in re.finditer(rf"\b(?:{word})", text, 0 if word.startswith("(?:Had") else re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_page_has_no_retired_word(page: Path) -> None:
    assert not retired(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [p for p in PAGES if p != DIRECTIVES], ids=lambda p: str(p.relative_to(ROOT)))
def test_few_sentences_of_a_page_are_long_or_stack_relative_clauses(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not too_many(text, LONG, re.compile(r"\S+"))
    assert not too_many(text, RELATIVES - 1, RELATIVE)


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    """Every module of the package, parsed once for all tests."""
    return {
        p.relative_to(ROOT): ast.parse(p.read_text(encoding="utf-8")) for p in sorted((ROOT / "shoal").rglob("*.py"))
    }


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, text) of every string below a node except docstrings, with ``{}`` for what a string puts in."""
    own = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, own)]
    inner = {id(one.value) for body in bodies for one in body if isinstance(one, ast.Expr)}
    inner |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, node.value


def retired_texts(tree: ast.AST) -> list[tuple[int, str]]:
    """(line, word) of every retired word in a text of at least two words; one word alone is a name."""
    return [(line, word) for line, t in texts(tree) if len(t.split()) > 1 for _, word, _ in retired(t)]


def test_no_message_of_the_code_has_a_retired_word(trees: dict[Path, ast.Module]) -> None:
    assert {path: words for path, tree in trees.items() if (words := retired_texts(tree))} == {}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('def f(name):\n    """It stands."""\n    raise ValueError(f"{name} stands there")', 1),
        ('HELP = "say it beside"  # it stands', 1),
        ('KEY = "beside"', 0),
        ("f'{beside} is here'", 0),
    ],
)
def test_a_retired_word_of_a_message_is_found(code: str, found: int) -> None:
    assert len(retired_texts(ast.parse(code))) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The rule stands there.\n\n```\nThe rule stands there.\n```\n", 1),
        ("A star stands for any value. `it stands`\n", 0),
        ("Should it fail, try again. Were they equal, all is well. Had you asked, no.\n", 3),
        ("Should it fail?\n", 0),
        ("No method is dearer. Whoever holds it may read it.\n", 2),
    ],
)
def test_a_retired_word_is_found(text: str, found: int) -> None:
    assert len(retired(text)) == found


def test_a_page_of_long_sentences_is_found() -> None:
    text = "It is short. " * 30 + ("It goes on and on" + " and on" * 30 + ". ") * 2
    assert len(too_many(text, LONG, re.compile(r"\S+"))) == 2
    assert not too_many(text.replace(" and on" * 30, ""), LONG, re.compile(r"\S+"))
    text = "A row that holds a value that someone who knows it reads. " * 2
    assert len(too_many(text, RELATIVES - 1, RELATIVE)) == 2


MODULES = {
    "others",
    "papers",
    "before",
    "later",
    "apart",
    "carried",
    "ways",
    "beside",
    "going_around",
    "slender",
    "settling",
    "lending",
    "tolls",
    "told",
}
NAMES = {"Lot", "Told", "Room", "Asked", "Tolls", "Kinds", "Beside", "Carried", "Apart", "Kept", "Way", "WAYS"}


def retired_names(path: Path, tree: ast.Module) -> list[str]:
    """The retired words that a module has for itself, its folder or what it defines at its top."""
    tops = [n.name for n in tree.body if isinstance(n, ast.ClassDef)]
    tops += [n.target.id for n in tree.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
    parts = [*path.parent.parts, path.stem]
    return [word for word in parts if word in MODULES] + [word for word in tops if word in NAMES]


@pytest.mark.parametrize(
    ("path", "text"),
    [("others/hilbert.py", ""), ("tables/carried.py", ""), ("a.py", "class Lot: ..."), ("a.py", "WAYS: dict = {}")],
)
def test_a_retired_word_is_seen(path: str, text: str) -> None:
    assert len(retired_names(Path(path), ast.parse(text))) == 1


def test_no_module_and_no_class_has_a_retired_name(trees: dict[Path, ast.Module]) -> None:
    assert {path: words for path, tree in trees.items() if (words := retired_names(path, tree))} == {}


EVERYWHERE = {"beside", "told", "toll", "tolls", "room", "rooms", "ways", "going_around", "slender", "surroundings",
              "lend", "lent", "loans", "settle", "settled"}  # fmt: skip


def retired_arguments(tree: ast.AST) -> list[str]:
    """The retired words that name a function, an argument, or a field; a leading underscore changes nothing."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += [node.name, *(a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg))]
        elif isinstance(node, ast.ClassDef):
            fields = [part.target for part in node.body if isinstance(part, ast.AnnAssign)]
            found += [field.id for field in fields if isinstance(field, ast.Name)]
    return [name for name in found if name.strip("_") in EVERYWHERE]


@pytest.mark.parametrize(
    "text",
    ["def _told(): ...", "def f(a, *, ways=1): ...", "class A:\n    room: int", "def beside(): ..."],
)
def test_a_retired_name_is_seen(text: str) -> None:
    assert len(retired_arguments(ast.parse(text))) == 1


def test_no_function_argument_or_field_has_a_retired_name(trees: dict[Path, ast.Module]) -> None:
    assert {path: names for path, tree in trees.items() if (names := retired_arguments(tree))} == {}


# public names, which users write behind the name of their problem: shoal.tiles.Conditions, shoal.hardness.Table
BEHIND_A_PROBLEM = {"Conditions", "Metric", "Regions", "Table"}


def test_a_class_has_a_name_of_its_own(trees: dict[Path, ast.Module]) -> None:
    defined: dict[str, list[Path]] = {}
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                defined.setdefault(node.name, []).append(path)
    assert {name: where for name, where in defined.items() if len(where) > 1 and name not in BEHIND_A_PROBLEM} == {}
