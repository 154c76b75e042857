"""The report: one file, nothing fetched, everything that a review board asks for.

What a release's words warn of.
"""

import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

import shoal
from shoal.model.cards import floored
from shoal.model.certificate import Certificate
from shoal.model.members import Members
from shoal.model.policy import Policy
from shoal.problems.catalogue import CATALOGUE, crosswalk_problems, names
from shoal.publishing.decode import DecodedColumn
from shoal.publishing.tables.figures import distribution, round_to
from shoal.report.parts import part, rendered
from shoal.report.sections import assumptions, attacks
from shoal.report.words import BOUNDS_PAGE, METHOD_PAGES, PROOFS, certificate_words, promise, proved
from tests.data import drawn
from tests.report.links import dead_links

VOID = {"meta", "br", "img", "hr", "link", "input"}


class Nesting(HTMLParser):
    """Refuses tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page(folder: Path, frame: pl.DataFrame, **asked: object) -> str:
    settings = {"quasi_identifiers": ["zip <b>", "age"], "k": 2, "effort": "fast"} | asked
    text = shoal.anonymize(frame, **settings).report(folder / "r.html", internal=True).read_text(encoding="utf-8")
    parser = Nesting()
    parser.feed(text)
    assert parser.open == []
    assert json.loads((folder / "r.internal.json").read_text(encoding="utf-8")) == figures_of(text)
    return text


FRAME = pl.DataFrame(
    {
        "zip <b>": ["01234", "01234", "01299", "01236"],
        "age": [20, 20, 31, 44],
        "d": ["p", "q", "p", "q"],
        "name": ["<script>x", "b", "c", "d"],
    }
)


def test_a_column_may_be_called_by_what_stands_for_all(tmp_path: Path) -> None:
    frame = pl.DataFrame({"*": ["p", "p", "q", "q"], "a": ["x"] * 4, "s": ["u", "v", "u", "v"]})
    assert "rows alike" in page(tmp_path, frame, quasi_identifiers=["*", "a"], sensitive=["s"])
    release = shoal.anonymize(frame, quasi_identifiers=["*", "a"], sensitive=["s"], k=2, effort="fast")
    (dealt,) = release._placement.expected.slices(["*", "a", "s"], bytes(32), 9)
    assert sorted(dealt.rows()) == sorted(frame.rows())


def test_it_opens_offline_and_says_everything(tmp_path: Path) -> None:
    text = page(tmp_path, FRAME, sensitive=["d"], l=2, identifiers=["name"], seed=11)
    assert not re.search(r"https?://|//[a-z]+\.|src=|@import|url\(|<link", text)
    assert text.count("docs/cascade.md, The bounds") > 1  # of the bound that counts, and of every one computed
    assert not dead_links(text)
    assert re.findall(r"<script[^>]*>", text) == ['<script type="application/json" id="figures">']
    for wanted in (
        "The request",
        "What holds",
        "What was released",
        "Columns kept unchanged",
        "Privacy before and after",
        "How the columns are distributed",
        "Rows as they are published",
        "How to make and check it again",
        "column by column",
        "The certificate",
        "What was assumed",
        "attacker",
        "missing value",
        "shuffled",
        "k-anonymity",
        "l-diversity",
        "prosecutor",
        "journalist",
        "marketer",
        "<svg",
        "11",
        "zip &lt;b&gt;",
    ):
        assert wanted in text, wanted
    assert "<b>" not in text


def test_no_value_that_a_star_hides_is_in_it(tmp_path: Path) -> None:
    text = page(tmp_path, FRAME, sensitive=["d"], l=2, identifiers=["name"])
    for value in ("01299", "01236", "script>x"):
        assert value not in text


@pytest.mark.parametrize("publish", ["stars", "ranges", "hierarchy"])
def test_planted_markers_stay_out(tmp_path: Path, publish: str) -> None:
    """Values, sensitive values, identifiers and carried notes of single rows, in a table of plain groups."""
    n = 60
    plain = pl.DataFrame(
        {
            "age": [30 + i % 3 for i in range(n)],
            "zip <b>": [f"{1000 + i % 2}" for i in range(n)],
            "d": ["flu" if i % 5 else "gout" for i in range(n)],
            "name": [f"soul{i}" for i in range(n)],
            "note": [f"note{i}" for i in range(n)],
        }
    )
    planted = pl.DataFrame(
        {"age": [7771, 7773, 7775], "zip <b>": ["MARKZIP1", "MARKZIP2", "MARKZIP3"], "d": ["MARKILL", "flu", "gout"],
         "name": ["MARKNAME"] * 3, "note": ["MARKNOTE"] * 3}
    )  # fmt: skip
    more = {"hierarchies": {"age": "intervals:10", "zip <b>": "stars"}} if publish == "hierarchy" else {}
    asked = {"quasi_identifiers": ["age", "zip <b>"], "sensitive": ["d"], "insensitive": ["note"], "k": 3, **more}
    release = shoal.anonymize(
        pl.concat([plain, planted]), identifiers=["name"], publish=publish, effort="fast", seed=2, **asked
    )
    release.write(tmp_path / "r.csv")
    text = release.report(tmp_path / "r.html", internal=True).read_text(encoding="utf-8")
    assert not re.search("MARKNAME|MARKNOTE|MARKILL|soul|note1", text)
    published = (tmp_path / "r.csv").read_text(encoding="utf-8")
    for value in ("7771", "7773", "7775", "MARKZIP1", "MARKZIP2", "MARKZIP3"):
        there = re.search(rf"(?<![\w.]){value}(?!\w)", text)  # hashes and seconds may hold the digits
        assert there is None or value in published  # the ends of a range are published
    if publish == "stars":
        assert not re.search(r"\b777", text)  # hashes may hold the digits
        assert "MARK" not in text


def figures_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="figures">(.*)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_figures_are_those_of_the_release_file(tmp_path: Path) -> None:
    frame = drawn(400, 3, age=(20, 60), town=["Ulm", "Bonn"], ill="ab")
    asked = {"quasi_identifiers": ["age", "town"], "sensitive": ["ill"], "k": 4, "effort": "fast", "seed": 1}
    release = shoal.anonymize(frame, weights={"age": 2}, **asked)
    beside = release.write(tmp_path / "r.csv")
    text = release.report(tmp_path / "r.html", internal=True).read_text(encoding="utf-8")
    told = figures_of(text)
    found = pl.read_csv(tmp_path / "r.csv", infer_schema=False)
    sizes = found.group_by("age", "town").len()["len"]
    assert told["audit"]["classes"] == told["release"]["groups"] == sizes.len()
    assert told["audit"]["smallest_class"] == sizes.min() >= 4
    assert told["written"]["sha256"] == hashlib.sha256((tmp_path / "r.csv").read_bytes()).hexdigest()
    assert told["written"]["certificate"] == beside.name
    age, town = told["columns"]
    assert age["hidden"] == age["changed"] == (found["age"] == "*").sum() > 0
    assert age["weight"] == 2
    counts = dict(found["town"].value_counts().iter_rows())
    assert {b["label"]: b["after"] for b in town["distribution"]} == {k: v for k, v in counts.items() if k != "*"}
    kept = found["age"].filter(found["age"] != "*").cast(pl.Int64)
    assert sum(b["after"] for b in age["distribution"]) == pytest.approx(kept.len())
    for b in age["distribution"]:
        low, _, high = b["label"].partition(" to ")
        if low.isdigit():
            assert b["after"] == kept.is_between(int(low), int(high or low)).sum()
    for row, n in zip(told["shown"]["rows"], told["shown"]["groups"], strict=True):
        assert found.filter((pl.col("age") == row[0]) & (pl.col("town") == row[1])).height == n >= 4
    assert len(told["shown"]["rows"]) == 10
    for name in ("r.csv", told["written"]["sha256"], 'href="#word-marketer"', "r.certificate.json"):
        assert name in text
    assert not re.search(r"suppressed_tuples|\{&#x27;|bound_seconds", text.split("<script")[0])


@pytest.mark.parametrize(("n", "step", "expected"), [(4, 5, None), (5, 5, 5), (7, 5, 5), (8, 5, 10), (99, 0, None)])
def test_counts_of_the_original_are_rounded(n: int, step: int, expected: int | None) -> None:
    assert round_to(n, step) == expected


def test_few_hidden_values_take_the_counts_before_with_them(tmp_path: Path) -> None:
    """With one group of three hidden, exact or rounded counts before would say what the three were."""
    frame = pl.DataFrame({"zip <b>": ["a"] * 30 + ["b"] * 30 + ["x", "y", "a"], "age": [1] * 60 + [2] * 3})
    told = figures_of(page(tmp_path, frame, k=3))
    column = told["columns"][0]
    assert 0 < column["changed"] < 12
    assert not column["before_shown"]
    assert all(b["before"] is None for b in column["distribution"])


def test_tiny_tables_have_a_report(tmp_path: Path) -> None:
    text = page(tmp_path, FRAME.head(1), insensitive=["d", "name"], k=1)
    assert "Release report" in text
    assert "empty" not in text


def test_many_sizes_and_columns_still_fit(tmp_path: Path) -> None:
    values = [i for i in range(1, 80) for _ in range(i)]
    frame = pl.DataFrame({"zip <b>": values, "age": values})
    assert page(tmp_path, frame, k=1).count("<rect") < 60


def test_a_value_that_few_rows_show_has_no_bar_of_its_own() -> None:
    cells = [Members(named=frozenset([v])) for v in ("often", "rare")]
    column = DecodedColumn(
        cells, ["often", "rare"], np.array([0, 0, 0, 1]), ("often", "rare"), None, np.full(2, np.nan)
    )
    found = distribution(column, np.array([3, 1]), (["often", "rare"], np.array([3, 1])), 3, 3)
    assert found == [
        {"label": "often", "before": 3, "after": 3.0},
        {"label": "all other values", "before": None, "after": 1.0},
    ]


def test_every_template_escapes_and_misses_nothing() -> None:
    """What is handed to a page as text stays text; a name that a template asks for and nobody gave is refused."""
    assert part("parts.html", "table", "n", "<i>", ("<i>",), [("<i>", Markup("<b>x</b>"))], 1).count("<i>") == 0
    assert part("parts.html", "listed", ["<i>"]) == "<ul><li>&lt;i&gt;</li></ul>"
    data = {"unit": "</script>"}
    written = rendered("tile_map.html", title="<i>", note="<i>", width=1, height=1, shapes=[], legend=[("red", "<i>")],
                       per="<i>", data=data)  # fmt: skip
    assert "<i>" not in written
    assert written.count("</script>") == 2
    with pytest.raises(UndefinedError, match="'note' is undefined"):
        rendered("tile_map.html", title="", width=1, height=1, shapes=[], legend=[], per="", data=data)


def warned(**asked: Any) -> bool:
    policy = Policy.of(quasi_identifiers=["age"], **asked).describe()
    return any(text.startswith("Homogeneity") for text in attacks(policy))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"k": 2}, True),
        ({"k": 2, "sensitive": ["hiv"]}, True),
        ({"k": 2, "l": 1, "sensitive": ["hiv"]}, True),
        ({"k": 2, "l": 2, "sensitive": ["hiv"]}, False),
        ({"alpha_k": (0.5, 2), "sensitive": ["hiv"]}, False),
        ({"privacy": [{"model": "LDiversity", "l": 2, "column": "d"}], "sensitive": ["d", "hiv"]}, True),
        ({"privacy": [{"model": "LDiversity", "l": 2, "column": "d"}], "sensitive": ["d"]}, False),
    ],
)
def test_a_sensitive_column_without_a_model_does_not_silence_the_warning(asked: dict[str, Any], expected: bool) -> None:
    assert warned(**asked) == expected


def test_centers_are_said_to_be_somebodys_record() -> None:
    asked = {"quasi_identifiers": ["age"], "k": 2}
    for publish, said in (("centers", True), ("stars", False)):
        policy = Policy.of(publish=publish, **asked).describe()
        assert any("the record of one of its people" in text for text in attacks(policy)) == said
        assert any(text.startswith("Distance: ") for text in assumptions(policy)) == said


def test_a_group_that_agrees_is_said_to() -> None:
    audit = {"smallest_class": 5, "sensitive": {"hiv": {"alpha": 1.0}, "d": {"alpha": 0.4004}}}
    certificate = {"cost": 3, "lower_bound": 2, "unit": "stars", "ratio": 1.5, "optimal": False, "details": {}}
    certificate["guarantee"] = {"factor": None, "additive": None, "theorem": "none: a heuristic"}
    release = {"rows": 10, "loss": {"suppressed_tuples": 2}, "stars": {"a": 3}, "certificate": certificate}
    text = promise({"release": release, "audit": audit})
    assert "at least 4 others" in text
    assert "100" not in text
    assert "hiv" not in text, "a disclosure is no promise: the page warns of it before"
    assert "more than 40.1 % of the rows share a value of d" in text
    assert "2 of 10 rows were changed, and 3 values were hidden" in text
    assert "at most 1.5 times the least possible, proved" in text
    one_level = certificate | {"details": {"uniform_cost": 3}}
    assert "times" not in promise({"release": release | {"certificate": one_level}, "audit": audit})


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (2.0, "that is the least possible, proved."),
        (2.0000000001, "that is the least possible up to rounding, proved."),
        (2.0001, "so this one costs at most 1.001 times the least possible, proved."),
    ],
)
def test_what_differs_by_rounding_is_no_gap(cost: float, said: str) -> None:
    proof = Certificate(cost=cost, lower_bound=2.0, unit="ncp").as_dict()
    assert proved(proof, "every release").endswith(said)


def test_a_length_is_said_to_be_one() -> None:
    proof = Certificate(cost=1.5, lower_bound=1.5, unit="units").as_dict()
    assert "1.5 units from a center to the farthest row of its group" in certificate_words(
        {"certificate": proof, "method": "local"}
    )


def test_pages_of_the_guide_have_the_sections_that_reports_name():
    assert set(METHOD_PAGES) == set(names("tables")) - {"auto"}
    proofs = [CATALOGUE[kind].proofs for kind in crosswalk_problems()]
    for page, section in [BOUNDS_PAGE, *METHOD_PAGES.values(), *PROOFS.values(), *proofs]:
        text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8").replace("`", "")
        assert not section or f"# {section}\n" in text


@pytest.mark.parametrize("bound", [0.02777659088920656, 3378.96, 0.1, 1234567.8, 5e-324, 7])
def test_a_bound_is_never_rounded_up(bound: float) -> None:
    """A reader who takes the figure for the bound must not be told more than is proved."""
    certificate = Certificate(cost=2 * bound, lower_bound=bound, unit="ncp").as_dict()
    text = proved(certificate, "every release")
    shown = float(re.search(r"costs at least .*?([\d,]*\.?\d+(?:e[-+]?\d+)?)", text)[1].replace(",", ""))
    assert bound * (1 - 1e-3) <= shown <= bound
    assert shown == float(floored(bound).replace(",", ""))


def test_the_scale_of_a_mean_loss_is_said() -> None:
    said = proved(Certificate(cost=0.05, lower_bound=0.04, unit="ncp").as_dict(), "every release")
    assert said.startswith("It costs a mean loss per value of 0.05 (0: every value as it came, 1: nothing left); every")
