"""What every report is made of: the page around it, tables, terms with their meaning, the certificate in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from shoal.model.cards import number
from shoal.report.style import STYLE
from shoal.report.words import shown
from shoal.report.words import theorem_words as explained

GLOSSARY = {
    "quasi-identifiers": "columns that others may know about a person, such as age or town; they are made coarser",
    "sensitive": "columns that nobody should learn about a person; published as they are",
    "group": "all rows that show the same in the quasi-identifiers",
    "k-anonymity": "every group has at least k rows",
    "l-diversity": "in no group do more than one in l rows share a sensitive value",
    "prosecutor": "somebody who knows that a person is in the table and looks for that person's row",
    "journalist": "somebody who looks for any person, without knowing who is in the table",
    "marketer": "somebody who links as many rows as possible; the mean risk counts",
    "loss": "0 where a value is published as it is, 1 where nothing of it is left",
    "SHA-256": "a fingerprint of the file's bytes: it changes when any of them does",
    "lower bound": "what every other release of this kind costs at least, proved for this table",
}


class Html(str):
    """Text that is HTML already."""


def term(word: str, shown_as: str | None = None) -> Html:
    """A word with its meaning on hover."""
    return Html(f'<abbr title="{escape(GLOSSARY[word])}">{escape(shown_as or word)}</abbr>')


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], numeric: int = 1, caption: str = "") -> Html:
    """A table that scrolls by itself where it is wide; columns from ``numeric`` on are right-aligned."""

    named_rows = not any(head)

    def cell(tag: str, i: int, value: Any, scope: str = "") -> str:
        said = value if isinstance(value, Html) else escape(number(value))
        return f"<{tag}{scope}{' class=n' if i >= numeric else ''}>{said}</{tag}>"

    def line(row: Sequence[Any]) -> str:
        first = cell("th", 0, row[0], ' scope="row"') if named_rows else cell("td", 0, row[0])
        return f"<tr>{first}{''.join(cell('td', i, v) for i, v in enumerate(row[1:], 1))}</tr>"

    top = "".join(cell("th" if h else "td", i, h, ' scope="col"' if h else "") for i, h in enumerate(head))
    body = "".join(map(line, rows))
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    first = f"<thead><tr>{top}</tr></thead>" if any(head) else ""
    return Html(
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption or head[0] or "table")}">'
        f"<table>{named}{first}<tbody>{body}</tbody></table></div>"
    )


def drawing(svg: str, name: str) -> str:
    """A drawing that scrolls by itself where the window is narrower than its letters can be read at."""
    return f'<figure class="wide" tabindex="0" role="group" aria-label="{escape(name)}">{svg}</figure>'


def listed(texts: Sequence[str]) -> str:
    """Sentences as an HTML list, escaped."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def whole(
    kind: str, name: str, below: str, lead: str, sections: Sequence[tuple[str, str]], figures: Mapping[str, Any]
) -> str:
    """The page: one file that fetches nothing; the figures stand in it as JSON too.

    kind      what it is a report of, for the heading;  name: of the file, or what stands for it
    below     a line below the heading;  lead: the answer in one paragraph
    sections  (title, HTML) in order
    """
    body = "".join(f"<section><h2>{escape(title)}</h2>{content}</section>" for title, content in sections)
    inside = json.dumps(figures, ensure_ascii=False, default=_plain).replace("<", "\\u003c")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(kind)}: {escape(name)}</title><style>{STYLE}</style></head><body><main>"
        f'<h1>{escape(kind)}</h1><p class="soft">{escape(below)}</p>'
        f'<p class="lead">{escape(lead)}</p>{body}</main>'
        f'<script type="application/json" id="figures">{inside}</script></body></html>\n'
    )


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def proof(certificate: Mapping[str, Any], said: str, found: str = "") -> str:
    """A certificate: what it comes to in words, cost and bound, and each argument in a sentence.

    said   the whole in words;  found: where the guide explains its theorems
    """
    bound, theorem, unit = certificate["bound"], certificate["guarantee"]["theorem"], certificate["unit"]
    rows: list[tuple[Any, Any]] = [
        ("cost", shown(certificate["cost"], unit)),
        (term("lower bound"), shown(certificate["lower_bound"], unit)),
    ]
    if bound:
        rows.append(("why nobody can do with less", f"{sentence(bound)} {explained(bound)}"))
    rows.append(("promise of the method", f"{sentence(theorem)} {explained(theorem)}"))
    if found:
        rows.append(("proofs and sources", Html(f"the page <code>{escape(found)}</code> of the guide")))
    return f"<p>{escape(said)}</p>" + table(("", ""), rows, 2, "Cost and proof")


def sentence(text: str) -> str:
    """With a capital letter, but for the name of a page, and a full stop."""
    begins = text[:5] if text.startswith("docs/") else text[:1].upper() + text[1:5]
    return begins + text[5:] + ("" if text.endswith((".", "!", "?")) else ".")


def again(figures: Mapping[str, Any], command: str = "") -> str:
    """Versions, hashes and the commands that check the files.

    command  HTML on how to ask for the same once more
    """
    written, made = figures["written"], figures["made_by"]
    rows = [("shoal", made["shoal"]), ("Python", made["python"]), ("Polars", made["polars"])]
    rows += [
        (f"hierarchy of {name}", Html(f"<code>{escape(str(found['sha256']))}</code>"))
        for name, found in (figures.get("hierarchies") or {}).items()
    ]
    out = str(table(("", ""), rows, 2, "Versions and hashes"))
    if not written:
        return out
    beside = escape(written["certificate"])
    files = [f["file"] for f in (written, *written.get("also", ())) if f.get("file")]
    checks = "; ".join(f"<code>shoal verify {escape(name)} {beside}</code>" for name in files)
    against = "with <code>--original TABLE</code> also against its source."
    return out + f"<p>Check what was released: {checks}; {against}{command}</p>"


def released(figures: Mapping[str, Any], more: Sequence[tuple[Any, Any]] = ()) -> Html:
    """The files that left, with their hashes.

    more  further lines: (what, value)
    """
    written = figures["written"]
    rows: list[tuple[Any, Any]] = [
        ("file", (written.get("file") or "the files below") if written else "not written yet"),
        ("made from", figures["source"] or "a table in memory"),
        ("date", figures["made_at"].replace("T", " ")),
        *more,
    ]
    for part in (written, *written.get("also", ())) if written else ():
        if not part.get("sha256"):
            continue
        named = f" of {part['file']} ({part['part']})" if "part" in part else ""
        rows += [(Html(f"{term('SHA-256')}{escape(named)}"), Html(f"<code>{escape(part['sha256'])}</code>"))]
        rows += [(f"bytes{named}", part["bytes"])]
    if written:
        rows += [("certificate", written["certificate"])]
    return table(("", ""), rows, 2, "The file")


def glossary(words: Sequence[str] = ()) -> str:
    """The meaning of all words, or of those named."""
    said = {w: GLOSSARY[w] for w in words} if words else GLOSSARY
    return "<dl>" + "".join(f"<dt>{escape(w)}</dt><dd>{escape(m)}</dd>" for w, m in said.items()) + "</dl>"
