"""Combinations of options without end: recoding, models, roles, population, limits, engine, types and format.

``tried(seed, folder)`` says what came of one.  A third of those from files go through a policy file and the command
line.  Whatever does not verify, or is refused in other words than one sentence of shoal's own, is raised.
"""

import csv
import json
import random
from pathlib import Path
from typing import Any

import polars as pl

import shoal
from shoal.errors import ShoalError, VerificationError
from shoal.model.settings import SHORTHANDS
from shoal.problems.catalogue import names
from tests import commands
from tests.fuzz.releases import ENDINGS, ENGINES, MODELS, POOLS, PUBLISH, SHEET, handed, series

ROLES = ("quasi_identifiers", "sensitive", "identifiers", "insensitive")
BUILT = ["stars", "labels", "prefixes:2,1", "intervals:10", "dates"]
STEPS: dict[str, list[Any]] = {"integer": [1, 7, 50], "float": [0.5, 10.0], "date": ["month", "year", 30]}
SECRET = b"sixteen bytes or more"


class Drawn:
    """A table with roles and what is asked of it."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.ending, self.publish = rng.choice(ENDINGS), rng.choice(PUBLISH)
        self.engine = rng.choice(ENGINES)
        n = rng.randint(6, 24)
        sheet = self.ending == ".xlsx"
        names = [f"c{i}" for i in range(6)]
        self.kinds = {name: rng.choice(SHEET if sheet else list(POOLS)) for name in names}
        columns = [series(rng, name, self.kinds[name], n, rng.random() < 0.2) for name in names]
        self.frame = pl.DataFrame(columns)
        at = rng.randint(1, 3)
        self.roles: dict[str, list[str]] = {
            "quasi_identifiers": names[:at],
            "sensitive": names[at : at + rng.choice([0, 1, 1, 2])],
            "identifiers": names[5:],
            "insensitive": [name for name in names[3:5] if rng.random() < 0.7],
        }
        taken = {name for held in self.roles.values() for name in held}
        self.roles["identifiers"] += [name for name in names if name not in taken]
        self.roles["insensitive"] = [n for n in self.roles["insensitive"] if n not in self.roles["sensitive"]]
        self.settings: dict[str, Any] = {}
        self._models()
        self._recoding()
        self._people(n)
        self._limits()

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def _models(self) -> None:
        rng = self.rng
        for _ in range(rng.choice([1, 1, 2])):
            drawn = dict(rng.choice(MODELS))
            if not self.roles["sensitive"]:
                drawn = {"k": rng.choice([2, 3])}
            self.settings |= drawn
        if "t_hierarchical" in self.settings:
            self.settings["hierarchies"] = dict.fromkeys(self.roles["sensitive"], "stars")
        if self.chance(0.1):
            self.settings["max_average_risk"] = rng.choice([0.5, 0.3])

    def _recoding(self) -> None:
        rng, quasi, settings = self.rng, self.roles["quasi_identifiers"], self.settings
        settings["publish"] = self.publish
        if self.publish == "hierarchy":
            trees = settings.setdefault("hierarchies", {})
            for name in quasi:
                if self.chance(0.7):
                    texts = self.frame[name].cast(pl.String).drop_nulls().unique().sort().to_list()
                    rows = [[t, "low" if t < "2" else "high", "any"] for t in texts]
                    trees[name] = rng.choice([rows or "stars", rng.choice(BUILT)])
                    if self.chance(0.2):
                        settings.setdefault("max_level", {})[name] = rng.choice([1, 2])
            if self.chance(0.2):
                settings["global_recoding"] = True
            elif self.chance(0.2):
                settings["coarsen"] = "auto"
        if self.publish == "ranges":
            for name in quasi:
                if self.kinds[name] in STEPS and self.chance(0.3):
                    settings.setdefault("range_step", {})[name] = rng.choice(STEPS[self.kinds[name]])
        for name in quasi:
            if self.kinds[name] in ("integer", "float") and self.chance(0.2):
                present = self.frame[name].drop_nulls().drop_nans() if self.kinds[name] == "float" else self.frame[name]
                held = sorted(set(present.drop_nulls().to_list())) or [0]
                settings.setdefault(rng.choice(["top", "bottom"]), {})[name] = rng.choice(held)
        if self.chance(0.2):
            settings["weights"] = {rng.choice(quasi): rng.choice([0.5, 3.0])}
        if self.publish != "centers":
            settings["missing"] = rng.choice(["category", "category", "apart", "filled"])

    def _people(self, n: int) -> None:
        """Persons, households, and a population to which the rows belong."""
        rng, settings = self.rng, self.settings
        self.outer: pl.DataFrame | None = None
        if self.publish == "centers" and self.chance(0.9):
            return
        for name, share in (("person", 0.12), ("household", 0.08)):
            if self.chance(share):
                if self.chance(0.9):
                    self._rows_alone()
                settings[name] = name
                own = pl.Series(name, [f"{name} {rng.randint(0, n)}" for _ in range(n)])
                self.frame = self.frame.with_columns(own)
        people = "person" in settings or "household" in settings
        if self.chance(0.03 if people else 0.2):
            if self.chance(0.9):
                settings["missing"] = "category"
            held = self.frame.select(self.roles["quasi_identifiers"])
            self.outer = pl.concat([held, held, held.sample(n, with_replacement=True, seed=rng.randint(0, 999))])
            settings |= rng.choice([{"k_map": 3}, {"k_map": 8}, {"presence": (0.0, 0.6)}, {}])
        elif self.chance(0.02 if people else 0.1):
            settings["population_weights"] = "weight"
            weight = pl.Series("weight", [rng.randint(1, 5) for _ in range(n)])
            self.frame = self.frame.with_columns(weight)
            settings |= rng.choice([{"k_map": 4}, {}])

    def _rows_alone(self) -> None:
        """Drop the models that count rows, which do not go with persons."""
        for name in [name for name in self.settings if name in SHORTHANDS and name not in ("k", "l", "distinct_l")]:
            del self.settings[name]
        self.settings.pop("max_average_risk", None)
        self.settings.setdefault("k", 2)

    def _limits(self) -> None:
        rng, settings = self.rng, self.settings
        if self.chance(0.2):
            settings["max_suppressed"] = rng.choice([0.0, 0.1, 0.5])
        if self.chance(0.1 if self.publish != "centers" and settings.get("missing") != "apart" else 0.02):
            settings["shards"] = 2
        if self.chance(0.03 if "duckdb" in self.engine else 0.25):
            settings["keep_order"] = True
        settings["star"] = rng.choice(["*", *"####"])
        settings["effort"] = rng.choice(["fast", "fast", "balanced", 0.05])
        if self.chance(0.3):
            settings["seed"] = rng.randint(0, 9)
        if self.chance(0.15):
            settings["method"] = rng.choice(list(names("tables")))
        if self.chance(0.2):
            settings["numeric_stars"] = "text"

    def policy(self, folder: Path) -> str:
        """The request as TOML: rows of hierarchies and the population as files beside it."""
        told: dict[str, Any] = dict(self.settings) | {role: names for role, names in self.roles.items() if names}
        if self.outer is not None:
            self.outer.write_parquet(folder / "outer.parquet")
            told["population"] = "outer.parquet"
        trees = dict(told.get("hierarchies", {}))
        for name, tree in trees.items():
            if isinstance(tree, list):
                with (folder / f"{name}.tree.csv").open("w", newline="") as file:
                    csv.writer(file, delimiter=";").writerows(tree)
                trees[name] = f"{name}.tree.csv"
        if trees:
            told["hierarchies"] = trees
        plain = [f"{key} = {json.dumps(value)}" for key, value in told.items() if not isinstance(value, dict)]
        tables = [
            f"[{key}]\n" + "\n".join(f"{json.dumps(n)} = {json.dumps(v)}" for n, v in value.items())
            for key, value in told.items()
            if isinstance(value, dict)
        ]
        return "\n".join([*plain, *tables]) + "\n"


def one_sentence(error: ShoalError | str) -> None:
    """AssertionError where a refusal is more than a sentence or two, or shoal's own fault."""
    says = str(error).strip()
    assert says, "a refusal without a word"
    assert "\n" not in says, says
    assert "defect of shoal" not in says, says
    assert len(says) < 700, says


