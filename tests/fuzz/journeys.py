"""Journeys without end: a table like those that people have goes through the commands that they call, in a row.

``tried(seed, folder)`` says what came of one.  Each step ends with a status that is documented, a refusal is one
sentence, what shoal writes verifies, a function does what its command does, the figures agree with a plain count, and
no value of an identifier or of a column without a role is in a message or in a file beside the release.
"""

import csv
import datetime as dt
import gzip
import json
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

import shoal
from shoal.errors import ShoalError
from shoal.paths import certificate_path
from tests.commands import Done, run, told
from tests.fuzz.combinations import one_sentence

SECRET = b"sixteen bytes or more"
NAMES = [
    "age", "zip", "Größe", "a b", "a,b", 'say "hi"', "x=y", "k", "rows", "group", "len", "value", "*", "missing", "0",
    "1.5", "date", "a.b", "[a]", "{x}", "A", "per%cent", "it's", "c:d", "star", "__index__", "count", "birth date",
    "sex", "<b>bold</b>", "</script>", "a & b", "${x}", "a\tb",
]  # fmt: skip
POOLS: dict[str, list[Any]] = {
    "odd": ["missing", "NA", "{a, b}", "a .. b", 'say "hi"', "a\nb", "=1+1", "20-24", "*", "[1, 2]", "a, b", ">=5"],
    "markup": ["<i>x</i>", "</script>", "&amp;", "{{ x }}", "a"],
    "blank": ["missing", "", " ", "null", "None", "nan", "a", "-", "N/A"],
    "bands": ["20-24", "25-29", "30-34", "35+", "<20"],
    "almost dates": ["2024-02-28", "2024-02-29", "2024-02-30", "2023-12-01"],
    "german dates": ["31.12.2020", "01.02.2021", "03.04.2021", "15.06.1950"],
    "american dates": ["12/31/2020", "02/01/2021", "04/03/2021", "06/15/1950"],
    "mixed dates": ["2020-01-02", "02.01.2020", "1/2/20", "Jan 2020"],
    "moments": ["2020-01-02 03:04:05", "2020-01-02T03:04:05", "2021-05-06 00:00:00"],
    "commas": ["1,5", "2,25", "10,0", "1.000,5", "7"],
    "decimals": ["1,5", "2,25", "10,0", "0,5"],
    "thousands": ["1,000", "2,500", "12,000", "900"],
    "signs": ["-1", "+1", "1e3", "0x10", "1_000", "½", "٣"],
    "zips": ["01234", "01235", "09870", "12345", "00001"],
    "zeros": ["7", "07", "007", "7.0", "8"],
    "truth": ["True", "False", "true", "yes", "no"],
    "alike": ["café", "cafe\u0301", "ＡＢ", "AB", "a\u00a0b", "a b", "a\u200bb", "А"],
    "case": ["Flu", "flu", "FLU", " flu", "flu "],
    "long": ["x" * 3000, "x" * 2999 + "y", "z"],
    "one": ["same"],
    "nothing": [None],
    "category": ["p", "q", "r", "s"],
    "integer": [20, 21, 22, 35, 36, 70, -1],
    "year": [1950, 1951, 1999, 2000],
    "float": [0.5, 1.0, 2.25, 0.1 + 0.2, -0.0],
    "boolean": [True, False],
    "decimal": [Decimal("1.50"), Decimal("2.00"), Decimal("-0.25")],
    "date": [dt.date(2020, 1, 1), dt.date(2020, 2, 1), dt.date(1950, 3, 4), dt.date(1850, 3, 4)],
    "moment": [dt.datetime(2020, 1, 31, 5, 6), dt.datetime(2020, 2, 3, 5, 6), dt.datetime(2020, 1, 31, 5, 6, 0, 1)],
    "time": [dt.time(1, 2, 3), dt.time(23, 59, 59, 500_000), dt.time(5, 0, 0, 1)],
}
TYPES: dict[str, Any] = {
    "integer": pl.Int64, "year": pl.Int64, "float": pl.Float64, "boolean": pl.Boolean, "decimal": pl.Decimal(10, 2),
    "date": pl.Date, "moment": pl.Datetime("us"), "time": pl.Time,
}  # fmt: skip
SOURCES = ["csv", "csv", "csv", "parquet", "xlsx", "sav", "dta"]
UNKEPT: dict[str, tuple[str, ...]] = {"dta": ("nothing", "time"), "sav": ("time",)}  # kinds that a source lacks
MODELS: list[dict[str, Any]] = [
    {"k": 2}, {"k": 3}, {"k": 2, "l": 2}, {"k": 2, "distinct_l": 2}, {"k": 2, "t": 0.6}, {"k": 2, "entropy_l": 1.2},
]  # fmt: skip
MARKS = ("person-0", "roleless-")
HEARD: list[tuple[list[str], str]] = []  # what was refused, for people who read the sentences


