"""Commands that publish nothing: ``shoal explore`` tries a grid of requests, ``shoal compare`` compares releases of a
table, ``shoal reproduce`` computes figures and tables of a paper, and ``shoal workbench`` opens the browser."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, in_flags, listed, pairs, present, progress, say, working
from shoal.cli.options import FORCE, JSON_, LABELS, METHODS, ROLES, Text, asks, flag, setting, value_of, with_options
from shoal.errors import InputError, MissingDependencyError, PolicyError
from shoal.model.cards import floored, number
from shoal.model.settings import RECODINGS, SETTINGS
from shoal.paths import PAGE, PICTURE, TABLE, is_picture

POINT = (
    *ROLES,
    "dates",
    "decimal",
    "identifiers",
    "insensitive",
    "hierarchies",
    "effort",
    "seed",
    "missing",
    "top",
    "bottom",
    "weights",
    "max_level",
    "global_recoding",
    "coarsen",
)  # the same for every point
EFFORT = "fast (default without a policy), balanced, thorough, or seconds a point."


class RequestGrid(NamedTuple):
    """Values to try, separated by commas."""

    k: str = flag("3,5,11", "--k", "Values of k, separated by commas.")
    l: str | None = flag(
        None, "--l", "Values of l (frequency form); 1 requires nothing. By default that of the policy, or 1."
    )
    publish: str | None = flag(None, "--publish", f"{', '.join(RECODINGS)}; several by commas.")
    method: str | None = flag(None, "--method", f"Separated by commas, of {METHODS}.")
    range_step: list[str] = flag([], SETTINGS["range_step"].option, SETTINGS["range_step"].help)

    def asked(self) -> dict[str, Any]:
        """These options as keyword arguments of ``shoal.explore``."""
        return {
            "k": _numbers(self.k, "--k"), "l": None if self.l is None else _numbers(self.l, "--l"),
            "publish": listed(self.publish), "method": listed(self.method),
            "range_step": value_of(SETTINGS["range_step"], self.range_step),
        }  # fmt: skip


@app.command()
@with_options
def explore(
    table: Path = typer.Argument(help="CSV (also .gz), Parquet, Excel, SPSS, Stata or SAS file."),
    policy: Path | None = flag(None, "--policy", "A TOML file. The grid replaces its k, and its l if --l is given."),
    options: dict[str, Any] = asks(POINT, models=True, effort=EFFORT),
    grid: RequestGrid = RequestGrid(),
    output: Path | None = flag(None, "-o", "--output", "An HTML page with the picture and the table."),
    engine: str | None = setting("engine"),
    text: Text = Text(),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Try a grid of k, l, and ways to publish. Prints loss, groups, and risk of each, and the best points."""
    from shoal.engines.atomic import check_outputs
    from shoal.model.policy import Policy
    from shoal.model.refusals import refuse_idle_hierarchies
    from shoal.utility.explore import explore as look

    check_outputs([(output, PAGE)], [table, policy, options.get("population")], overwrite=force)
    tried = grid.asked()
    present(table, folders=True)
    settings = {**options, "publish": "hierarchy"} if "hierarchy" in (tried["publish"] or ()) else options
    if policy is None:
        asked = Policy.of(None, **{"k": tried["k"][0], "effort": "fast", **settings})
    else:
        asked = Policy.read(policy, **settings)
    refuse_idle_hierarchies(asked, options.get("hierarchies", ()), tried["publish"] or ())
    halted: BaseException | None = None
    try:
        with progress() as listener:
            keep = None if output is None else lambda so_far: so_far.report(output)  # kept even if this is killed
            found = look(table, asked, **tried, engine=engine, **text._asdict(), progress=listener, partial=keep)
    except BaseException as stop:
        if not hasattr(stop, "found"):
            raise
        found, halted = stop.found, stop
    if output is not None:
        found.report(output)
    facts = found.as_dict() | ({"output": str(output)} if output is not None else {})
    if halted is not None:
        if not as_json:  # --json prints only one object, that of the interruption
            answer(
                facts, [*_point_lines(facts), f"interrupted after {len(found.found)} of {found.asked} points"], False
            )
        raise halted
    none = all(p["loss"] is None for p in facts["points"])
    if none:
        say("shoal: none of the requests has an answer; each says its reason", "error")
    answer(facts, _point_lines(facts), as_json, 3 if none else 0)


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise PolicyError(f"{option} {text!r}: give whole numbers separated by commas") from None


