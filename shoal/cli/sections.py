"""The options of a command in sections, so that the help of a command with forty of them can be read."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

from shoal.model.shorthands import SHORTHANDS

_WORDS = {
    "Columns": "quasi sensitive identifiers insensitive person household coordinates weight weights x y label value "
    "counted columns categories cyclic latitude longitude plane unit id source target column boundary soft_boundary "
    "strict_roles fixed apart exclude water similar sums means compare_prefix shape_id drop_codes",
    "Request": "k l r least distinct_l epsilon preset max_average_risk minimality population population_weights "
    "population_size missing threshold fail_above number at_most max_diameter max_width max_clusters setup_cost levels "
    "policy mode wait wait_above without_waiting no_counterfeits",
    "Release": "publish hierarchy max_level range_step global_recoding max_suppressed star center grid "
    "coarsen extent sparse naming names keep_order level",
    "Search": "method effort prove shards seed rule improve objective islands unmatched tolerance order engine",
    "Files": "output output_table certificate record no_record no_bound internal recipient purpose decided_by "
    "after max_composition force_composition earlier with_original "
    "report explored sign signer secret tiles_to table map_to png dissolved picture plot "
    "choices geojson shapes assignments original register earlier held_out data folder separator encoding "
    "glob query master memory threads temporary parts "
    "force as_json demo browser port",
}
_KIND = re.compile(r" (?:<([^>]+)>|([A-Z]+))$")
_KINDS = {"str": "TEXT", "int": "INTEGER"}  # versions of the parser name them differently
SECTIONS = {name: section for section, names in _WORDS.items() for name in names.split()}


def sections(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """Section -> (option, what it does), arguments first, nothing hidden left out."""
    found: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", *_WORDS, "Options")}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            section = "Arguments"
        else:
            section = "Request" if parameter.name in SHORTHANDS else SECTIONS.get(parameter.name, "Options")
        found[section].append((_named(parameter, record[0]), record[1]))
    return {name: rows for name, rows in found.items() if rows}


def _named(parameter: Any, shown: str) -> str:
    """An argument as TABLE or TABLES..., an option as --k INTEGER: alike in all versions of the parser."""
    if parameter.param_type_name == "argument":
        name = str(parameter.name).upper() + ("..." if parameter.nargs == -1 else "")
        return name if parameter.required else f"[{name}]"
    kind = _KIND.search(shown)
    if kind is None:
        return shown
    word = (kind[1] or kind[2]).lower().removeprefix("list[").removesuffix("]")
    return f"{shown[: kind.start()]} {_KINDS.get(word, word.upper())}"


class Command(TyperCommand):
    """A command whose help is in sections."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """[OPTIONS] TABLE: arguments as the sections name them."""
        arguments = [p for p in self.get_params(ctx) if p.param_type_name == "argument"]
        return [self.options_metavar or "", *(_named(p, "") for p in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        for section, rows in sections(self, ctx).items():
            with formatter.section(section):
                formatter.write_dl(rows)

    def format_arguments(self, ctx: Any, formatter: Any) -> None:
        """They stand among the sections."""