class Journey:
    """A table, what it is asked, and the files that came of it."""

    sources, unkept = SOURCES, UNKEPT
    pools, types = POOLS, TYPES

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng, self.folder = random.Random(seed), folder
        self.kind = self.rng.choice(self.sources)
        n = self.rng.choice([1, 4, 8, 12, 12, 20, 30])
        codings = [*["utf-8"] * 5, "utf-8-sig", "windows-1252", "latin-1", "utf-16"]
        forms = (",,;\t|", ["necessary", "always"], codings, ["\n", "\r\n"], [False] * 9 + [True])
        self.form: Any = tuple(self.rng.choice(form) for form in forms)
        self.more: list[Any] = []
        if self.kind == "csv" and self.form[2] in ("windows-1252", "latin-1"):
            self.more = ["--encoding", self.form[2]]
        self.names = self.rng.sample(NAMES, 4)
        if self.kind in ("sav", "dta"):
            self.names = ["age", "zip", "count", "len"]
        kinds = [kind for kind in self.pools if kind not in self.unkept.get(self.kind, ())]
        self.drawn = {name: self.rng.choice(kinds) for name in self.names}
        self.next = 0
        self.frame = self.rows(n)
        quasi, sensitive = self.names[: self.rng.choice([1, 2, 2])], self.names[2]
        self.roles = {"quasi_identifiers": quasi, "sensitive": [sensitive], "identifiers": ["name"]}
        left = [name for name in self.names if name not in (*quasi, sensitive)]
        self.roles["insensitive"] = [name for name in left if self.rng.random() < 0.7]
        self.roles["identifiers"] += [name for name in left if name not in self.roles["insensitive"]]
        self.roles["identifiers"] += ["ward"] if n < 8 else []
        self.source = self.saved(self.frame, "t")

    def rows(self, n: int) -> pl.DataFrame:
        """New people."""
        columns = []
        for name, kind in self.drawn.items():
            some = self.rng.sample(self.pools[kind], min(len(self.pools[kind]), self.rng.choice([2, 3, 5])))
            gaps = self.rng.choice([0, 0, 0.2]) if n > 8 else 0
            held = [None if self.rng.random() < gaps else self.rng.choice(some) for _ in range(n)]
            columns.append(pl.Series(name, held, dtype=self.types.get(kind, pl.String)))
        people = [f"person-0{self.next + i}" for i in range(n)]
        self.next += n
        columns += [pl.Series("name", people), pl.Series("ward", [f"roleless-{'ab'[i % 2]}" for i in range(n)])]
        return pl.DataFrame(columns)

    def saved(self, frame: pl.DataFrame, name: str) -> Any:
        """The table in a file of the journey's kind."""
        path = self.folder / f"{name}.{self.kind}"
        if self.kind == "parquet":
            frame.write_parquet(path)
        elif self.kind == "xlsx":
            frame.write_excel(path)
        elif self.kind == "sav":
            import pyreadstat

            pyreadstat.write_sav(frame.cast({pl.Decimal: pl.Float64}).to_pandas(), path)
        elif self.kind == "dta":
            held = frame.cast({pl.Decimal: pl.Float64, pl.Boolean: pl.Int8}).with_columns(
                pl.col(pl.String).fill_null("").replace("", "-")
            )
            held.to_pandas().to_stata(path, write_index=False, version=118)
        else:
            separator, quotes, coding, end, packed = self.form
            text = frame.write_csv(separator=separator, quote_style=quotes)
            raw = text.replace("\n", "\n" if "a\nb" in text else end).encode(coding, "replace")
            path = path.with_suffix(".csv.gz") if packed else path
            path.write_bytes(gzip.compress(raw) if packed else raw)
        return path

    def do(self, *words: Any, ok: tuple[int, ...] = (0,), open_to: tuple[Any, ...] = ()) -> Done | None:
        """What a command says, or None where it refuses; AssertionError where it does neither well.

        open_to  files that hold people by their purpose
        """
        before = {path: path.stat().st_mtime_ns for path in self.folder.rglob("*")}
        done = run(*words, cwd=self.folder)
        asked = [str(word) for word in words]
        assert "Traceback" not in done.said, (asked, done.said[-900:])
        if "--json" in words and done.returncode in (0, 1):
            told(done.stdout)
        self.silent(done.said, asked)
        for path in self.folder.rglob("*"):
            new = path.is_file() and before.get(path) != path.stat().st_mtime_ns
            if new and path not in open_to:
                text = path.read_bytes().decode("utf-8", "replace")
                self.silent(text, [*asked, path.name])
                assert path.suffix != ".html" or not any(m in text for m in ("<b>bold", "<i>x")), "markup in a page"
        if done.returncode in (2, 3):
            refusal = done.stderr.strip().splitlines()[-1]
            HEARD.append((asked, refusal))
            one_sentence(refusal)
            return None
        composed = done.returncode == 1 and "--force-composition" in done.stderr and "--after" in asked
        assert composed or done.returncode in ok, (asked, done.returncode, done.said[-900:])
        return done

    def silent(self, text: str, where: list[str]) -> None:
        """AssertionError where a text shows a person or a value of a column without a role."""
        for mark in MARKS:
            at = text.find(mark)
            assert at < 0, (where, text[max(at - 100, 0) : at + 60])

    def refusable(self, work: Callable[[], Any]) -> Any:
        """What a function gives, or None where it refuses in one sentence."""
        try:
            return work()
        except ShoalError as error:
            one_sentence(error)
            self.silent(str(error), ["a function"])
            HEARD.append((["function"], str(error)))
            return None

    # the steps

    def settings(self) -> dict[str, Any]:
        """What is asked of the table."""
        rng, quasi = self.rng, self.roles["quasi_identifiers"]
        asked = {**self.roles, **rng.choice(MODELS), "publish": rng.choice(["stars", "ranges", "hierarchy"])}
        if asked["publish"] == "hierarchy":
            built = ["labels", "intervals", "stars", "prefixes:2,1", "dates:month,year", "intervals:5,10"]
            asked["hierarchies"] = {name: rng.choice(built) for name in quasi if rng.random() < 0.9}
            if rng.random() < 0.2:
                asked |= rng.choice([{"global_recoding": True}, {"coarsen": "auto"}, {"max_suppressed": 0.3}])
        for name in quasi:
            if asked["publish"] == "ranges" and rng.random() < 0.2:
                asked.setdefault("range_step", {})[name] = rng.choice([5, 0.5, "month", "year"])
            if self.drawn[name] == "german dates" and rng.random() < 0.7:
                asked.setdefault("dates", {})[name] = "%d.%m.%Y"
            if self.drawn[name] == "american dates" and rng.random() < 0.7:
                asked.setdefault("dates", {})[name] = "%m/%d/%Y"
            if self.drawn[name] in ("decimals", "commas") and rng.random() < 0.7:
                asked.setdefault("decimal", {})[name] = ","
        if rng.random() < 0.3:
            asked["missing"] = rng.choice(["category", "apart", "filled"])
        if rng.random() < 0.1:
            asked["shards"] = 2
        return asked | {"effort": "fast", "seed": 1}

    def policy(self, asked: dict[str, Any]) -> Path:
        """The same as a file."""
        lines = [f"{json.dumps(key)} = {json.dumps(v)}" for key, v in asked.items() if not isinstance(v, dict)]
        for key, value in asked.items():
            if isinstance(value, dict):
                lines += [f"[{key}]", *(f"{json.dumps(n)} = {json.dumps(v)}" for n, v in value.items())]
        path = self.folder / f"policy{len(list(self.folder.glob('policy*')))}.toml"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def proposed(self) -> None:
        """The policy that shoal proposes, used as it is."""
        policy = self.folder / "proposed.toml"
        done = self.do("init", self.source, "-o", policy, "--k", 2, *self.more)
        if done is not None:
            found = self.refusable(lambda: shoal.roles(self.source, encoding=self.encoding))
            assert found is not None
            self.release(policy, "proposed")

    @property
    def encoding(self) -> str | None:
        return self.more[1] if self.more else None

    def release(self, policy: Path, name: str) -> Path | None:
        """A release by command, judged, counted, and made by function."""
        out = self.folder / f"{name}{self.rng.choice(['.csv', '.csv', '.parquet', '.xlsx', '.sav', '.dta', '.tsv'])}"
        (self.folder / "secret").write_bytes(SECRET)
        page = self.folder / f"{name}.html"
        asked = ["anonymize", self.source, "--policy", policy, "-o", out, "--secret", self.folder / "secret"]
        engines = [["--engine", "duckdb"]] if self.kind in ("csv", "parquet") else []
        asked += self.rng.choice([[], ["--report", page], *engines])
        done = self.do(*asked, "--json", "--effort", "fast", "--seed", 1, *self.more, open_to=(out,))
        engine = "duckdb" if "duckdb" in asked else None
        asks = {"effort": "fast", "seed": 1, "engine": engine, "encoding": self.encoding, "secret": SECRET}
        made = self.refusable(lambda: shoal.anonymize(self.source, shoal.Policy.read(policy), **asks))
        if done is None:
            assert made is None or out.suffix != ".csv", ("refused as a command alone", HEARD[-1])
            return None
        assert made is not None, ("refused as a function alone", HEARD[-1])
        again = self.folder / f"again-{out.name}"
        made.write(again)
        typed = "starred_as_missing" in json.loads(certificate_path(again).read_text())["release"]
        if out.suffix != ".xlsx" and not typed:
            assert again.read_bytes() == out.read_bytes(), "a command and a function differ"
        self.counted(out, done.facts)
        self.judged(out)
        return out

    def judged(self, out: Path) -> None:
        """Every verifier accepts it."""
        done = self.do("verify", out)
        assert done is not None
        done = self.do("verify", out, "--original", self.source, *self.more)
        assert done is not None
        for original in (None, self.source):
            verdict = shoal.verify(out, original=original, encoding=self.encoding if original else None)
            assert verdict.holds, [f for f in verdict.findings if not f.holds]

    def counted(self, out: Path, facts: dict[str, Any]) -> None:
        """The figures, counted plainly."""
        shown = json.loads(certificate_path(out).read_text())
        policy = shown["policy"]
        if out.suffix == ".parquet":
            rows = pl.read_parquet(out).to_dicts()
        elif out.suffix in (".csv", ".tsv"):
            own = "\t" if out.suffix == ".tsv" else self.form[0] if self.kind == "csv" else ","
            with out.open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file, delimiter=own))
        else:
            return
        assert len(rows) == facts["rows"] == shown["release"]["rows"], "rows"
        sizes = Counter(tuple(row[name] for name in policy["quasi_identifiers"]) for row in rows)
        if policy.get("missing") not in ("apart", "filled"):
            assert len(sizes) == facts["groups"] == shown["groups"], ("groups", len(sizes), facts["groups"])
            assert min(sizes.values()) == facts["smallest_group"] == shown["smallest_group"], "smallest group"
        for name in policy["quasi_identifiers"]:
            if name not in shown["release"].get("starred_as_missing", ()):  # numbers have no star
                stars = sum(row[name] == policy["star"] for row in rows)
                assert stars == facts["stars"][name], ("stars", name, stars, facts["stars"][name])

    def used(self, out: Path) -> None:
        """What people do with a release."""
        rng, certificate = self.rng, certificate_path(out)
        self.do("report", out, "-o", self.folder / "later.html", "--force")
        page = rng.choice([[], ["-o", self.folder / "page.html", "--force"]])
        self.do("compare", self.source, out, "--policy", certificate, "--json", *page, *self.more)
        done = self.do("attack", out, "--json", *rng.choice([[], ["--original", self.source, *self.more]]))
        assert done is None or done.facts["rows"] == self.frame.height
        done = self.do("audit", out, "--policy", certificate, "--json")
        if done is not None:
            assert done.facts["passes"], done.facts["checks"]
            found = shoal.audit(out, shoal.Policy.read(certificate))
            assert (found.k, found.rows) == (done.facts["k"], done.facts["rows"])
        self.refusable(lambda: shoal.written(out))
        decoded = self.refusable(lambda: shoal.decode(out))
        for name in self.roles["quasi_identifiers"] if decoded is not None else ():
            assert len(decoded.members(name)) == self.frame.height
        for way in ("numeric", "one_hot", "sample"):
            self.refusable(lambda way=way: getattr(decoded, way)())
        self.further(out, certificate)

    def further(self, out: Path, certificate: Path) -> None:
        """What some do: sign, publish again, compare with an earlier release, prove, run a job twice."""
        rng, after, key = self.rng, self.folder / "next.csv", self.folder / "key"
        words = ["anonymize", self.source, "--policy", certificate, "-o", after, *self.more]
        how = rng.choice(["signed", "after", "jobs", "proved", "attacked", "audited"])
        if how == "signed":
            self.do("keygen", key)
            words += ["--sign", key]
        words += ["--after", out] if how == "after" else ["--force-composition"]
        done = self.do(*words, *(["--if-changed"] if how == "jobs" else []), open_to=(after,))
        if done is None or done.returncode:
            return
        self.judged(after)
        if how == "signed":
            assert self.do("verify", after, "--signer", f"{key}.pub") is not None
        if how == "jobs":
            again = self.do(*words, "--if-changed", "--json", open_to=(after,))
            assert again is None or again.facts["unchanged"], "a job that ran again"
            self.do(*words, ok=(4,))
        if how == "proved":
            assert self.do("verify", out, "--original", self.source, "--prove", "fast", *self.more) is not None
        if how == "attacked":
            self.do("attack", out, "--register", self.source, "--with", after, *self.more)
        if how == "audited":
            self.do("audit", out, "--policy", certificate, "--with", after, *self.more)
            self.do("audit", out, "--policy", certificate, "--with", after, "--original", self.source, *self.more)

    def original(self) -> None:
        """What people ask of the original."""
        roles = ["--quasi", listed(self.roles["quasi_identifiers"]), "--sensitive", listed(self.names[2:3])]
        self.do("audit", self.source, *roles, "--json", *self.more)
        roles += ["--identifiers", "name", "--insensitive", listed(self.names[3:])]
        self.do("explore", self.source, *roles, "--k", "2,3", "--json", *self.more)

    def series(self) -> None:
        """Three months of people, some of whom stay."""
        rng, place = self.rng, self.folder / "months"
        mode, unkept = rng.choice(["increment", "again", "views"]), ("identifiers", "shards", "missing")
        asked = {key: value for key, value in self.settings().items() if key not in unkept}
        if mode == "again":
            asked = {k: v for k, v in asked.items() if k not in ("insensitive", "t", "entropy_l", "distinct_l")}
        words = ["--wait", 1] if mode == "increment" and rng.random() < 0.3 else []
        if self.do("series", "start", place, "--policy", self.policy(asked), "--mode", mode, *words) is None:
            return
        kept = {"name", *(name for role in self.roles for name in asked.get(role, ()))}
        left = [name for name in self.frame.columns if name not in kept]
        frame = self.frame
        for month in range(3):
            source = self.source if month == 0 else self.saved(frame, f"t{month}")
            add = ["series", "add", place, source, "--person", "name"]
            add += ["--identifiers", listed(left)] if left else []
            self.do(*add, *self.more, open_to=tuple(place.rglob("release.csv")))
            if (place / "0001").exists():
                assert self.do("verify", place) is not None, "a series"
            self.do("series", "status", place, "--json")
            if mode == "views":
                self.do("series", "view", place, "--publish", "stars")
                assert not (place / "0001").exists() or self.do("verify", place) is not None, "views"
                return
            if mode == "again":
                stay = frame.sample(fraction=0.7, seed=rng.randint(0, 99))
                frame = pl.concat([stay, self.rows(frame.height - stay.height + 1)])
            else:
                frame = self.rows(self.frame.height)

    def refitted(self) -> None:
        """One recoding for two tables."""
        quasi, built = self.roles["quasi_identifiers"], ["intervals:5,10", "stars", "prefixes:2,1"]
        if self.more or any("=" in name for name in quasi):
            return
        asked = ["fit", self.source, "--quasi", listed(quasi), "--identifiers", "name,ward", "--k", 2]
        asked += ["--insensitive", listed(self.names[len(quasi) :]), "-o", self.folder / "recoder.toml"]
        for name in quasi:
            asked += ["--hierarchy", f"{name}={self.rng.choice(built)}"]
        if self.do(*asked) is None:
            return
        for source, name in ((self.source, "again.csv"), (self.saved(self.rows(9), "new"), "new.csv")):
            out = self.folder / f"applied-{name}"
            if self.do("apply", self.folder / "recoder.toml", source, "-o", out, open_to=(out,)) is not None:
                assert self.do("verify", out, "--original", source) is not None

    def crosswalks(self) -> None:
        """Labels, intervals, clusters or tiles, given to new people."""
        rng, name = self.rng, self.names[0]
        out = self.folder / f"groups{rng.choice(['.csv', '.parquet', '.xlsx'])}"
        kind = rng.choice(["labels", "intervals", "gather", "tiles"])
        words = ["--label" if kind == "labels" else "--value", name, "--k", 2, "--effort", "fast"]
        if kind == "gather":
            words = ["--columns", listed(self.names[:2]), "--r", 2, "--sensitive", listed(self.names[2:3])]
        if kind == "tiles":
            self.drawn |= dict.fromkeys(self.names[:2], rng.choice(["decimals", "float", "integer", "odd"]))
            self.frame = self.rows(20)
            self.source = self.saved(self.frame, "points")
            words = ["--x", self.names[0], "--y", self.names[1], "--k", 2]
            words += ["--decimal", f"{name}=,", "--decimal", f"{self.names[1]}=,"] if rng.random() < 0.5 else []
        if self.do(kind, self.source, *words, "-o", out, *self.more) is None:
            return
        assert self.do("verify", out) is not None
        assert self.do("verify", out, "--original", self.source, *self.more) is not None
        for source, rows in ((self.source, self.frame.height), (self.saved(self.rows(7), "new"), 7)):
            given = self.folder / "given.csv"
            done = self.do("assign", out, source, "-o", given, "--force", "--json", *self.more, open_to=(given,))
            assert done is None or done.facts["rows"] == rows, "rows of the assigned"

    def frames(self) -> None:
        """A frame of some library through the functions; a frame and its file come to one table."""
        rng, asked = self.rng, self.settings()
        asked.pop("shards", None)
        kind = rng.choice(["polars", "category", "arrow", "pandas", "nullable", "pyarrow", "objects", "duckdb"])
        given = _as(self.frame, kind)
        made = self.refusable(lambda: shoal.anonymize(given, secret=SECRET, **asked))
        self.refusable(lambda: shoal.roles(given))
        for work in (shoal.audit, shoal.explore):
            self.refusable(lambda work=work: work(given, asked))
        if made is None:
            return
        out = self.folder / f"r{rng.choice(['.csv', '.parquet', '.xlsx'])}"
        if self.refusable(lambda: made.write(out)) is None:
            return
        for original in (None, given):
            verdict = shoal.verify(out, original=original)
            assert verdict.holds, (kind, [f for f in verdict.findings if not f.holds])
        self.refusable(lambda: shoal.compare(given, {"release": made.table}, asked))
        self.refusable(lambda: shoal.attack(made, original=given))
        if kind == "polars":
            self.frame.write_parquet(self.folder / "twin.parquet")
            twin = shoal.anonymize(self.folder / "twin.parquet", secret=SECRET, **asked)
            assert twin.table.equals(made.table), "a frame and its file differ"