def tried(seed: int, folder: Path) -> str:
    """ "refused", or "verified" with and without the original; AssertionError where a verdict does not hold."""
    drawn = Drawn(seed)
    source, held = handed(drawn.rng, drawn.frame, drawn.engine, folder)
    engine = "duckdb" if drawn.engine == "file by duckdb" else None
    if drawn.engine.startswith("file") and drawn.chance(0.35):
        return by_command(drawn, source, engine, folder)
    out, outer = folder / f"r{drawn.ending}", {} if drawn.outer is None else {"population": drawn.outer}
    if drawn.outer is not None and drawn.engine == "pandas":
        outer = {"population": drawn.outer.to_pandas()}
    secret = {"secret": SECRET} if drawn.chance(0.2) else {}
    try:
        release = shoal.anonymize(source, engine=engine, **drawn.roles, **drawn.settings, **outer, **secret)
        record = release.write(out, folder / "r.certificate.json")
    except VerificationError:
        raise
    except ShoalError as error:
        one_sentence(error)
        return "refused"
    trees = drawn.settings.get("hierarchies")
    for original in (None, source):
        verdict = shoal.verify(out, record, original, hierarchies=trees, **outer)
        assert verdict.holds, [f for f in verdict.findings if not f.holds]
    del held
    return "verified"


def by_command(drawn: Drawn, source: Path, engine: str | None, folder: Path) -> str:
    """The same through a policy file and the command line."""
    (folder / "policy.toml").write_text(drawn.policy(folder))
    out, record = folder / f"r{drawn.ending}", folder / "r.certificate.json"
    asked = ["anonymize", source, "--policy", folder / "policy.toml", "-o", out, "--certificate", record]
    done = commands.run(*asked, *(["--engine", engine] if engine else []))
    if done.returncode in (2, 3):
        one_sentence(done.stderr.strip().splitlines()[-1])
        return "refused"
    assert done.returncode == 0, done.stderr
    for original in ((), ("--original", source)):
        judged = commands.run("verify", out, record, *original)
        assert judged.returncode == 0, judged.stdout + judged.stderr
    return "verified"
