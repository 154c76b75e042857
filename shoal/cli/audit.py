"""``shoal audit``: any table measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from shoal.cli.app import app
from shoal.cli.common import answer, pairs, refuse_unmet, short, source_of
from shoal.cli.models import with_options
from shoal.cli.options import AVERAGE, JSON_, TABLES, Roles, Source, flag


class Measured(NamedTuple):
    """How it is measured."""

    population_size: int | None = flag(None, "--population-size", "How many people there are at all.")
    hierarchy: list[str] = flag([], "--hierarchy", "column=file.csv by which it was recoded; repeatable.")
    missing: str = flag("category", "--missing", "wildcard: show that reading of blanks too; or filled.")
    max_average_risk: float | None = AVERAGE
    threshold: float = flag(0.2, "--threshold", "A record is at risk above this.")

    def settings(self) -> dict[str, Any]:
        """The same as ``shoal.audit`` takes it."""
        given = self._asdict()
        trees = pairs(given.pop("hierarchy"), "--hierarchy") or None
        return {**given, "hierarchies": trees}


class Earlier(NamedTuple):
    """Earlier releases of the same people, and the tables that they and this one were made from."""

    earlier: list[str] = flag(
        [], "--with", "An earlier release of the same people, to set this one against; may be repeated."
    )
    original: Path | None = flag(None, "--original", "With --with: the table that this one was made from.")
    with_original: list[Path] = flag(
        [], "--with-original", "The table that the earlier one was made from, where it is another; one for each --with."
    )

    def settings(self) -> dict[str, Any]:
        """The same as ``shoal.audit`` takes it."""
        given = {"earlier": self.earlier, "original": self.original, "earlier_originals": self.with_original}
        return {name: value for name, value in given.items() if value}


@app.command()
@with_options
def audit(
    tables: list[str] = TABLES,
    roles: Roles = Roles(),
    policy: Path | None = flag(
        None, "--policy", "A TOML file, or a certificate: its roles, and its models as what should hold."
    ),
    measured: Measured = Measured(),
    earlier: Earlier = Earlier(),
    source: Source = Source(),
    as_json: bool = JSON_,
    **models: Any,
) -> None:
    """Measure every privacy model and the risks of any table, ours or not; exit 1 where a model given does not hold."""
    from shoal.model.policy import Policy
    from shoal.publishing.tables.audited import audit as look

    found = look(
        source_of(tables, source.glob),
        None if policy is None else Policy.read(policy),
        **roles.settings(),
        **source._asdict(),
        **measured.settings(),
        **earlier.settings(),
        **models,
    )
    answer(found.as_dict(), audit_lines(found.as_dict()), as_json)
    refuse_unmet(found.passes is not False)  # None: nothing was asked


def audit_lines(found: dict[str, Any]) -> list[str]:
    """An audit as a table for people."""
    risk = found["risk"]
    lines = [
        f"rows                 {found['rows']:,}",
        f"groups               {found['classes']:,} (smallest {found['smallest_class']:,}, "
        f"mean {found['mean_class']:.1f}, largest {found['largest_class']:,})",
        f"k                    {found['k']:,}",
        *(f"different {name:<10} {fewest:,} in the group with fewest" for name, fewest in found["persons"].items()),
        f"alone in a group     {found['uniques']:,}",
        f"prosecutor risk      highest {risk['prosecutor_max']:.3f}, mean {risk['prosecutor_mean']:.3f}",
        _journalist(risk),
        f"marketer risk        {risk['marketer']:.3f}",
        f"records at risk      {100 * risk['records_at_risk']:.1f} % above {risk['threshold']}",
    ]
    lines += _population(found["population"])
    if found["wildcards"] is not None:
        other = found["wildcards"]
        lines.append(
            f"as wildcards         k {other['k']:,}, uniques {other['uniques']:,}, prosecutor risk highest "
            f"{other['prosecutor_max']:.3f}, mean {other['prosecutor_mean']:.3f}"
        )
    for name, levels in found["sensitive"].items():
        shown = ", ".join(f"{_LEVELS[key]} {short(value)}" for key, value in levels.items() if value is not None)
        lines.append(f"{name:<20} {shown}")
    small = list(found["sizes"].items())[:12]
    lines.append("sizes of groups      " + ", ".join(f"{size}: {number:,}" for size, number in small) + _more(found))
    for told in found.get("composition", ()):
        lines += composition_lines(told)
    lines += [f"note: {note}" for note in found["notes"]]
    for check in found["checks"]:
        where = f" of {check['column']}" if check["column"] else ""
        wanted = ", ".join(f"{name} = {short(value)}" for name, value in dict(check["asked"]).items())
        verdict = "holds" if check["passes"] else "does NOT hold"
        lines.append(f"{check['model']}{where}, {wanted}: {verdict}; the table reaches {_level(check)}")
    return lines


def composition_lines(told: dict[str, Any]) -> list[str]:
    """What releases tell together, for people."""
    of = f" of {told['sensitive']}" if told["sensitive"] else ""
    alone = told["rows_alone"]
    if alone is not None:
        lines = [f"with earlier ones    {alone['rows']:,} rows may be about somebody who is in an earlier release"]
        if alone["tell"] is not None:
            lines.append(f"  one value left{of}: surely for {alone['tell']:,} of them, for {alone['may_tell']:,} maybe")
        return lines
    maybe = "may stand" if "assumed" in told["placed"] else "stand"
    lines = [f"with earlier ones    {told['people']:,} people {maybe} in several releases{of and ';' + of}"]
    for key, who in (("known", "groups known"), ("unknown", "a register")):
        learned = told[key]
        if learned is not None:
            lines.append(f"  {who:<18} " + "; ".join(_learned(learned, told["k"], told["l"])))
    if told["unplaced"]:
        lines.append(
            f"  {told['unplaced']:,} people have no published row that covers theirs, so are left out of the first"
        )
    return lines


def _learned(found: dict[str, Any], k: int, l: float | None) -> list[str]:
    parts = []
    if found["fewer_than_k"] is not None:
        parts.append(f"{found['fewer_than_k']:,} share all groups with fewer than {k}")
    if found["one_value"] is not None:
        parts.append(f"one value is left for {found['one_value']:,}")
    if found["above"] is not None:
        right = "" if found["right"] is None else f" (right for {100 * found['right']:.0f} %)"
        parts.append(
            f"a value is likelier than 1/{l:g} for {found['above']:,}{right}, by one release {found['alone']:,}"
        )
    if found["worst"] is not None:
        worst = found["worst"]
        left = (
            "" if worst["values"] is None else f", {worst['values']:,} values, the likeliest {worst['posterior']:.2f}"
        )
        parts.append(f"the worst: {worst['people']:,} alike{left}")
    return parts


_LEVELS = {
    "l": "l", "distinct_l": "different values", "entropy_l": "entropy l", "recursive_c": "c for l = 2",
    "alpha": "largest share of a value", "t_equal": "t", "t_ordered": "t of ordered values",
    "t_hierarchical": "t by the hierarchy", "beta": "beta", "delta": "delta",
}  # fmt: skip


def _level(check: dict[str, Any]) -> str:
    """The level reached; none where no finite one is enough: a group has one value, or lacks one of the table."""
    return "none, however lax" if check["level"] is None else short(check["level"])


def _journalist(risk: dict[str, Any]) -> str:
    if "journalist_mean" not in risk:
        return f"journalist risk      highest {risk['journalist_max']:.3f} (no population table: the prosecutor's)"
    out = (
        f"journalist risk      highest {risk['journalist_max']:.3g}, mean {risk['journalist_mean']:.3g}, "
        f"{100 * risk['journalist_at_risk']:.1f} % above {risk['threshold']}"
    )
    if "individual_max" in risk:
        out += f"; individual risk by weights at most {risk['individual_max']:.3g}, mean {risk['individual_mean']:.3g}"
    return out


def _population(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    uniques = found["uniques"]
    others = [
        n for n in ("zayatz", "snb", "pitman") if uniques["rule"] not in (n, "counted") and uniques[n] is not None
    ]
    how = "; ".join([uniques["rule"], *([", ".join(f"{n} {uniques[n]:,.0f}" for n in others)] if others else [])])
    alone = f"population uniques   about {uniques['dankar']:,.0f} of {found['rows']:,} people ({how})"
    if "k_map" not in found:
        return [alone]
    least, most = found["presence"]
    return [
        alone,
        f"population           {found['rows']:,} people ({found['from']}), at least {found['k_map']:,} fit a group; "
        f"rows per person {least:.3g} to {most:.3g}",
    ]


def _more(found: dict[str, Any]) -> str:
    hidden = len(found["sizes"]) - 12
    return f" and {hidden} more sizes" if hidden > 0 else ""
