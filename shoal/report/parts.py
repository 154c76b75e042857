"""Parts that all reports share: the page, tables, terms with their meaning, a certificate with its proof.

Templates escape all values that aren't markup already, and raise an error if a name is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from shoal.model.cards import PLAIN_JSON, floored, number
from shoal.report.words import GLOSSARY, proof_of, sentence, shown, theorem_words


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("shoal.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["number"] = lambda value: value if isinstance(value, Markup) else number(value)
    made.filters["floored"] = floored
    made.filters["anchor"] = anchor
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), **PLAIN_JSON}
    return made


def anchor(text: str, kind: str = "") -> str:
    """The anchor of a section or a word, as the target of links."""
    return (kind + "-" if kind else "") + "".join(c if c.isalnum() else "-" for c in text.lower())


def rendered(template: str, **values: Any) -> str:
    """A complete page: a template of this package's folder, filled with values."""
    return _environment().get_template(template).render(values)


def part(template: str, macro: str, *values: Any) -> Markup:
    """A part of a page: the output of a template's macro."""
    module = _environment().get_template(template).module
    made: Markup = getattr(module, macro)(*values)
    return made


ACROSS = 8  # most columns of a table, so that it fits on a sheet of paper


def paragraph(text: Any, kind: str = "") -> Markup:
    """A paragraph. kind: a class of style.css ("soft", "bad")."""
    return part("parts.html", "paragraph", text, kind)


def term(word: str) -> Markup:
    """A word with a link to its meaning at the end of the page, and the meaning on hover."""
    return part("parts.html", "term", GLOSSARY[word], word, anchor(word, "word"))


def code(text: str) -> Markup:
    """Text that is typed or compared exactly, in a fixed-width font."""
    return part("parts.html", "code", text)


def in_guide(text: str, found: tuple[str, str]) -> Markup:
    """A sentence, and where the guide proves it; without a link, because readers of the page may not have the guide."""
    page, section = found
    return Markup("{} ({}{})").format(text, page, f", {section}" if section else "")


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], numeric: int = 1, caption: str = "") -> Markup:
    """A table; columns from ``numeric`` on are right-aligned.

    A table of more than ACROSS columns is split into tables below each other that repeat the first column, so that it
    fits on paper.
    """
    named = head if any(head) else ()
    if len(named) <= ACROSS:
        return part("parts.html", "table", caption or head[0] or "table", caption, named, rows, numeric)
    made = Markup()
    for begin in range(1, len(named), ACROSS - 1):
        at = [0, *range(begin, min(begin + ACROSS - 1, len(named)))]
        shown = caption if begin == 1 else f"{caption or named[0]}, continued"
        right = next((i for i, j in enumerate(at) if j >= numeric), len(at))
        cut = [[row[j] for j in at] for row in rows]
        made += part("parts.html", "table", shown or named[0], shown, [named[j] for j in at], cut, right)
    return made


def drawing(svg: Markup, name: str) -> Markup:
    """A drawing that scrolls if the window is too narrow for readable letters."""
    return part("parts.html", "drawing", svg, name)


def listed(texts: Sequence[str]) -> Markup:
    """A list of sentences."""
    return part("parts.html", "listed", texts)


def whole(
    kind: str,
    name: str,
    below: str,
    lead: str,
    sections: Sequence[tuple[str, Markup]],
    figures: Mapping[str, Any],
    *,
    first: Sequence[str] = (),
    verdict: str = "",
    appendix: Sequence[tuple[str, Markup]] = (),
) -> str:
    """The page: one file that loads nothing else; it contains the figures as JSON too.

    kind      the subject of the report, for the heading
    name      of the file, or a substitute
    below     a line below the heading
    lead      the answer in one paragraph
    sections  (title, content) in order
    appendix  further sections, which begin on a new page
    first     warnings at the top
    verdict   a line
    """
    return rendered(
        "report.html", kind=kind, name=name, below=below, lead=lead, sections=list(sections), figures=figures,
        first=first, verdict=verdict, appendix=list(appendix), internal=figures.get("internal", False),
    )  # fmt: skip


