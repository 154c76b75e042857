"""The workbench's step for hierarchies: built by a wizard, from a file, or by hand.

It shows the share of the rows in every class. A hierarchy is a list of rows (value, class at level 1, ..., star). Every
edit keeps it nested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nicegui import ui

from shoal.workbench.open_step import chooser, note, plain
from shoal.workbench.places_step import areas
from shoal.workbench.projects import copied, existing, visible


@dataclass
class Tree:
    """The hierarchy of one column during editing.

    rows    a list for each value: the value, its class at every level, the star
    counts  rows of the table with each value
    total   rows of the table
    """

    rows: list[list[str]]
    counts: list[int]
    total: int

    @property
    def height(self) -> int:
        """The number of levels, including the values and the star."""
        return len(self.rows[0]) if self.rows else 1

    def classes(self, level: int) -> dict[str, list[str]]:
        """Class of a level -> its classes of the level below, in order."""
        found: dict[str, dict[str, None]] = {}
        for row in self.rows:
            found.setdefault(row[level], {})[row[level - 1]] = None
        return {name: list(held) for name, held in found.items()}

    def shares(self, level: int) -> dict[str, float]:
        """Class of a level -> share of the table's rows in it."""
        held: dict[str, int] = {}
        for row, many in zip(self.rows, self.counts, strict=True):
            held[row[level]] = held.get(row[level], 0) + many
        return {name: many / max(self.total, 1) for name, many in held.items()}

    def move(self, level: int, names: Sequence[str], target: str) -> None:
        """Move classes of the level below into a class. A new class gets the parent that the first of them had."""
        wanted = set(names)
        above = next((row[level + 1 :] for row in self.rows if row[level] == target), None)
        for row in self.rows:
            if row[level - 1] in wanted:
                if above is None:
                    above = row[level + 1 :]
                row[level:] = [target, *above]

    def rename(self, level: int, old: str, new: str) -> bool:
        """Rename a class; False if the new name is empty or already in use at this level."""
        if not new or any(row[level] == new for row in self.rows) or level >= self.height - 1:
            return False
        for row in self.rows:
            if row[level] == old:
                row[level] = new
        return True

    def add_level(self) -> None:
        """Add a level below the star, at first equal to the one below it."""
        for row in self.rows:
            row.insert(len(row) - 1, row[-2])

    def remove_level(self, level: int) -> None:
        """Remove one of the levels between values and star."""
        if 0 < level < self.height - 1:
            for row in self.rows:
                del row[level]


WIZARDS = {
    "intervals": "Intervals of numbers",
    "prefixes": "Beginnings of a text (zip codes)",
    "dates": "Periods of dates",
    "order": "Neighbors in order",
    "frequency": "Rare values together",
    "bins": "Classes of at least k rows, as small as can be (min-max bin covering)",
}
IN_USE = "in_use"
DRAGGED = "(event) => { event.dataTransfer.setData('text/plain', ' '); emit(); }"  # Firefox starts no drag without data
SHOWN = 200  # most members of a class that are shown


def draw(window: Any) -> None:
    """Draw the panel."""
    task = window.task
    ui.html("<h2>How may values be generalized?</h2>", sanitize=False)
    quasi = task.named("quasi_identifiers") if task.source else []
    close = task.named("sensitive") if "t_hierarchical" in task.settings else []  # their hierarchies say what is close
    if not quasi:
        ui.label("Open a table and give a column the role quasi-identifier first.")
        return
    note("A hierarchy says for each value the classes that contain it, up to the star. It is used where values are "
             "published as classes of a hierarchy.")  # fmt: skip
    held = task.settings.get("hierarchies", {})
    without = [name for name in quasi if name not in held]
    if without:
        note(f"Without a hierarchy, the value or a star: {', '.join(without)}")
    for name in [name for name in (*quasi, *close) if name in held]:
        said = "made by hand or from a file" if Path(held[name]).is_file() else held[name]
        with ui.row().style("align-items: center"):
            note(f"{name}: {said}")
            others = {n: h for n, h in held.items() if n != name}
            remove = ui.button("Remove", on_click=lambda left=others: _keep(window, left))
            remove.props(f'no-caps outline dense aria-label="Remove the hierarchy of {plain(name)}"')
    _Editor(window, quasi + close).draw()
    with ui.expansion("From a map: neighboring zip codes or counties merged into regions").classes("wb-wide"):
        areas(window)
    ui.button("Next: release", on_click=lambda: window.go("Release")).props("no-caps")


