"""The report of a crosswalk: one HTML page that opens offline.  Explains a release, never recomputes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from shoal.report.bins_picture import as_svg
from shoal.report.exploring import _STYLE as STYLE


def page(
    title: str,
    held: Mapping[str, Any],
    certificate: Mapping[str, Any],
    groups: Sequence[int],
    warnings: Sequence[str] = (),
) -> str:
    """The whole page.

    held         kind, method, parameters and facts, as in the certificate file
    certificate  ``Certificate.as_dict()``
    groups       the size of every group, int[m]; empty: no picture
    warnings     sentences that stand at the top
    """
    threshold = held["parameters"].get("k") or held["parameters"].get("r") or 0
    k = threshold[0] if isinstance(threshold, list) else threshold
    promise, ratio = certificate["guarantee"], certificate["ratio"]
    proved = f"no answer costs less than {_text(certificate['lower_bound'])}"
    if certificate["optimal"]:
        proved = "the least possible"
    elif ratio is not None:
        proved += f", so at most {ratio:.6g} times the least"
    figure = f"<figure>{as_svg(groups, int(k), None, 'sizes of the groups')}</figure>" if len(groups) and k else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{STYLE} td, th {{ text-align: left; white-space: normal; }}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p class="soft">{escape(held["kind"])}, by {escape(held["method"])}; the file '
        "was read back and counted again before it appeared.</p>"
        f"{''.join(f'<p><strong>Note: {escape(w)}.</strong></p>' for w in warnings)}"
        f"<p>Cost {_text(certificate['cost'])} {escape(certificate['unit'])}: {escape(proved)}.</p>"
        f"<p>Because {escape(str(certificate['bound']))}.</p>"
        f"<p>Promised beforehand: {escape(str(promise['theorem']))}.</p>"
        f"{figure}<h2>What was asked for</h2>{_table(held['parameters'])}"
        f"<h2>What it holds</h2>{_table(held['facts'])}</main></body></html>\n"
    )


def _table(values: Mapping[str, Any]) -> str:
    rows = (
        f'<tr><th scope="row">{escape(name.replace("_", " "))}</th><td>{escape(_text(value))}</td></tr>'
        for name, value in values.items()
        if value not in (None, [], {}, "")
    )
    return f'<div class="wide"><table><tbody>{"".join(rows)}</tbody></table></div>'


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(held)}" for name, held in value.items() if held not in (None, "", [], {}))
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