def _as(frame: pl.DataFrame, kind: str) -> Any:
    """The same table in another library."""
    texts = [name for name, held in frame.schema.items() if held == pl.String]
    if kind == "category":
        return frame.with_columns(frame[name].cast(pl.Categorical) for name in texts[:-2])
    if kind == "duckdb":
        import duckdb

        return duckdb.connect().from_arrow(frame.to_arrow())
    if kind == "arrow":
        return frame.to_arrow()
    if kind == "nullable":
        return frame.to_pandas().convert_dtypes()
    if kind == "pyarrow":
        return frame.to_pandas(use_pyarrow_extension_array=True)
    if kind == "objects":
        return frame.to_pandas().astype(object)
    return frame.to_pandas() if kind == "pandas" else frame


def listed(names: list[str]) -> str:
    """Names for an option of the command line."""
    return ",".join('"' + name.replace('"', '""') + '"' for name in names)


def tried(seed: int, folder: Path) -> str:
    """What was walked: the name of the step, "refused" or "released"; whatever a user should not meet is raised."""
    journey = Journey(seed, folder)
    steps = ["proposed", "release", "release", "frames", "series", "refitted", "crosswalks", "original"]
    step = journey.rng.choice(steps)
    if step != "release":
        getattr(journey, step)()
        return step
    out = journey.release(journey.policy(journey.settings()), "r")
    if out is None:
        return "refused"
    journey.used(out)
    return "released"