def _keep(window: Any, hierarchies: dict[str, str]) -> None:
    """Keep only these hierarchies."""
    window.set("Hierarchies", "Models", "Explore", "Release", hierarchies=hierarchies)


class _Editor:
    """The editor of one column's hierarchy: the wizard's fields above, the classes below."""

    def __init__(self, window: Any, columns: list[str]) -> None:
        self.window, self.columns = window, columns
        self.tree: Tree | None = None
        self.asked: Any = None  # the wizard's request for the tree, until the tree is changed by hand
        self.before: list[tuple[Any, list[list[str]]]] = []  # states for undo: before each change by hand
        self.level = 1
        self.number = 0  # number of the latest request for a tree
        self.chosen: set[str] = set()
        self.dragged: str | None = None
        self.shares: dict[int, dict[str, float]] = {}

    def draw(self) -> None:
        """Draw the fields and, once there is a tree, its classes."""
        self.kinds = {c["name"]: c for c in self.window.task.columns}
        self.column = ui.select(self.columns, value=self.columns[0], label="Column").classes("wb-wide")
        self.way = ui.select(WIZARDS, value="order", label="How it is made").classes("wb-wide")
        self.steps = ui.input("Levels").classes("wb-wide")
        self.way.on_value_change(lambda: self._hint())
        self.column.on_value_change(lambda: self._of_column())
        with ui.row().style("align-items: center"):
            ui.button("Show the tree", on_click=self.show).props("no-caps")
            ui.button("Use this hierarchy", on_click=self.use).props("no-caps outline")
        with ui.expansion("From a file (ARX hierarchy CSV)").classes("wb-wide"):
            chooser(self.window, "Choose the file of a hierarchy, or drop it here", ".csv,.txt", self._chosen)
            path = ui.input("Path of the file").classes("wb-wide")
            ui.button("Read it", on_click=lambda: self._read(path.value or "")).props("no-caps outline")
        self.doing = ui.label().props("role=status").classes("wb-note")
        self.place = ui.column().classes("wb-wide")
        self._of_column()

    def _of_column(self) -> None:
        """List the builders that fit the chosen column, the most likely first.

        The tree of the previous column is removed.
        """
        self.tree, self.before = None, []
        self.number += 1  # results of pending requests are ignored
        self.doing.set_text("")
        self.place.clear()
        kind = self.kinds[self.column.value]["kind"]
        used = self.column.value in self.window.task.settings.get("hierarchies", {})
        way = "intervals" if "number" in kind else "dates" if "date" in kind else "prefixes"
        self.way.set_options({**({IN_USE: "The one in use, to look at or change"} if used else {}), **WIZARDS},
                             value=IN_USE if used else way)  # fmt: skip
        self._hint()

    def _hint(self) -> None:
        self.steps.visible = self.way.value != IN_USE
        label, start = {
            IN_USE: ("Levels", ""),
            "intervals": (
                "Widths, each a multiple of the one before",
                self.kinds[self.column.value]["widths"] or "5, 10, 20",
            ),
            "prefixes": ("Characters kept at each level, falling; empty: one less at a time", ""),
            "dates": ("Periods in rising order: day, month, quarter, year, decade", "month, year"),
            "order": ("Values in a class", "3"),
            "frequency": ("Values under this share of the rows, in percent, become one class", "5"),
            "bins": ("Minimum rows in a class (k)", str(self.window.task.settings.get("k", 5) * 10)),
        }[self.way.value]
        self.steps.props(f'label="{label}"')
        self.steps.set_value(start)

    def _asked(self) -> Any:
        """The wizard's fields as the job's argument; None with a message if a field has no fitting number."""
        text = (self.steps.value or "").strip()
        if self.way.value == IN_USE:
            return self.window.task.settings["hierarchies"][self.column.value]
        if self.way.value in ("order", "bins"):
            if not text.isdecimal() or int(text) < 1:
                self.window.say(f"{self.steps.props['label']}: give a whole number, at least 1.", bad=True)
                return None
            return {"by": "order", "size": int(text)} if self.way.value == "order" else {"by": "bins", "k": int(text)}
        if self.way.value == "frequency":
            try:
                share = float(text.replace(",", ".")) / 100
            except ValueError:
                share = -1.0
            if not 0 < share <= 1:
                self.window.say("The share is a number of percent, above 0 and at most 100.", bad=True)
                return None
            return {"by": "frequency", "share": share}
        return f"{self.way.value}:{text.replace(' ', '')}" if text else self.way.value

    async def show(self) -> None:
        """Build the wizard's tree of this column's values."""
        asked = self._asked()
        if asked is not None:
            await self._look(asked)

    async def _read(self, path: str) -> None:
        place = existing(path)
        if place is None or not place.is_file():
            self.window.say("There is no file of that name.", bad=True)
            return
        await self._look(str(place))

    async def _chosen(self, place: Path) -> None:
        await self._look(str(place))

    async def _look(self, asked: Any) -> None:
        self.number += 1
        mine = self.number
        self.doing.set_text("making the tree")
        found = await self.window.ask("tree", source=self.window.task.source, column=self.column.value, hierarchy=asked)
        if mine != self.number:
            return
        self.doing.set_text("")
        if found is None:
            return
        if "lacks" in found:
            self._lacks(found)
            return
        if not found["rows"]:
            self.window.say(f"Every value of {self.column.value} is missing, so there is nothing to put into classes.",
                            bad=True)  # fmt: skip
            return
        self.asked, self.before = asked, []
        self.tree = Tree(found["rows"], found["counts"], found["total"])
        self.whole = found["all"] == len(found["rows"])
        self.level, self.chosen = 1, set()
        self._classes()

    def _lacks(self, found: dict[str, Any]) -> None:
        """Say that the hierarchy lacks values of the column, and show which on the page."""
        self.window.say(f"{found['refused']}. The page lists these values.", bad=True)
        self.tree = None
        self.place.clear()
        with self.place:
            shown = ", ".join(found["lacks"][:SHOWN])
            more = f" and {found['all'] - SHOWN:,} more" if found["all"] > SHOWN else ""
            column = visible(self.column.value)
            ui.label(f"Values of {column} that the hierarchy lacks: {shown}{more}").classes("wb-warn")

    def _classes(self) -> None:
        self.place.clear()
        tree = self.tree
        assert tree is not None
        with self.place:
            if not self.whole:
                ui.label("Too many values to edit by hand: the first are shown, and all are used.").classes("wb-warn")
            ui.html("<h3>The tree</h3>", sanitize=False)
            levels = {h: f"Level {h}" for h in range(1, tree.height)}
            self.level = min(self.level, tree.height - 1)
            with ui.row().style("align-items: center"):
                choice = ui.select(levels, value=self.level, label="Classes of").style("width: 10rem")
                choice.on_value_change(lambda e: self._at(e.value))
                ui.button("Add a level", on_click=lambda: self._changed(tree.add_level)).props("no-caps outline")
                ui.button(
                    "Remove this level", on_click=lambda: self._changed(lambda: tree.remove_level(self.level))
                ).props("no-caps outline")
                back = ui.button("Undo this edit", on_click=self._back).props("no-caps outline")
                back.set_enabled(bool(self.before))
            held = tree.classes(self.level)
            self.shares = {level: tree.shares(level) for level in (self.level - 1, self.level)}
            note("Mark values, name a class, and press Move; or drag a value to another class.")
            with ui.row().classes("wb-wide").style("align-items: center"):
                target = ui.input("Class for the marked values, also a new one", autocomplete=list(held)[:200]).style(
                    "width: min(24rem, 100%)"
                )
                ui.button("Move", on_click=lambda: self._move(sorted(self.chosen), target.value or "")).props("no-caps")
            with ui.element("div").props('role=tree aria-label="Classes of the hierarchy"').classes("wb-wide"):
                for name, members in list(held.items())[:SHOWN]:
                    self._class(tree, name, members)

    def _class(self, tree: Tree, name: str, members: list[str]) -> None:
        share = self.shares[self.level][name]
        with ui.card().classes("wb-card").style("margin: .3rem 0; padding: .4rem .8rem").props("role=treeitem") as box:
            with ui.row().classes("wb-wide").style("align-items: center; gap: .6rem"):
                title = ui.input(value=name).props('dense borderless aria-label="Name of the class"')
                title.on("change", lambda: self._rename(name, title.value or ""))
                ui.linear_progress(share, show_value=False).style("width: 8rem").props('aria-label="Share of the rows"')
                ui.label(f"{100 * share:.1f} % of the rows")
            with ui.row().style("gap: .3rem"):
                for member in members[:SHOWN]:
                    self._member(member, self.shares[self.level - 1][member])
                if len(members) > SHOWN:
                    ui.label(f"and {len(members) - SHOWN:,} more")
        box.on("dragover.prevent", lambda: None)
        box.on("drop.prevent", lambda: self._move([self.dragged] if self.dragged else [], name))

    def _member(self, name: str, share: float) -> None:
        mark = ui.checkbox(f"{name or '(empty)'}: {100 * share:.1f} %", value=name in self.chosen)
        mark.props("dense draggable=true")
        mark.on_value_change(lambda e: self.chosen.add(name) if e.value else self.chosen.discard(name))
        mark.on("dragstart", lambda: setattr(self, "dragged", name), js_handler=DRAGGED)

    def _at(self, level: int) -> None:
        self.level, self.chosen = level, set()
        self._classes()

    def _changed(self, act: Callable[[], bool | None]) -> bool:
        """Change the tree by hand.

        False without a change if only a part of it is shown, or if ``act`` returns False.
        """
        tree = self.tree
        assert tree is not None
        if not self.whole:
            self.window.say("This column has too many values to edit by hand.", bad=True)
            return False
        before = self.asked, [list(row) for row in tree.rows]
        if act() is False:
            return False
        self.window.close_refusals()
        self.before.append(before)
        self.asked, self.chosen, self.dragged = None, set(), None
        self._classes()
        return True

    def _back(self) -> None:
        """Undo the last change by hand."""
        assert self.tree is not None
        self.asked, self.tree.rows = self.before.pop()
        self.chosen = set()
        self._classes()

    def _move(self, names: list[str], target: str) -> None:
        tree = self.tree
        if not names or not target or tree is None:
            self.window.say("Mark values, and name the class they move to.", bad=True)
        elif self.level == tree.height - 1:
            self.window.say("All lie under the star here; add a level first.", bad=True)
        else:
            self._changed(lambda: tree.move(self.level, names, target))

    def _rename(self, old: str, new: str) -> None:
        tree = self.tree
        assert tree is not None
        if self.whole and not self._changed(lambda: tree.rename(self.level, old, new)):
            self.window.say("A class needs a name that no other of its level has, and the last level is the star.",
                            bad=True)  # fmt: skip

    async def use(self) -> None:
        """Add the hierarchy to the request; one that was changed by hand is first saved as an ARX CSV."""
        task, column = self.window.task, self.column.value
        if self.tree is None:
            await self.show()
            if self.tree is None:
                return
        source = self.asked
        if not isinstance(source, str) or Path(source).is_file():
            folder = task.folder / "hierarchies"
            folder.mkdir(mode=0o700, exist_ok=True)
            place = folder / f"{1 + len(list(folder.iterdir()))}.csv"
            if isinstance(source, str):  # of the whole file, because later tables may have more values
                copied(Path(source), place)
            elif not await self.window.ask("save_tree", rows=self.tree.rows if source is None else None,
                                           source=task.source, column=column, hierarchy=source,
                                           path=str(place)):  # fmt: skip
                return
            source = str(place)
        recoded = task.role(column) == "quasi_identifiers"
        what = "values are published as its classes" if recoded else f"it says which values of {column} are close"
        self.window.say(f"The hierarchy is used, and {what}.")
        self.window.set("Hierarchies", "Models", "Release", **({"publish": "hierarchy"} if recoded else {}),
                        hierarchies={**task.settings.get("hierarchies", {}), column: source})  # fmt: skip