def _point_lines(facts: dict[str, Any]) -> list[str]:
    lines = ["    k    l  published as  loss     proved least  groups     risk   seconds"]
    for p in facts["points"]:
        start = f"{'*' if p['frontier'] else ' '}{p['k']:>4} {p['l']:>4}  {p['publish']:<12}"
        if p["loss"] is None:
            lines.append(f"{start}  {in_flags(p['reason'])}")
            continue
        bound = "" if p["bound"] is None else floored(p["bound"])
        lines.append(
            f"{start}  {p['loss']:<7.4f}  {bound:<12}  {p['groups']:>6,}  {p['risk']:>7.3f}  {p['seconds']:>8.1f}"
            + (f"  the release of {p['taken_from']}" if p["taken_from"] else "")
        )
    if any(p["frontier"] for p in facts["points"]):
        lines.append("* no other point has as little risk, as much diversity and as little loss")
    return lines + ([f"page    {facts['output']}"] if "output" in facts else [])


class ColumnsOfTable(NamedTuple):
    """Roles of the columns."""

    quasi: str | None = flag(None, "--quasi", "Quasi-identifiers, separated by commas.")
    sensitive: str | None = flag(None, "--sensitive", "Sensitive columns, separated by commas.")
    hierarchy: list[str] = LABELS

    def settings(self) -> dict[str, Any]:
        """These options as keywords of ``shoal.compare``."""
        trees = pairs(self.hierarchy, "--hierarchy") or None
        names = {"quasi_identifiers": self.quasi, "sensitive": self.sensitive}
        return {**{name: listed(given) or [] for name, given in names.items()}, "hierarchies": trees}


class ComparisonSettings(NamedTuple):
    """Settings of the comparison of releases with their original."""

    target: str | None = flag(None, "--target", "Column that a classifier learns; by default, the first sensitive one.")
    held_out: Path | None = flag(None, "--held-out", "Rows that no release contains, to judge the classifier.")
    population: Path | None = flag(None, "--population", "Table from which the original was drawn.")
    seed: int = flag(0, "--seed", "Seed of the random queries.")


