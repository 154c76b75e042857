"""The program: its commands, one module each, and the help of each command.

A command's module imports large libraries only when the command runs. Each command's help has one line for the list
of commands, its options in sections (some commands have forty), and examples, which the tests run.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperOption

from shoal.model.settings import entry_of
from shoal.version import __version__

_WORDS = {  # sections of options that are not settings of a policy; settings have their section in their entry
    "Columns": "quasi weight x y label value columns categories cyclic date latitude longitude plane unit id "
    "source target column boundary exclude compare_prefix shape_id layer drop_codes",
    "Request": "least epsilon population_size threshold fail_above number levels policy mode wait wait_above "
    "without_waiting other_people no_counterfeits signatures",
    "Release": "hierarchy center grid naming names level",
    "Search": "prove rule improve objective islands unmatched tolerance order",
    "Files": "output output_table certificate record no_record no_bound internal recipient purpose decided_by "
    "after max_composition force_composition earlier with_original report explored sign signer secret "
    "tiles_to table map_to png dissolved picture plot choices geojson shapes assignments original "
    "register earlier held_out data folder separator encoding glob of_database query master parts "
    "force if_changed as_json log_json demo browser port",
}
IF_CHANGED = "Do nothing if request, inputs and outputs are those of the last run; else replace its outputs."
LOG_JSON = "Progress as lines of JSON on standard error."
_KIND = re.compile(r" (?:<([^>]+)>|([A-Z]+))$")
_KINDS = {"str": "TEXT", "int": "INTEGER"}  # versions of the parser name them differently
SECTIONS = {name: section for section, names in _WORDS.items() for name in names.split()}


def sections(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """Section -> (option, help text) of all options that are not hidden, arguments first."""
    found: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", *_WORDS, "Options")}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            section = "Arguments"
        else:
            entry = entry_of(str(parameter.name))
            other = SECTIONS.get(str(parameter.name), "Options") if entry is None else entry.section
            section = getattr(parameter, "rich_help_panel", None) or other
        found[section].append((_named(parameter, record[0]), record[1]))
    return {name: rows for name, rows in found.items() if rows}


def _named(parameter: Any, shown: str) -> str:
    """An argument as TABLE or TABLES..., an option as --k INTEGER, with all versions of the parser."""
    if parameter.param_type_name == "argument":
        name = str(parameter.name).upper() + ("..." if parameter.nargs == -1 else "")
        return name if parameter.required else f"[{name}]"
    kind = _KIND.search(shown)
    if kind is None:
        return shown
    word = (kind[1] or kind[2]).lower().removeprefix("list[").removesuffix("]")
    return f"{shown[: kind.start()]} {_KINDS.get(word, word.upper())}"


class Command(TyperCommand):
    """A command whose help has sections.

    A command with ``--json`` also has ``--log-json``, and one that writes a record also has ``--if-changed``.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        if any(p.name == "as_json" for p in self.params):
            self.params.append(TyperOption(param_decls=["--log-json"], is_flag=True, help=LOG_JSON))
        if any(p.name == "no_record" for p in self.params):
            self.params.append(TyperOption(param_decls=["--if-changed"], is_flag=True, help=IF_CHANGED))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The parser's method. It also refuses an option given twice, because only the last one would count."""
        if not ctx.resilient_parsing:
            order: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
            for option in dict.fromkeys(order):
                times = order.count(option)
                if option.param_type_name == "option" and times > 1 and not (option.multiple or option.is_flag):
                    name = max(option.opts, key=len)
                    many = "columns" in str(option.help).lower()
                    hint = f"separate columns by commas: {name} age,zip" if many else "give it once"
                    ctx.fail(f"{name} is given {times} times, and the last alone would count; {hint}")
        return super().parse_args(ctx, args)  # type: ignore[no-any-return]

    def invoke(self, ctx: Any) -> Any:
        """Runs the command. Its parameters are kept for the answer."""
        from shoal.cli.common import job

        job().parsed(ctx.params)
        try:
            return super().invoke(ctx)
        # the reader of our output has closed it; the parser would exit with 1, which means that a check failed
        except BrokenPipeError:
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(2)
        finally:
            lines = job().lines
            if lines is not None and isinstance(sys.exc_info()[1], SystemExit | None):
                lines.say("done", "done")

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line: [OPTIONS] TABLE, with arguments named as in the sections."""
        arguments = [p for p in self.get_params(ctx) if p.param_type_name == "argument"]
        return [self.options_metavar or "", *(_named(p, "") for p in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        for section, rows in sections(self, ctx).items():
            with formatter.section(section):
                formatter.write_dl(rows)

    def format_arguments(self, ctx: Any, formatter: Any) -> None:
        """Adds nothing: the sections list the arguments already."""


class Page(NamedTuple):
    """The help of a command.

    short     what the command does, for the list of commands
    examples  complete command lines, the one to start with first
    """

    short: str
    examples: tuple[str, ...]


# in the order of the list of commands: from a table to its release, then inspection, then other problems
PAGES = {
    "demo": Page("Anonymize a real table, without preparation.", ("shoal demo -o demo",)),
    "workbench": Page("Do all of this in the browser.", ("shoal workbench --help",)),
    "init": Page("Look at a table and write a first policy.", ("shoal init people.csv -o policy.toml",)),
    "anonymize": Page(
        "Publish a table in which each person is one of many.",
        (
            "shoal anonymize people.csv --quasi age,zip --sensitive disease --identifiers name --k 5 -o release.csv",
            "shoal anonymize people.csv --quasi age,zip --sensitive disease --identifiers name --k 5 --l 2 "
            "--publish ranges --range-step age=5 --report report.html -o ranges.csv",
            "shoal anonymize people.csv --quasi age,zip --sensitive disease --identifiers name --k 5 "
            "--publish hierarchy --hierarchy age=age.csv -o levels.csv",
            "shoal anonymize people.csv --quasi age,zip --insensitive disease --identifiers name --k-map 5 "
            "--population population.csv -o mapped.csv",
        ),
    ),
    "verify": Page(
        "Check a release against its certificate.",
        (
            "shoal verify release.csv",
            "shoal verify release.csv release.certificate.json --original people.csv",
            "shoal verify release.csv --original people.csv --prove balanced",
        ),
    ),
    "series": Page(
        "Publish a series of releases.",
        (
            "shoal series start cases --policy policy.toml",
            "shoal series add cases people.csv --person name",
            "shoal series waiting cases people.csv --person name -o waiting.csv",
            "shoal series status cases",
        ),
    ),
    "report": Page(
        "Make the report of a release later.", ("shoal report release.csv release.certificate.json -o later.html",)
    ),
    "fit": Page(
        "Find one recoding for several tables.",
        (
            "shoal fit people.csv --quasi age,zip --identifiers name --insensitive disease --k 5 "
            "--hierarchy age=intervals:5,10 -o recoder.toml",
        ),
    ),
    "apply": Page(
        "Publish another table with a recoding from fit.",
        (
            "shoal apply recoder.toml people.csv -o july.csv",
            "shoal apply recoder.toml people.csv -o august.csv --after july.csv",
        ),
    ),
    "audit": Page(
        "Measure privacy and risks of any table.",
        (
            "shoal audit release.csv --quasi age,zip --sensitive disease --k 5",
            "shoal audit release.csv --policy release.certificate.json",
            "shoal audit july.csv --with release.csv --quasi age,zip --sensitive disease --original people.csv",
        ),
    ),
    "explore": Page(
        "Try a grid of k and l: loss against risk.",
        ("shoal explore people.csv --quasi age,zip --sensitive disease --k 3,5 --l 1,2 -o explore.html",),
    ),
    "compare": Page(
        "Compare releases of a table.",
        (
            "shoal compare people.csv release.csv ranges.csv --quasi age,zip --sensitive disease",
            "shoal compare people.csv release.csv --policy release.certificate.json",
        ),
    ),
    "attack": Page(
        "Test what an intruder learns from a release.",
        (
            "shoal attack release.csv --original people.csv --fail-above 0.9 -o attack.html",
            "shoal attack ranges.csv --register population.csv --with release.csv",
        ),
    ),
    "keygen": Page("Make keys that sign certificates.", ("shoal keygen steward.key",)),
    "regions": Page(
        "Merge neighboring areas above a population.",
        ("shoal regions areas.csv pairs.csv --weight people --k 5000 -o regions.csv",),
    ),
    "tiles": Page(
        "Cut points on a map into rectangles.",
        (
            "shoal tiles points.csv --x longitude --y latitude --k 5 --table tiles.csv",
            "shoal tiles points.csv --x longitude --y latitude --k 5 -o places.csv",
        ),
    ),
    "gather": Page(
        "Cluster records around centers, smallest radius.",
        (
            "shoal gather people.csv --columns age,zip --r 5 -o clusters.csv",
            "shoal gather points.csv --latitude latitude --longitude longitude --r 5 -o circles.csv",
        ),
    ),
    "cellular": Page(
        "Cluster records, smallest sum of radii.",
        ("shoal cellular people.csv --columns age --r 5 --setup-cost 1 -o cells.csv",),
    ),
    "labels": Page(
        "Group names with counts, at least k each.",
        ("shoal labels employers.csv --label employer --count people --k 50 -o employers.groups.csv",),
    ),
    "intervals": Page(
        "Cut ordered values into intervals of k.", ("shoal intervals people.csv --value age --k 5 -o ages.csv",)
    ),
    "assign": Page(
        "Give new records the groups of an earlier answer.", ("shoal assign places.csv new-points.csv -o placed.csv",)
    ),
    "reproduce": Page("Rerun a paper's experiment.", ("shoal reproduce names -o reproduced",)),
}

FIRST = (
    "\b\nBegin with:\n"
    "  shoal demo                                  a real table, without preparation\n"
    "  shoal init people.csv                       reads your table, writes people.policy.toml\n"
    "  shoal anonymize people.csv --policy people.policy.toml\n"
    "  shoal verify people.release.csv people.release.certificate.json\n\n"
    "\b\nEach command has examples: shoal anonymize --help.  Exit status: 0 done, 1 a check failed,\n"
    "2 bad usage or input, 3 no answer exists, 4 an output exists already.\n"
    "With shoal --install-completion, the Tab key completes commands."
)


def describe_commands(app: Any) -> None:
    """Gives every command of a typer application its short help, its examples, and its position in the list."""
    order = list(PAGES)
    for command in app.registered_commands:
        page = PAGES[command.callback.__name__]
        command.cls = Command
        command.short_help = page.short
        command.epilog = "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in page.examples)])
    app.registered_commands.sort(key=lambda command: order.index(command.callback.__name__))


app = typer.Typer(
    name="shoal",
    help="Publish tables about people so that each person is one of many, and prove what it cost.",
    no_args_is_help=True,
    epilog=FIRST,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version and exit.")
) -> None:
    if version:
        typer.echo(__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
