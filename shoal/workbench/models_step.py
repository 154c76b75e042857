"""The workbench's step for privacy models and recodings.

The user selects models by the risk that each one limits, described in plain words with the formal name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from nicegui import ui

import shoal
from shoal.workbench.open_step import note


class Worry(NamedTuple):
    """A risk in plain words, its formal name, an example, and the keywords of models that limit it, the usual first."""

    words: str
    formal: str
    example: str
    models: tuple[str, ...]


WORRIES = (
    Worry(
        "Someone finds a person's row", "identity disclosure",
        "A neighbor knows the age and the zip code, and only one row fits.", ("k",),
    ),
    Worry(
        "Everyone in the group has the same value", "attribute disclosure",
        "Five rows fit the neighbor, and all five have the same disease.",
        ("l", "distinct_l", "entropy_l", "recursive_cl", "alpha_k"),
    ),
    Worry(
        "A group tells more than the whole table", "attribute disclosure, by distribution",
        "One in ten has the disease in the table, nine in ten in the neighbor's group.",
        ("t", "t_ordered", "t_hierarchical", "beta", "beta_basic", "delta"),
    ),
    Worry(
        "Several sensitive columns tell on one another", "multiple sensitive attributes",
        "Someone who knows the diagnosis can tell the treatment.", ("simultaneous_l",),
    ),
    Worry(
        "Someone learns that a person is in the table", "membership disclosure",
        "Being in the register of a clinic says enough. Needs a table of the population.", ("presence", "k_map"),
    ),
)  # fmt: skip

STARTS: Mapping[str, tuple[float, ...]] = {  # initial numbers of a model when it is switched on
    "k": (5,), "l": (2,), "distinct_l": (2,), "entropy_l": (2.0,), "recursive_cl": (3.0, 2), "alpha_k": (0.5, 5),
    "t": (0.2,), "t_ordered": (0.2,), "t_hierarchical": (0.2,), "beta": (1.0,), "beta_basic": (1.0,), "delta": (1.0,),
    "simultaneous_l": (2,), "k_map": (5,), "presence": (0.0, 0.2),
}  # fmt: skip


HELP: Mapping[str, str] = {  # for models whose own help is notation, or about command options
    "recursive_cl": "The most frequent sensitive value of a group is rarer than c times the values from the l-th on.",
    "alpha_k": "At least k rows in every group, of which at most the share alpha has the same sensitive value.",
    "t_ordered": "The same, where the sensitive values have an order: neighbors in it are close.",
    "t_hierarchical": "The same, where a hierarchy of the sensitive column says which values are close. Switch it on, "
    "and make the hierarchy under Hierarchies.",
    "beta": "In a group, no sensitive value's share grows by more than the factor 1 + beta; less for frequent ones.",
    "beta_basic": "In a group, no sensitive value's share grows by more than the factor 1 + beta.",
    "delta": "In a group, every value's share is that of the table, up to a factor below e to the power of delta.",
    "k_map": "Every group fits at least k rows of the population's table.",
    "presence": "Of the people whom a group fits in the population, the share that is in this table.",
}

PARTS: Mapping[str, tuple[str, ...]] = {  # meaning of each number of a model with two
    "recursive_cl": ("c", "l"), "alpha_k": ("alpha", "k"), "presence": ("least share", "greatest share"),
}  # fmt: skip


def in_words(models: Mapping[str, Any], but: tuple[str, ...] = ()) -> list[str]:
    """Each number of each model once, by its name: k = 5, alpha = 0.7.

    but  names that are left out
    """
    found: dict[str, None] = {}
    for model, given in models.items():
        parts = PARTS.get(model, (model,))
        for part, number in zip(parts, given if model in PARTS else (given,), strict=True):
            if part not in but:
                found[f"{part} = {number}"] = None
    return list(found)


def request_in_words(settings: Mapping[str, Any]) -> str:
    """A request in short: the numbers of its models, and how values are published."""
    models = {m: settings[m] for m in shoal.choices()["models"] if settings.get(m) is not None}
    rules = [f"rule book {settings['preset']}"] if settings.get("preset") else []
    return ", ".join([*rules, *in_words(models), settings.get("publish", "stars")])


def worries() -> tuple[Worry, ...]:
    """All risks; a model of the package that no risk lists gets its own."""
    named = {model for worry in WORRIES for model in worry.models}
    rest = tuple(model for model in shoal.choices()["models"] if model not in named)
    return WORRIES if not rest else (*WORRIES, Worry("Other models", "", "", rest))


def whole(number: float | None) -> int | None:
    """The content of a field as a whole number; None if it is empty or has a fraction."""
    return int(number) if number is not None and math.isfinite(number) and number == int(number) else None


def start(model: str) -> Any:
    """The initial number or numbers of a model."""
    kinds = shoal.choices()["models"][model]["numbers"]
    given = STARTS.get(model, (1,) * len(kinds))
    numbers = [int(x) if kind == "int" else float(x) for x, kind in zip(given, kinds, strict=True)]
    return numbers[0] if len(numbers) == 1 else numbers


def draw(window: Any) -> None:
    """Draw the panel."""
    ui.html("<h2>What are you worried about?</h2>", sanitize=False)
    if not window.task.source:
        ui.label("Open a table first.")
        return
    choices = shoal.choices()
    _preset(window, choices)
    fields: dict[str, list[Any]] = {}
    for worry in worries():
        with ui.card().classes("wb-card"):
            ui.html(f"<h3 style='margin:0'>{worry.words}</h3>", sanitize=False)  # contains no text of the table
            if worry.formal:
                note(f"Formal name: {worry.formal}. Example: {worry.example}")
            if POPULATION & set(worry.models):
                _population(window)
            for model in worry.models:
                _model(window, model, choices["models"][model], fields)
    if window.task.settings.get("privacy"):
        with ui.card().classes("wb-card"):
            note("Of the ARX project, for single columns: see the sentence on top.")
            ui.button("Ask no more for them", on_click=lambda: window.set("Models", privacy=None)).props(
                "no-caps outline"
            )
    _published(window, choices)
    ui.button("Next: release", on_click=lambda: window.go("Release")).props("no-caps")


def _preset(window: Any, choices: dict[str, Any]) -> None:
    books = {"": "none", **{n: f"{n}: {b['why']}" for n, b in choices["presets"].items()}}
    chosen = ui.select(
        books, value=window.task.settings.get("preset", ""), label="Rule book: sets the models for you (preset)"
    )
    chosen.classes("wb-wide")
    words = note()

    def said(name: str) -> None:
        book = choices["presets"].get(name)
        words.set_text("" if book is None else f"Source: {book['source']}. It does not cover {book['does_not_cover']}.")

    def change(event: Any) -> None:
        said(event.value)
        window.set("Release", preset=event.value or None)

    said(chosen.value)
    chosen.on_value_change(change)


def _model(window: Any, keyword: str, model: dict[str, Any], others: dict[str, list[Any]]) -> None:
    """A switch and the numbers of a model; ``others`` are the fields of all models."""
    task = window.task
    held = task.settings.get(keyword)
    needs_sensitive = model["applies_to"] in ("column", "tuples")
    possible = not needs_sensitive or bool(task.settings.get("sensitive"))
    if keyword in POPULATION:
        possible = task.settings.get("population") is not None
    numbers = held if isinstance(held, (list, tuple)) else [held if held is not None else start(keyword)]
    if held is None and isinstance(start(keyword), list):
        numbers = start(keyword)
    with ui.row().classes("wb-wide").style("align-items: center; gap: .8rem"):
        switch = ui.switch(f"{model['name']}: {HELP.get(keyword, model['help'])}", value=held is not None)
        fields = [
            ui.number(keyword if len(numbers) == 1 else f"{keyword}: {_part(keyword, i)}", value=n,
                      step=1 if kind == "int" else 0.1)
            .props("dense outlined").style("width: 9rem")
            for i, (n, kind) in enumerate(zip(numbers, model["numbers"], strict=True))
        ]  # fmt: skip

    others[keyword] = fields

    def change(_event: Any) -> None:
        if not switch.value:
            window.set("Hierarchies", "Release", **{keyword: None})
            return
        held = task.settings.get(keyword)
        given: list[Any] = []
        for number, (one, kind) in enumerate(zip(fields, model["numbers"], strict=True)):
            named = keyword if len(fields) == 1 else f"{keyword}: {_part(keyword, number)}"
            before = None if held is None else held[number] if len(fields) > 1 else held
            given.append(_number(window, one, named, kind == "int", before))
        if None in given:
            return
        values: dict[str, Any] = {keyword: given[0] if len(given) == 1 else given}
        alpha = task.settings.get("alpha_k")
        if keyword == "k" and alpha and alpha[1] == task.settings.get("k"):  # the k that was set in both models
            values["alpha_k"] = [alpha[0], given[0]]
            others["alpha_k"][1].set_value(given[0])
        window.set("Hierarchies", "Release", **values)

    switch.set_enabled(possible)
    if not possible and needs_sensitive:
        switch.tooltip("It protects a sensitive column; give one that role first.")
    if not possible and keyword in POPULATION:
        switch.tooltip("It needs the table of the population; give its path first.")
    switch.on_value_change(change)
    for one in fields:
        one.on("change", change)
        one.set_enabled(possible)
    if keyword == "k":
        note("A group is all rows that look alike on the quasi-identifiers: an equivalence class.")


def _number(window: Any, field: Any, name: str, counts: bool, before: Any) -> float | int | None:
    """The number in a field; None with a message if there is none, and then the field shows the one in use again.

    counts  whether the number must be whole
    """
    number = field.value
    if number is not None and math.isfinite(number) and (not counts or whole(number) is not None):
        return int(number) if counts else float(number)
    kind = "a whole number" if counts else "a number"
    found = "the field is empty" if number is None else f"{number} is none"
    window.say(f"{name} is {kind}, and {found}." + ("" if before is None else f" It stays {before}."), bad=True)
    if before is not None:
        field.set_value(before)
    return None


def _part(keyword: str, number: int) -> str:
    """The meaning of one of several numbers of a model."""
    named = PARTS.get(keyword, ())
    return named[number] if number < len(named) else f"number {number + 1}"


def _population(window: Any) -> None:
    place = ui.input("Path of the population's table", value=str(window.task.settings.get("population") or ""))
    place.classes("wb-wide").on("change", lambda: window.set("Models", "Release", population=place.value or None))


def _published(window: Any, choices: dict[str, Any]) -> None:
    task = window.task
    ui.html("<h2>How may values become coarser?</h2>", sanitize=False)
    ways = {name: name if words == name else f"{name}: {words}" for name, words in choices["publish"].items()}
    publish = ui.radio(ways, value=task.settings.get("publish", "stars"))
    publish.on_value_change(lambda e: window.set("Hierarchies", "Release", publish=e.value))
    if task.why:
        note(f"Proposed: {task.why}.")
    measured = [c["name"] for c in task.columns if c["measured"] and task.role(c["name"]) == "quasi_identifiers"]
    for name in measured:
        held = task.settings.get("range_step", {}).get(name)
        if isinstance(held, str):  # of dates
            label = f"Ranges of {name} end with a full"
            ends = ui.select(["month", "year"], value=held, label=label, clearable=True).style("width: 16rem")
            ends.on_value_change(lambda e, n=name: _of_column(window, "range_step", n, e.value or None))
            continue
        step = ui.number(f"Ranges of {name} end at multiples of", value=held, min=0)
        step.style("width: 16rem")
        step.on("change", lambda _, n=name, s=step: _of_column(window, "range_step", n, s.value or None))
    _effort(window, choices["settings"]["effort"])
    with ui.expansion("More settings").classes("wb-wide"):
        for name in measured:
            with ui.row().classes("wb-wide"):
                _limit(window, "bottom", name, f"Values of {name} from here down are one (bottom)")
                _limit(window, "top", name, f"Values of {name} from here up are one (top)")
        for name, setting in choices["settings"].items():
            if setting["section"] in SECTIONS and setting["kind"] in KINDS and name not in ELSEWHERE:
                _field(window, name, setting)


POPULATION = {"k_map", "presence"}  # models that need a table of the population
SECTIONS = ("Request", "Release", "Search")  # sections of settings on this panel
KINDS = ("switch", "whole", "number", "text")
ELSEWHERE = ("publish", "preset", "effort", "engine")  # on other panels


SECONDS = "seconds"


def _effort(window: Any, setting: Mapping[str, Any]) -> None:
    """How long to search: a word, or a number of seconds."""
    held = window.task.settings.get("effort", setting["default"])
    words = {**{word: word for word in setting["words"]}, SECONDS: "as many seconds as I say"}
    with ui.row().classes("wb-wide").style("align-items: end"):
        chosen = ui.select(words, value=held if held in words else SECONDS, label="How long to search (effort)")
        chosen.style("min-width: 16rem")
        number = ui.number("Seconds", value=60 if held in words else held, min=0).style("width: 9rem")

    def change(_event: Any) -> None:
        number.visible = chosen.value == SECONDS
        if chosen.value != SECONDS:
            window.set("Release", effort=chosen.value)
        elif number.value is not None:
            window.set("Release", effort=float(number.value))

    number.visible = chosen.value == SECONDS
    chosen.on_value_change(change)
    number.on("change", change)


def _field(window: Any, name: str, setting: Mapping[str, Any]) -> None:
    """The field of one setting, made from its description."""
    label, held = f"{name}: {setting['help']}", window.task.settings.get(name, setting["default"])

    def change(value: Any) -> None:
        window.set("Release", **{name: None if value is None or value is False or value == "" else value})

    if setting["kind"] == "switch":
        ui.switch(label, value=bool(held)).on_value_change(lambda e: change(e.value))
    elif setting["words"]:
        words = setting["words"] if setting["default"] is not None else ["", *setting["words"]]
        ui.select(words, value=held or "", label=label).classes("wb-wide").on_value_change(lambda e: change(e.value))
    elif setting["kind"] == "text":
        field = ui.input(label, value=held or "").classes("wb-wide")
        field.on("change", lambda: change(field.value))
    else:
        counts = setting["kind"] == "whole"
        number = ui.number(label, value=held, min=0, step=1 if counts else 0.01).classes("wb-wide")

        def counted() -> None:
            before = window.task.settings.get(name, setting["default"])
            given = None if number.value is None else _number(window, number, name, counts, before)
            if given is not None or number.value is None:
                change(given)

        number.on("change", counted)


def _limit(window: Any, setting: str, name: str, label: str) -> None:
    """A limit from which values of a column are merged."""
    limit = ui.number(label, value=window.task.settings.get(setting, {}).get(name)).style("width: 24rem")
    limit.on("change", lambda: _of_column(window, setting, name, limit.value))


def _of_column(window: Any, setting: str, name: str, value: float | str | None) -> None:
    """Set the entry of one column in a setting by column; None removes it."""
    held = {n: v for n, v in window.task.settings.get(setting, {}).items() if n != name}
    window.set("Release", **{setting: {**held, **({} if value is None else {name: value})}})
