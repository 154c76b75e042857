"""Wrong first commands: each is answered by one sentence that says what is wrong, where, and what to type next."""

import re
import shlex
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from tests.commands import run

ROLES = "--quasi age,town --sensitive disease --identifiers name,lon,lat"
HEAD = "name,age,town,disease,lon,lat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of every kind, a release with its certificate, and files that are none of these."""
    place = tmp_path_factory.mktemp("wrong")
    towns, ills = ("Ulm", "Bonn"), ("flu", "gout", "asthma")
    rows = [f"N{i},{20 + i % 4},{towns[i % 2]},{ills[i % 3]},{9 + i / 100},{48 + i / 100}" for i in range(24)]
    files = {
        "people.csv": "\n".join([HEAD, *rows]),
        "semicolons.csv": "\n".join([HEAD, *rows]).replace(",", ";"),
        "other.csv": "a,b\n1,2\n3,4",
        "empty.csv": "",
        "map.HTML": "<!doctype html><p>",
        "notes.txt": "hello",
        "few.csv": "\n".join(["age,town", "20,Ulm", "21,Ulm"]),
        "elsewhere.csv": "\n".join(["age,town", *["20,Kiel"] * 30]),
        "weighed.csv": "\n".join([f"{HEAD},w,who", *(f"{r},{3 - i},{i or ''}" for i, r in enumerate(rows))]),
        "areas.csv": "id,people\na,3\nb,4\nc,9",
        "pairs.csv": "u,v\na,b\nb,c",
        "strangers.csv": "u,v\na,z\nb,c",
        "apart.csv": "u,v\na,b",
        "blank.csv": "lng,lat\n" + "9.1,\n" * 9,
        "jobs.csv": "job,count\nsmith,3\nbaker,4\ncook,9",
        "odd.csv": "job,count,age\nsmith,-1,9\nbaker,2,10\ncook,4,unknown\n,3,11.5",
        "age.csv": "20;young;*\n21;young;*\n22;old;*\n23;old;*",
        "holes.csv": "20;young;*\n21;young;*",
        "misspelled.toml": 'k = 5\nquasi_identifers = ["age"]',
        "five.toml": 'k = "five"\nquasi_identifiers = ["age"]',
        "broken.toml": "k = = 5",
        "gone.toml": 'k = 5\nquasi_identifiers = ["age"]\nsensitive = ["disese"]\nidentifiers = ["name", "lon", "lat"]',
        "below.toml": 'k = 5\nquasi_identifiers = ["age"]\npublish = "hierarchy"\n[hierarchies]\neffort = "fast"',
        "dashed.toml": 'k = 5\nquasi_identifiers = ["age"]\nrandom-seed = 3',
        "strict.toml": 'k = 5\nquasi_identifiers = ["age"]\nidentifiers = ["name"]\nstrict_roles = true',
        "true.toml": 'k = 5\nquasi_identifiers = ["age"]\nstrict_roles = True',
        "joined.toml": 'k = 5\nquasi_identifiers = "age,town"',
        "treeless.toml": 'k = 5\nquasi_identifiers = ["age"]\npublish = "hierarchy"',
        "step.toml": 'k = 5\nquasi_identifiers = ["age"]\npublish = "ranges"\nrange_step = 5',
        "headless.csv": "34,Ulm,N77\n35,Bonn,N78",
        "people.json": "[]",
        "commas.csv": "lng;lat\n" + "9,1;48,2\n" * 9,
        "spoiled.parquet": "PAR1 and nothing",
        "picture.png": "no table",
        "short.key": "123",
    }
    for name, text in files.items():
        (place / name).write_text(text + "\n" if text else "")
    pl.DataFrame(
        {"stay": [timedelta(i) for i in range(9)], "codes": [[i] for i in range(9)], "raw": [b"0"] * 9}
    ).write_parquet(place / "types.parquet")
    (place / "endless.csv").write_text("age\n1\n2.5\nNaN\n4\ninf\n6\n7\n")
    for words in (
        f"anonymize people.csv {ROLES} --k 2 --effort fast -o release.csv",
        "tiles people.csv --x lon --y lat --k 4 -o tiles.csv",
        "labels jobs.csv --label job --count count --k 5 -o groups.csv",
    ):
        assert run(*shlex.split(words), cwd=place).returncode == 0, words
    return place