@app.command()
@with_options
def compare(
    table: Path = typer.Argument(help="The original: CSV (also .gz), Parquet, Excel, SPSS, Stata or SAS file."),
    releases: list[Path] = typer.Argument(help="Releases of it from shoal, ARX, sdcMicro, anonypy, or other tools."),
    policy: Path | None = flag(None, "--policy", "A TOML file, or a certificate: its roles and hierarchies."),
    columns: ColumnsOfTable = ColumnsOfTable(),
    tried: ComparisonSettings = ComparisonSettings(),
    text: Text = Text(),
    output: Path | None = flag(None, "-o", "--output", "An HTML page with the same figures."),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Compare releases with their original: risks, loss, and what readers can compute."""
    from shoal.engines.atomic import check_outputs
    from shoal.model.policy import Policy
    from shoal.utility.compare import compare as held

    asked = None if policy is None else Policy.read(policy)
    beside = [p for p in (tried.held_out, tried.population) if p]
    check_outputs([(output, PAGE)], [table, *releases, *beside], overwrite=force)
    present(table, *releases, *beside, folders=True)
    names = [path.name for path in releases]
    if len(set(names)) < len(names):
        names = [str(path) for path in releases]
    with working("comparing"):
        given = dict(zip(names, releases, strict=True))
        found = held(table, given, asked, **columns.settings(), **tried._asdict(), **text._asdict())
    if output is not None:
        found.report(output)
    page = {} if output is None else {"output": str(output)}
    answer(found.as_dict() | page, [*_compared_lines(found), *(f"page  {name}" for name in page.values())], as_json)


def _compared_lines(found: Any) -> list[str]:
    table = found.table
    width = max(len(name) for name in table.columns)
    lines = [
        f"{column:<{width}}  " + "  ".join(f"{number(v):>16}" for v in table[column].to_list())
        for column in table.columns
        if table[column].null_count() < table.height
    ]
    return [*lines, *(f"note: {note}" for note in found.notes)]


# name -> "module:function". The function takes the output folder and the folder of the data (or None), writes its
# files, and returns {"files": [...], "observations": [...], ...}. The first line of its docstring describes the
# experiment, and FILES in its module lists the names of the files it writes.
EXPERIMENTS = {"names": "shoal.experiments.names:reproduce", "l-diversity": "shoal.experiments.l_diversity:reproduce"}


@app.command()
def reproduce(
    name: str | None = typer.Argument(None, help=f"One of: {', '.join(EXPERIMENTS)}."),
    output: Path = flag(Path("reproduced"), "-o", "--output", "Folder for CSV and PNG; created if missing."),
    data: Path | None = flag(None, "--data", "Folder with the data, if the experiment needs one."),
    force: bool = flag(False, "--force", "Replace files of an earlier run."),
    as_json: bool = JSON_,
) -> None:
    """Rerun a paper's experiment; of the four papers two report any."""
    import shutil
    from importlib import import_module
    from tempfile import TemporaryDirectory

    from shoal.engines.atomic import Piece, check_outputs, publish_together

    if name is None:
        raise PolicyError(f"no experiment is named; there is {' and '.join(EXPERIMENTS)}: shoal reproduce names")
    if name not in EXPERIMENTS:
        raise PolicyError.unknown("experiment", str(name), EXPERIMENTS)
    place, _, function = EXPERIMENTS[name].partition(":")
    module = import_module(place)
    begun = time.perf_counter()
    if output.exists() and not output.is_dir():
        raise InputError(f"{str(output)!r} is no folder; name one to write into")
    output.mkdir(parents=True, exist_ok=True)
    read = [] if data is None else [p for p in data.glob("*") if p.is_file()]
    wanted = [(output / file, PICTURE if is_picture(file) else TABLE) for file in module.FILES]
    closed = check_outputs(wanted, read, overwrite=force)
    with TemporaryDirectory() as folder, working(f"reproducing {name}"):
        found = getattr(module, function)(Path(folder), data)
        made = sorted(p for p in Path(folder).iterdir() if p.name in module.FILES)
        pieces = [Piece(output / p.name, lambda to, own=p: shutil.copyfile(own, to)) for p in made]  # type: ignore[misc]
        publish_together(pieces, closed=closed)
    found["files"] = [str(piece.path) for piece in pieces]
    payload = {"experiment": name, **found, "seconds": round(time.perf_counter() - begun, 3), "output": str(output)}
    lines = [*found.get("observations", []), *(f"wrote {path}" for path in found.get("files", []))]
    answer(payload, lines, as_json)


@app.command()
def workbench(
    table: Path | None = typer.Argument(
        None,
        help="CSV (also .gz), Parquet, Excel, SPSS, Stata or SAS file, a DuckDB or SQLite file, or the folder of a "
        "saved project.",
    ),
    demo: bool = flag(False, "--demo", "Open the survey that shoal demo publishes; you need no file."),
    browser: bool = flag(True, "--browser/--no-browser", "Open the page in the browser."),
    port: int | None = flag(None, "--port", "Port on this machine; a free port by default."),
) -> None:
    """Open a page in the browser that walks from a table to a release; nothing leaves this machine."""
    if demo and table is not None:
        raise PolicyError("--demo opens a table of its own; leave it out to open yours")
    if port is not None and not 0 < port < 65536:
        raise PolicyError(f"--port {port}: a number from 1 to 65535")
    if table is not None:
        present(table, folders=True)
    MissingDependencyError.unless("nicegui", "the workbench", "workbench")
    from shoal.workbench.server import serve

    serve(None if table is None else str(table.resolve()), demo=demo, browser=browser, port=port, say=_say)


def _say(address: str) -> None:
    typer.echo(f"shoal workbench: {address}\nonly this machine can open it; end it with Ctrl-C")