def proof(certificate: Mapping[str, Any], summary: str, found: Sequence[tuple[str, str]]) -> Markup:
    """A certificate: a summary in words, cost and bound, and each argument in a sentence.

    summary  one paragraph
    found    pages of the guide, each with a section or "": the proof of the bound, and last the promise of the method
    """
    if "ratio_at_most" in certificate:
        return paragraph(summary)
    bound, theorem, unit = certificate["bound"], certificate["guarantee"]["theorem"], certificate["unit"]
    rows: list[tuple[Any, Any]] = [
        ("cost", shown(certificate["cost"], unit)),
        (term("lower bound"), shown(certificate["lower_bound"], unit, least=not certificate["optimal"])),
    ]
    bound_at, theorem_at = proof_of(bound, found[0]), proof_of(theorem, found[-1])
    if bound:
        rows.append(("why no release loses less", _linked(bound, bound_at)))
    rows.append(("promise of the method", _linked(theorem, theorem_at)))
    pages = [code(page) + (f", \u201c{section}\u201d" if section else "") for page, section in
             dict.fromkeys((*found, bound_at, theorem_at))]  # fmt: skip
    rows.append(("proofs and sources", "in the guide: " + Markup("; ").join(pages)))
    return paragraph(summary) + table(("", ""), rows, 2, "Cost and proof")


def _linked(text: str, found: tuple[str, str]) -> Markup:
    """A theorem in plain words with a link to its proof, then in its exact form."""
    plain = theorem_words(text)
    if not plain:
        return Markup("{} {}").format(sentence(text), in_guide("The proof.", found))
    return Markup("{} ({})").format(in_guide(plain, found), text.rstrip("."))


def again(figures: Mapping[str, Any], command: str | Markup = "") -> Markup:
    """Versions, hashes, and the commands that check the files.

    command  the command that repeats the request
    """
    written, made = figures["written"], figures["made_by"]
    rows = [("shoal", made["shoal"]), ("Python", made["python"]), ("Polars", made["polars"])]
    rows += [
        (f"hierarchy of {name}", code(found["sha256"])) for name, found in (figures.get("hierarchies") or {}).items()
    ]
    note = "This page contains all its figures as JSON, and so does the file of its name that ends in .json."
    out = table(("", ""), rows, 2, "Versions and hashes") + paragraph(note)
    if not written:
        return out
    files = [f["file"] for f in (written, *written.get("also", ())) if f.get("file")]
    return out + part("parts.html", "checked", files, written["certificate"], command)


def released(figures: Mapping[str, Any], more: Sequence[tuple[Any, Any]] = ()) -> Markup:
    """The released files with their hashes.

    more  further lines: (name, value)
    """
    written = figures["written"]
    rows: list[tuple[Any, Any]] = [
        ("file", (written.get("file") or "the files below") if written else "not written yet"),
        ("made from", figures["source"] or "a table in memory"),
        ("date", figures["made_at"].replace("T", " ")),
        *more,
    ]
    for held in (written, *written.get("also", ())) if written else ():
        if not held.get("sha256"):
            continue
        named = f" of {held['file']} ({held['part']})" if "part" in held else ""
        rows += [(term("SHA-256") + named, code(held["sha256"]))]
        rows += [(f"bytes{named}", held["bytes"])]
    if written:
        rows += [("certificate", written["certificate"])]
    if written and written.get("signed"):
        rows += [("signature", "in the certificate; shoal verify --signer PUBLIC says whether a key made it")]
    return table(("", ""), rows, 2, "The file")


def decision(figures: Mapping[str, Any], why: str) -> Markup:
    """Who decided what for whom, if given, with space for a signature. why: the source of the threshold"""
    given = figures.get("decision") or {}
    rows = [
        ("recipient", given.get("recipient") or ""),
        ("purpose", given.get("purpose") or ""),
        ("why this threshold", why),
        ("decided by", given.get("decided_by") or ""),
        ("date and signature", ""),
    ]
    return table(("", ""), rows, 2, "The decision")


def glossary(words: Sequence[str] = ()) -> Markup:
    """The meanings of all words, or of the given ones; each is a link target."""
    return meanings([(w, GLOSSARY[w]) for w in words or GLOSSARY], [anchor(w, "word") for w in words or GLOSSARY])


def meanings(words: Sequence[tuple[str, str]], anchors: Sequence[str] = ()) -> Markup:
    """(word, meaning) in order. anchors: the link target of each"""
    return part("parts.html", "meanings", words, anchors or [""] * len(words))