A = f"anonymize people.csv {ROLES}"
W = "anonymize weighed.csv --quasi age,town --sensitive disease"
T = "tiles people.csv --x lon --y lat"
G = "gather people.csv --r 5 --columns"
L = "labels jobs.csv --label job --count count"
R = "regions areas.csv pairs.csv --weight people"
WRONG = [  # what is typed, exit status, what the sentence says: what is wrong, and what to do
    # the command itself
    ("anonimize people.csv", 2, "no command 'anonimize'; did you mean shoal anonymize?"),
    ("people.csv", 2, "'people.csv' is no command; say first what to do with it, for example: shoal init"),
    ("help", 2, "shoal --help lists the commands, shoal anonymize --help explains one"),
    ("--quasi age", 2, "shoal has no --quasi; name a command first, for example: shoal anonymize people.csv --quasi"),
    ("series verify months", 2, "a series is checked as a release is: shoal verify months"),
    ("series ad months", 2, "did you mean 'add'"),
    ("anonymize --helpp", 2, "did you mean --help?"),
    ("anonymize people.csv -k 5", 2, "shoal anonymize has no -k; did you mean --k?"),
    ("frobnicate", 2, "no command 'frobnicate'; shoal --help lists them"),
    ("demo people.csv", 2, "shoal demo brings a table of its own; for yours: shoal init people.csv"),
    ("anonymize", 2, "TABLES is missing: CSV (also .gz), Parquet, Excel, SPSS, Stata or SAS file"),
    (f"{A} --kk 3", 2, "shoal anonymize has no --kk; did you mean --k? (shoal anonymize --help lists the options)"),
    ("anonymize people.csv --quasi-identifiers age --k 2", 2, "no --quasi-identifiers; here this is --quasi"),
    ("anonymize people.csv --quasi age, town --k 2", 2, "no file 'town' to read; column names are separated by commas"),
    (f"{A} --k", 2, "--k needs a value: at least k rows in every group"),
    ("audit people.csv", 2, "say --quasi (the columns others may know; shoal init and shoal.roles propose them)"),
    ("attack release.csv --fail-above 50", 2, "--fail-above 50: a risk is a share, from 0 to 1, such as 0.5"),
    ("keygen short.key", 4, "'short.key' exists already; a key is never written over, name another file"),
    (f"{A} --k 2 --table Sheet1", 2, "shoal: --table Sheet1 names a table of a database, a sheet, or a layer, and"),
    (f"{A} --k 2 --decided-by Board", 2, "--decided-by is for a report, and none is written; add --report FILE"),
    ("tiles people.csv --x lon --y lat --k 3 --internal -o t.csv", 2, "--internal is for a report, and none is"),
    (f"{A} --k 2 --max-composition 0.1", 2, "--max-composition 0.1 has no effect without --after; say that too"),
    ("series add 'my cases'", 2, "shoal series add takes a table: shoal series add 'my cases' TABLE"),
    (f"{A} --k 2 --force-composition", 2, "--force-composition has no effect without --after; say that too"),
    (f"{A} --k 2 --table Sheet1 --engine duckdb", 2, "and these files have none; leave it out"),
    (f"{A} --k 2 --temporary . --engine polars", 2, "shoal: --temporary . is a setting of --engine duckdb; it has no"),
    ("verify nothere.csv", 2, "there is no file 'nothere.csv' to read"),
    ("audit people.csv --quasi age --population-size 2", 2, "--population-size 2: a whole number, at least the 24"),
    ("verify people.csv", 2, "there is no certificate 'people.certificate.json' next to the release; name the"),
    ("compare people.csv --quasi age", 2, "RELEASES is missing: releases of it"),
    ("intervals people.csv --column age --k 3", 2, "shoal intervals has no --column; here this is --value"),
    ("tiles people.csv --lon lon --lat lat --k 3", 2, "shoal tiles has no --lon; here this is --x"),
    ("gather people.csv --columns age --k 3", 2, "shoal gather has no --k; here this is --r"),
    ("reproduce", 2, "no experiment is named; there is names and l-diversity: shoal reproduce names"),
    # files
    (f"anonymize peopel.csv {ROLES} --k 2", 2, "no file 'peopel.csv' to read; did you mean 'people.csv'?"),
    (f"anonymize peop*.csv {ROLES} --k 2", 2, "matches 1 file there; anonymize and audit read patterns with --glob"),
    (f"anonymize elsewhere/people.csv {ROLES} --k 2", 2, "no file 'elsewhere/people.csv'"),
    (f"anonymize empty.csv {ROLES} --k 2", 2, "'empty.csv' is empty"),
    (f"anonymize notes.txt {ROLES} --k 2", 2, "'notes.txt' has a header and no rows"),
    (f"anonymize semicolons.csv {ROLES} --k 2 --separator ,", 2, "holds ';'; say --separator ';'"),
    ("init peple.csv", 2, "did you mean 'people.csv'?"),
    ("anonymize people.csv --quasi age --quasi town --k 2", 2, "--quasi is given 2 times, and the last alone would"),
    (f"{A} --k 2 --k=3", 2, "--k is given 2 times, and the last alone would count; give it once"),
    (f"{A} --k 2 --hierarchy age=a.csv,town=b.csv", 2, "names several columns; repeat the option for each of them"),
    (f"{A} --k 2 --max-outliers 0.1", 2, "has no --max-outliers; here this is --max-suppressed"),
    (f"{A} --k 2 --suppresion-limit 0.1", 2, "has no --suppresion-limit ("),
    (f"{A} --k 2 --max-supressed 0.1", 2, "has no --max-supressed; did you mean --max-suppressed?"),
    (f"{A} --beta-likeness 2", 2, "has no --beta-likeness; here this is --beta ("),
    (f"{A} --k 2 --global_recoding", 2, "has no --global_recoding; here this is --global-recoding"),
    ("anonymize people.csv --keyvars age", 2, "has no --keyvars; here this is --quasi"),
    ("anonymize people.csv --quasi age --seconds 5", 2, "has no --seconds; here this is --effort"),
    ("tiles people.csv --x lon --y lat --k 3 --random-state 1", 2, "has no --random-state; here this is --seed"),
    ("init -", 2, "so it cannot come through a pipe; save it as a file"),
    ("init picture.png", 2, "; save it as CSV, Parquet or Excel"),
    ("anonymize people.csv --policy", 2, "--policy needs a value: a TOML file with the same settings"),
    (f"{A} --k 2 -o people.csv", 2, "is a file that is read; what is read is never changed, name another file"),
    (f"{A} --k 2 -o release.csv", 4, "exists already; say --force to replace it"),
    (f"{A} --k 2 -o nowhere/x.csv", 2, "there is no folder 'nowhere' to write 'x.csv' into; make it first"),
    (f"{A} --k 2 -o x.docx", 2, "a table is written as .csv"),
    (f"{A} --k 2 --report x.txt", 2, "a report is written as .html"),
    (f"{A} --k 2 --report people.html", 4, "'people.json', which is written next to 'people.html', exists already"),
    (f"{A} --k 2 --explored people.json", 2, "--explored is shown in an internal report: add --report FILE --internal"),
    (f"{A} --k 2 --report x.html --explored people.json", 2, "is not a file of figures that shoal explore wrote"),
    ("anonymize people.json --quasi age --k 2", 2, "; save it as CSV, Parquet or Excel"),
    ("init joined.toml", 2, "; save it as CSV, Parquet or Excel"),
    ("audit spoiled.parquet --quasi age --k 2", 2, "it is damaged or something else: write it again, or save it as"),
    ("audit headless.csv --quasi age --k 2", 2, "first line of the table holds numbers, as a row does; put the names"),
    (f"{A} --k 2 --secret none.key", 2, "there is no secret 'none.key' to read; any file of 16 random bytes or more"),
    (f"{A} --k 2 --secret short.key", 2, "holds 4 bytes and a secret at least 16; any file of 16 random bytes"),
    (f"{A} --k 2 --separator ;;", 2, "give one ASCII character that is no quote"),
    (f"{A} --k 2 --parts csv", 2, "with --engine duckdb or --engine spark; for one file end the output's name in .csv"),
    # policies
    ("anonymize people.csv --policy people.csv", 2, "'people.csv' is not TOML; shoal init TABLE writes one"),
    ("anonymize people.csv --policy gone.toml", 2, "in sensitive of gone.toml, 'disese' is not a column; did you mean"),
    ("anonymize people.csv --policy gone.toml --engine duckdb", 2, "in sensitive of gone.toml, 'disese' is not"),
    ("anonymize people.csv --policy gone.toml --sensitive disese", 2, "shoal: 'disese' is not a column; did you mean"),
    ("anonymize people.csv --policy gone.toml --sensitive disease --person tovn", 2, "shoal: 'tovn' is not a column"),
    ("audit people.csv --policy gone.toml", 2, "in sensitive of gone.toml, 'disese' is not a column; did you mean"),
    ("explore people.csv --policy gone.toml", 2, "in sensitive of gone.toml, 'disese' is not a column; did you mean"),
    ("compare people.csv people.csv --policy gone.toml", 2, "in sensitive of gone.toml, 'disese' is not a column; did"),
    ("anonymize people.csv --policy joined.toml", 2, "'age,town' is not a column; it names 2, so give each by itself"),
    ("anonymize people.csv --policy treeless.toml", 2, 'in treeless.toml, publish = "hierarchy" needs hierarchies for'),
    ("anonymize people.csv --policy step.toml", 2, "in step.toml, range_step = 5: give a mapping from"),
    ("init people.csv --k 0", 2, "--k 0: a whole number, at least 1"),
    ("anonymize people.csv --policy misspelled.toml", 2, "did you mean 'quasi_identifiers'?"),
    ("anonymize people.csv --policy broken.toml", 2, "'broken.toml' is not TOML; it is unreadable at line 1, column 5"),
    ("anonymize people.csv --policy below.toml", 2, "in below.toml, hierarchies holds the setting 'effort'; in a"),
    ("anonymize people.csv --policy dashed.toml", 2, "'random-seed' is not a setting of a policy; in shoal this is"),
    ("anonymize people.csv --policy strict.toml", 2, "shoal: strict_roles asks for a role of every column, and 'town'"),
    ("anonymize people.csv --policy step.toml --range-step age=5 --strict-roles", 2, "shoal: --strict-roles asks for"),
    ("anonymize people.csv --policy none.toml", 2, "no policy file 'none.toml'; shoal init TABLE writes one"),
    ("anonymize people.csv --policy five.toml", 2, "k-anonymity: k is 'five', and it has to be a whole number"),
    # columns and their roles
    (f"anonymize people.csv {ROLES.replace('town', 'tovn')} --k 2", 2, "'tovn' is not a column; did you mean 'town'?"),
    (f"anonymize people.csv {ROLES.replace('age', 'Age')} --k 2", 2, "'Age' is not a column; did you mean 'age'?"),
    ("anonymize people.csv --k 2", 2, "no quasi-identifier is named; say --quasi"),
    ("anonymize people.csv --quasi age,town --sensitive disease --k 2", 2, "each in --identifiers to leave it out"),
    (f"{A.replace('town', 'town,disease')} --k 2", 2, "named in both --quasi and --sensitive; a column has one role"),
    (f"{A} --k 2 --person age", 2, "column 'age' is named in both --quasi and --person; a column has one role"),
    (f"{A} --k 2 --household disease", 2, "column 'disease' is named in both --sensitive and --household;"),
    (f"{A} --k 2 --population-weights age", 2, "'age' is named in both --quasi and --population-weights;"),
    # models
    (A, 2, "there is no privacy model; say --k 5"),
    (f"{A} --k five", 2, "--k is 'five', and it has to be a whole number"),
    (f"{A} --k 2.5", 2, "--k is '2.5', and it has to be a whole number"),
    (f"{A} --k 0", 2, "k-anonymity: k is 0, and it has to be a whole number, at least 1"),
    (f"{A} --k 100", 3, "the table has 24 rows, so no group of k = 100 exists; the largest k possible is 24"),
    (f"{A} --k 2 --l 9", 3, "the largest l possible is 3"),
    (f"{A.replace('--sensitive', '--insensitive')} --k 2 --l 2", 2, "none is given; set --sensitive"),
    (f"{A} --k 2 --t 5", 2, "shoal: t-closeness: t is 5.0, and it has to be a distance, from 0 to 1"),
    (f"{A} --k 2 --entropy-l 9", 3, "group is at least log 9 exists; ask for --entropy-l 3 at the most"),
    (f"{A} --k 2 --recursive-cl 3", 2, "--recursive-cl '3': give two numbers separated by a comma"),
    (f"{A} --k 2 --alpha-k 5,0.5", 2, "give two numbers separated by a comma, a number, then a whole number"),
    (f"{A} --k 2 --preset hipaa", 2, "'hipaa' is not a preset; did you mean 'hipaa-safe-harbor'?"),
    (f"{A} --k 2 --preset gdpr", 2, "'gdpr' is not a preset; there is 'k3'"),
    (f"{A} --k-map 2", 2, "say --population TABLE, or --population-weights COLUMN"),
    (f"{A} --k-map 2 --population other.csv", 2, "in the population, 'age' is not a column; there is 'a', 'b'"),
    (f"{A} --k-map 2 --population few.csv", 2, "the population has 2 rows and the sample 24; pass the table"),
    (f"{A} --k-map 2 --population elsewhere.csv", 2, "column 'age' has values that the population lacks"),
    (f"{W} --identifiers name,lon,lat,who --k-map 2 --population-weights w", 2, "column 'w' has a negative weight"),
    (f"{W} --identifiers name,lon,lat,w --k 2 --person who", 2, "column 'who' does not name a person in every row"),
    (f"{W.replace('anonymize', 'explore')} --identifiers name,lon,lat,w --person who", 2, "'who' does not name a"),
    (f"{A.replace('--sensitive', '--insensitive')} --t 0.2", 2, "t-closeness needs a sensitive column, and none"),
    (f"{A.replace('anonymize', 'explore')} --t 1.5", 2, "t is 1.5, and it has to be a distance, from 0 to 1"),
    (f"{A} --k-map 2 --presence 0.6,0.2", 2, "delta-presence: low is 0.6 and high 0.2, and low is at most high"),
    (f"{A} --k 2 --missing fill", 2, "did you mean 'filled'"),
    (f"{A.replace('anonymize', 'explore')} --missing wildcard", 2, "reading of shoal.audit alone"),
    # ways to publish
    (f"{A} --k 2 --publish sets", 2, "'ranges' (ranges of numbers and dates, sets of other values)"),
    (f"{A} --k 2 --publish star", 2, "'star' is not a way to publish; did you mean 'stars'?"),
    (f"{A} --k 2 --publish hierarchy", 2, "--publish hierarchy needs --hierarchy"),
    (f"{A} --k 2 --hierarchy age=age.csv", 2, "no effect with --publish stars; say --publish hierarchy"),
    (f"{A} --k 2 --publish hierarchy --hierarchy age=agee.csv", 2, "there is no hierarchy file 'agee.csv'"),
    (f"{A} --k 2 --publish hierarchy --hierarchy age=holes.csv", 2, "does not cover 2 of the column's values"),
    (f"{A} --k 2 --publish hierarchy --hierarchy age=interval:5", 2, "did you mean 'intervals:5'?"),
    (f"{A} --k 2 --publish hierarchy --hierarchy age=intervals:x", 2, "in the hierarchy 'intervals:x', 'x' is not a"),
    (f"{A} --k 2 --coordinates lon", 2, "--coordinates lon: name two columns, x (longitude) and y (latitude)"),
    (f"{A} --k 2 --publish hierarchy --hierarchy age", 2, "--hierarchy 'age': write column=value"),
    (f"{A} --k 2 --range-step age=5", 2, "--range-step widens ranges; it cannot go with --publish stars; leave it out"),
    (f"{A} --k 2 --publish ranges --range-step town=5", 2, "--range-step town=5: the column holds values that"),
    ("anonymize people.csv --policy true.toml", 2, "column 16: there or above, a comma, a quote, or a bracket may be"),
    (f"{A} --k 2 --publish ranges --range-step age=wide", 2, "--range-step age=wide: a step is a number above 0"),
    (f"{A} --k 24 --max-suppressed 0.1", 3, "24 of 24 rows whole, and --max-suppressed 0.1 allows 2; hierarchies"),
    (f"{A} --k 2 --max-suppressed 2", 2, "--max-suppressed 2.0: a share of the rows, from 0 to 1"),
    (f"{A} --k 2 --weight age=heavy", 2, "--weight 'age=heavy': 'heavy' is not a number"),
    (f"{A} --k 2 --weight ag=2", 2, "'ag' is not a quasi-identifier (--weight); did you mean 'age'?"),
    (f"{A} --k 2 --weight age=-2", 2, "--weight age=-2.0"),
    (f"{A} --k 2 --method mondrain", 2, "'mondrain' is not a method for tables; did you mean 'mondrian'?"),
    (f"{A} --k 2 --effort quick", 2, "'quick' is not an effort"),
    (f"{A} --k 2 --seed -1", 2, "--seed -1: a seed is a whole number from 0; leave it out for fresh randomness"),
    (f"{A} --k 2 --master local -o x.csv", 2, "--master local is a setting of --engine spark; say that too"),
    (f"{A} --k 2 --memory 2GB --engine spark -o x", 2, "--memory 2GB is DuckDB's; to give memory to Spark's driver"),
    (f"{A} --k 2 --engine pandas", 2, "'pandas' is not an engine; there is 'polars'"),
    # looking at what there is
    ("audit people.csv --quasi agee", 2, "'agee' is not a column; did you mean 'age'?"),
    ("audit people.csv --quasi age --hierarchy age=agee.csv", 2, "there is no hierarchy file 'agee.csv'"),
    ("audit people.csv --quasi age --l 2", 2, "none is given; say --sensitive"),
    ("audit people.csv --quasi age,town --k 100", 1, "k-anonymity, k = 100: does NOT hold; the table reaches 6"),
    ("audit people.csv --policy none.toml", 2, "no policy file 'none.toml'; shoal init TABLE writes one"),
    ("audit people.csv --quasi age,town --max-average-risk 0.01", 1, "max_average_risk = 0.01: does NOT hold"),
    ("explore people.csv --quasi age,town --k 300", 3, "no group of k = 300 exists; the largest k possible is 24"),
    ("report release.csv release.certificate.json later.html", 2, "what it writes is named by --output"),
    ("verify release.csv release.certificate.json people.csv", 2, "too much: the original is named by --original;"),
    ("verify map.HTML release.certificate.json", 2, "'map.HTML' is a page or a picture, which no certificate covers"),
    ("verify other.csv release.certificate.json", 1, "'other.csv' is not the release of the certificate"),
    ("verify tiles.csv release.certificate.json", 1, "'tiles.csv' is not the release of the certificate"),
    ("verify people.csv release.certificate.json", 1, "belongs to another file, or to another version"),
    ("verify release.csv people.csv", 2, "'people.csv' is not a certificate file of shoal"),
    ("verify release.csv none.json", 2, "there is no certificate 'none.json'"),
    ("verify release.csv release.certificate.json --original other.csv", 1, "the original has no column 'age'"),
    ("verify release.csv --prove balanced", 2, "what the release was made from: say --original TABLE"),
    ("verify release.csv --separator ;", 2, "say how the original is read; say --original too"),
    ("verify release.csv --encoding latin-1", 2, "say how the original is read; say --original too"),
    ("verify release.csv tiles.certificate.json", 1, "belongs to another file, or to another version"),
    ("explore people.csv --quasi age,town --k five", 2, "--k 'five': give whole numbers separated by commas"),
    ("explore people.csv --quasi age,town --publish star", 2, "did you mean 'stars'?"),
    ("explore people.csv --quasi age,town --k 2 --l 2", 2, "none is given; set --sensitive"),
    ("compare people.csv other.csv --quasi age,town", 2, "in the release 'other.csv', 'age' is not a column; there"),
    # other questions
    ("regions areas.csv --weight people --k 5", 2, "pass --shapes FILE (.geojson, .gpkg or .shp), or a"),
    ("regions areas.csv pairs.csv --weight peple --k 5", 2, "not a column of the areas; did you mean 'people'?"),
    ("regions areas.csv pairs.csv --weight people --k 500", 3, "all areas together weigh 16, below k = 500; lower k"),
    ("regions areas.csv apart.csv --weight people --k 10", 3, "or join what is apart with --islands join"),
    ("regions areas.csv pairs.csv --weight people --k 5 --sensitive people", 2, "--sensitive has no effect without l"),
    ("regions areas.csv strangers.csv --weight people --k 5", 2, "without an area: z; give both files the same ids"),
    ("regions areas.csv pairs.csv --weight people --k 5 --map m.html", 2, "name their file with --shapes"),
    ("regions areas.csv pairs.csv --weight people --k 5 --shape-id x", 2, "name their file, --shapes FILE"),
    ("tiles commas.csv --x lng --y lat --k 2", 2, "in any row; write decimal points for its commas"),
    ("tiles blank.csv --x lng --y lat --k 2", 2, "column 'lat' is empty; name a column of numbers"),
    ("tiles people.csv --x lat --y lon --k 2", 2, "--x 'lat' names latitudes and --y 'lon' longitudes; exchange them"),
    ("tiles people.csv --x town --y lat --k 2", 2, "'town' holds no numbers in any row; name a column of numbers"),
    ("tiles people.csv --x lon --y lat --k 2 --coordinates wgs84", 2, "'wgs84' is not a kind of coordinates"),
    ("tiles people.csv --x lon --y lat --k 2 --seed 3", 2, "--seed 3 has no effect without --center draw; say that"),
    ("tiles people.csv --x lon --y lat --k 2 --rule median", 2, "--rule median has no effect without --method kd_tree"),
    ("labels jobs.csv --label job --k 2 --order given", 2, "has no effect without --method fold or --method spread"),
    ("gather people.csv --columns age --r 2 --method exact --improve", 2, "--improve has no effect with --method exac"),
    ("tiles people.csv --x lon --y lat --k 2 --keep-order", 2, "--keep-order is for what --table writes, and none is"),
    ("tiles people.csv --x lon --y lat --k 2 --insensitive age", 2, "and none is written; add --table FILE"),
    ("gather people.csv --columns age --r 2 --secret key", 2, "--secret is for what --assignments writes, and none is"),
    ("gather people.csv --columns age --r 2 --plane", 2, "--plane has no effect without --latitude and --longitude"),
    ("regions areas.csv pairs.csv --weight people --k 5 --tolerance 1", 2, "--tolerance 1.0 compares borders, and the"),
    ("gather people.csv --columns age --r 2 --keep-order", 2, "--keep-order is for what --assignments writes"),
    (f"{R} --k 5 --choices c.svg --at-most areas=2", 2, "--choices asks for every number of regions by itself; leave"),
    ("regions areas.csv --weight people --k 5 --source u", 2, "--source names a column of the pairs of neighbors, and"),
    ("regions areas.csv --weight people --k 5 --target v", 2, "--target names a column of the pairs of neighbors, and"),
    ("tiles people.csv --x lon --y lat --k 2 --table t.csv --keep-order --secret key", 2, "leave one out"),
    ("tiles people.csv --x lon --y lat --k 2 --table t.csv --person name --identifiers name", 2, "among --identifiers"),
    (f"{T} --k 2 --max-width 9 --extent plane", 2, "--max-width needs tiles with ends"),
    ("gather people.csv --columns age --r 99 --assignments t.csv --keep-order --secret key", 2, "leave one out"),
    ("gather people.csv --columns age --r 2 --categories age --unit age=years", 2, "'age' holds words or codes, which"),
    ("gather people.csv --columns town --r 2 --unit town=km", 2, "leave its unit out"),
    ("gather people.csv --columns town --r 2 --coordinates town=at.csv --unit town=miles", 2, "measured in km, not"),
    (f"{L} --k 5 --names notes.txt --naming largest -o x.csv", 2, "--naming largest has no effect, because --names"),
    (f"{L} --k 2 --names notes.txt -o x.csv", 2, "--names holds 1 different name, and 3 groups need one each"),
    ("assign groups.csv jobs.csv --keep-order", 2, "--keep-order is for what -o writes, and none is written"),
    ("assign groups.csv jobs.csv --x job", 2, "--x job has no effect on an answer of labels; leave it out"),
    ("assign tiles.csv people.csv --column age", 2, "--column age has no effect on an answer of tiles"),
    ("assign tiles.csv people.csv --boundary town", 2, "--boundary town has no effect, because the tiles have none"),
    ("assign tiles.csv people.csv -o x.csv --keep-order --secret key", 2, "--keep-order keeps theirs; leave one out"),
    ("explore people.csv --quasi age,town --k 2 --publish stars,ranges --hierarchy age=stars", 2, "has no effect"),
    ("explore people.csv --quasi age,town --k 2 --hierarchy age=stars", 2, "--hierarchy has no effect with --publish"),
    ("series start months --policy five.toml --person name", 2, "--person has no effect on shoal series start; it be"),
    ("series status months --sign short.key", 2, "--sign has no effect on shoal series status; it belongs to add and"),
    ("series view months --memory 2GB", 2, "--memory has no effect on shoal series view; it belongs to add"),
    ("series add months people.csv --force", 2, "--force has no effect on shoal series add; it belongs to waiting"),
    ("tiles people.csv --x lon --y lat --k 200", 3, "24 records in all, fewer than k = 200"),
    ("tiles people.csv --x lon --y lat --k 2 --l 2", 2, "give --sensitive COLUMN with --l 2 or --distinct-l 2"),
    ("gather people.csv --r 2", 2, "nothing to measure distance by; name --columns, or --latitude and --longitude"),
    ("gather people.csv --r 2 --latitude lat", 2, "a place needs both --latitude and --longitude"),
    ("gather people.csv --r 2 --latitude lon --longitude lat", 2, "'lon' is a column of longitudes and 'lat' one of"),
    ("gather people.csv --columns age --r 200", 3, "the largest r possible is 24"),
    ("gather people.csv --columns age --r 2 --l 2", 2, "name their columns with --sensitive"),
    ("labels jobs.csv --label job --weight job --k 5", 2, "shoal labels has no --weight; here this is --count"),
    ("gather people.csv --r 5 --columns age --decimal age=, --hierarchy age=intervals:5", 2, "is in --hierarchy and"),
    ("gather people.csv --identifiers name --r 5", 2, "shoal gather has no --identifiers (shoal gather --help lists"),
    ("labels jobs.csv --label job --count job --k 5", 2, "column 'job' holds what is not a whole number"),
    ("labels jobs.csv --label job --count count --k 5 --levels 9", 2, "--levels needs --hierarchy FILE, the file"),
    ("gather people.csv --columns age --r 2 --epsilon 3", 2, "--epsilon 3.0: the share left out is at least 0 and"),
    ("cellular people.csv --columns age --r 2 --setup-cost -1", 2, "--setup-cost -1: costs are finite and at least"),
    ("intervals people.csv --value town --k 2 --objective range", 2, "in column 'town', objective 'range' needs numbe"),
    ("labels jobs.csv --label job --count count --k 500", 3, "lower k to at most 16"),
    ("assign jobs.csv people.csv", 2, "there is no certificate 'jobs.certificate.json'; name first the file that"),
    ("assign release.csv people.csv", 2, "no certificate of tiles, regions, clusters, labels or intervals"),
    ("assign tiles.csv other.csv", 2, "in the new records, 'lon' is not a column; there is 'a', 'b'; say --x"),
    ("assign groups.csv people.csv", 2, "no column 'job' to look up in labels; say --column NAME"),
    ("regions areas.csv pairs.csv --weight people --k 5 --max-diameter 9", 2, "or a file of polygons (--shapes FILE)"),
    ("regions areas.csv pairs.csv --weight people --k 5 --objective large", 2, "'large' is not an objective of"),
    ("labels jobs.csv --label job --count count --k 5 --method scheme --epsilon 2", 2, "--epsilon 2.0: a number above"),
    ("labels jobs.csv --label job --count count --k 5 --method bicriteria -o b.csv", 2, "so no crosswalk or hierarchy"),
    ("cellular people.csv --columns age --r 2 --method tight", 2, "use 'search' or 'three_step' with r"),
    ("keygen nowhere/key", 2, "there is no folder 'nowhere'"),
    ("reproduce name -o r", 2, "did you mean 'names'"),
    # settings of tiles, clusters, labels and regions
    (f"{T} --k 0", 2, "--k 0: a whole number of at least 1"),
    (f"{T} --k 5 --weight disease", 2, "whole number"),
    (f"{T} --k 5 --method kdtree", 2, "did you mean 'kd_tree'"),
    (f"{T} --k 5 --effort lots", 2, "'lots' is not an effort"),
    (f"{T} --k 5 --map map.docx", 2, "a map is written as .html, .htm, .png, .svg or .pdf"),
    (f"{T} --k 5 --max-width 0.001", 3, "--sparse leave-out"),
    ("tiles people.csv --x lon --y age --k 5 --coordinates projected --tiles t.geojson", 2, "projected"),
    ("tiles people.csv --x lat --y lan --k 5", 2, "'lan' is not a column; did you mean 'lon'?"),
    (f"{G} age,age", 2, "'age' is named twice"),
    (f"{G} age --weights disease=2", 2, "'disease'"),
    (f"{G} age --weights age=much", 2, "not a number"),
    (f"{G} age --categories disease", 2, "'disease'"),
    (f"{G} age --center median", 2, "kind of center"),
    (f"{G} agee", 2, "did you mean 'age'?"),
    (f"{L} --k 0", 2, "at least 1"),
    (f"{L} --k 5 --method fo1d", 2, "did you mean 'fold'"),
    (f"{L} --k 5 --hierarchy h.csv --levels x", 2, "not a list of whole numbers"),
    ("labels odd.csv --label job --count count --k 2", 2, "number below 0"),
    ("labels jobs.csv --label job --count cuont --k 2", 2, "did you mean 'count'"),
    ("intervals odd.csv --value age --k 2", 2, "1 of its 4 different values are none"),
    ("intervals odd.csv --value job --k 2", 2, "missing values"),
    ("intervals endless.csv --value age --k 2", 2, "column 'age' holds numbers, and 2 of its 7 different values are"),
    ("intervals types.parquet --value raw --k 2", 2, "column 'raw' holds values of type Binary, which cannot be"),
    ("intervals types.parquet --value codes --k 2", 2, "column 'codes' holds values of type List(Int64), which"),
    ("labels types.parquet --label codes --k 2", 2, "column 'codes' holds values of type List(Int64), which"),
    ("gather types.parquet --r 2 --columns stay", 2, "column 'stay' holds durations; turn them into numbers, such"),
    ("gather types.parquet --r 2 --columns codes", 2, "in Polars with list.join()"),
    ("attack types.parquet --quasi codes", 2, "column 'codes' holds values of type List(Int64), which cannot be"),
    (f"{R} --k 6 --k 7", 2, "give one for each"),
    (f"{R} --k 6 --islands sink", 2, "'join'"),
    (f"{R} --k 6 --method tre", 2, "did you mean 'tree'"),
    (f"{R} --k 6 --compare-prefix 0", 2, "at least 1"),
    (f"{R} --k 6 --coordinates polar", 2, "'projected'"),
    (f"{R} --k 6 --regions 2,", 2, "no whole number"),
    (f"{R} --k 3 --levels 9,", 2, "not a list of whole numbers"),
    (f"{R} --k 8 --levels 16,12", 2, "must rise from --k through --levels, not 8, 16, 12"),
    (f"{R} --k 8 --levels 8", 2, "must rise"),
    (f"{R} --k 8 --levels many", 2, "--levels 'many' is not a list of whole numbers"),
    (f"{R} --k 8 --levels 16 --levels 20", 2, "2 of --levels for 1 of --k"),
    (f"{R} --k 8 --weight people --k 2 --levels 16 --levels 4,9", 2, "give as many for each"),
    (f"{R} --k 8 --levels 16 --regions 9", 2, "one number for 2 levels"),
    (f"{R} --k 8 --levels 16 --at-most areas=4,9,20", 2, "3 values for 2 levels"),
    (f"{R} --k 8 --levels 16 --hierarchy zip.parquet", 2, "a hierarchy is written as .csv or .txt"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "status", "sentence"), WRONG, ids=[w for w, _, _ in WRONG])
def test_a_wrong_command_is_answered(words, status, sentence, folder):
    before = sorted(p.name for p in folder.iterdir())
    done = run(*shlex.split(words), cwd=folder)
    said = done.said
    assert done.returncode == status, said
    assert sentence in said
    assert "Traceback" not in said
    assert "defect" not in said
    assert not re.search(r"\b\w+=\[|\w+=\{|=True|\bNone\b", said), "names of Python"
    outside = re.sub(r"in \w+\.toml, \w+ = |in \w+ of \w+\.toml", "", done.stderr)  # a file's key
    assert not re.search(r"\b(quasi_identifiers|range_step|max_suppressed|distinct_l)\b(?!')", outside)
    assert not re.search(r"\bN\d+\b", said), "somebody's name"
    assert sorted(p.name for p in folder.iterdir()) == before, "something was written"
    if status != 1:
        assert len(done.stderr.strip().splitlines()) == 1


def test_no_command_at_all_is_answered_with_the_list_of_commands():
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: shoal [OPTIONS] COMMAND [ARGS]...")
    assert "anonymize" in done.stderr


def test_the_first_line_of_help_names_the_arguments_alone():
    assert run("audit", "--help").stdout.startswith("Usage: shoal audit [OPTIONS] TABLES...\n")
