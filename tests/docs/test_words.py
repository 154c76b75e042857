"""Pages that have been rewritten in plain English use none of the retired words.

The lists grow as pages are rewritten; a page joins ``REWRITTEN`` when no retired word is left in its prose. Code and
the targets of links are not prose.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
REWRITTEN = [
    "README.md", "bounds.md", "cascade.md", "choosing.md", "commands.md", "exit-status.md", "files.md",
    "glossary.md", "hierarchies.md", "installation.md", "intervals.md", "messages.md", "models.md", "moving.md",
    "places.md", "questions.md", "runs.md", "search.md", "size.md", "start.md", "tables.md", "trust.md",
    "using.md", "workbench.md",
]  # fmt: skip
PAGES = [DOCS / name for name in REWRITTEN]
PAGES += sorted(page for folder in ("tutorials", "how-to") for page in (DOCS / folder).glob("*.md"))

# what is retired, and what the guide writes instead
RETIRED = {
    r"stands?\b(?! for\b)": "is, appears, occurs",
    r"stood\b": "was, appeared",
    r"(?:is|are|be|was|were) told\b": "is detected, is inferred",
    r"said\b": "stated, reported, specified",
    r"says of\b": "reports about",
    r"by hair\b": "narrowly",
    r"carried along\b": "kept unchanged, or insensitive column",
    r"points? at nobody\b": "identifies nobody",
    r"is asked for\b": "you request",
    r"what was asked\b": "the request",
    r"by itself and nothing else\b": "alone",
    r"beside\b": "next to, with, as well as",
    r"whoever\b": "anyone who",
    r"whatever\b": "any",
    r"nobody's\b": "of no one",
    r"in spite of\b": "although",
    r"by the letter of\b": "exactly as",
    r"hands? over\b|handed over\b": "pass, provide",
    r"the house\b": "the architecture",
    r"rooms?\b": "package, part",
    r"(?:Had it|Were it|Should you|Should the)\b": "if ...",
    r"Whether it is\b": "ask directly",
    r"leaves with status\b": "exits with status",
    r"for want of\b": "without",
    r"twins?\b": "counterpart",
    r"(?:Were|Had|Should)\s+(?:it|they|this|that|these|those|one|none|nothing|any|all|no|a|an|there|\w+s)\b(?=[^.?!]*[.!])": "if ...",
    r"dear(?:er|est)\b": "more expensive, costs more",
    r"besides\b": "also",
    r"hitherto\b|henceforth\b|whence\b|whereby\b|thereof\b|nought\b|heed(?:s|ed)?\b|betwixt\b": "so far, by which, of it",
    r"word (?:for|by) word\b": "exactly",
    r"asked with\b": "call",
    r"tell(?:s)? apart\b": "distinguish",
    r"hence\b|thus\b|thereby\b|therein\b|wherein\b|lest\b|ere\b|albeit\b": "so, in this way",
    r"at hand\b": "your",
    r"betimes\b|forthwith\b|aforesaid\b|beforehand\b": "in advance, before the run",
    r"may be had\b": "is available",
    r"manners of\b": "interface of",
}


def prose(page: Path) -> str:
    """The text of a page without code blocks, code in a line, and the targets of links."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    text = re.sub(r"``.+?``|`[^`\n]*`", "CODE", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_a_rewritten_page_has_no_retired_word(page: Path) -> None:
    text = prose(page)
    found = [
        (text[: m.start()].count("\n") + 1, m[0], better)
        for retired, better in RETIRED.items()
        for m in re.finditer(rf"(?i)\b(?:{retired})", text)
    ]
    assert not found, f"{page.name} uses retired words (line of prose, word, instead): {found}"


def test_a_retired_word_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("The rule stands there.\n\n```\nThe rule stands there.\n```\n")
    with pytest.raises(AssertionError, match="retired"):
        test_a_rewritten_page_has_no_retired_word(page)
    page.write_text("A star stands for any value. `it stands`\n")
    test_a_rewritten_page_has_no_retired_word(page)
