"""Who a column names: by its name, by its values, on real tables and on thirty made-up columns; and Excel's types."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines.propose import propose
from shoal.engines.recognize import by_name, by_values, period_of
from shoal.engines.unassigned import counts_of
from shoal.errors import InputError
from tests.commands import run
from tests.data import real

N = 60


def thirty() -> pl.DataFrame:
    """Made-up columns, their values without any form that would tell what they are unless it must."""
    few = [i % 3 for i in range(N)]
    code = [f"{i * 7919 % 100003:05d}" for i in range(N)]
    return pl.DataFrame(
        {
            "full_name": [f"N{c}" for c in code], "emailAddress": code, "Phone2": code, "fax_no": code, "SSN": code,
            "MRN": code, "health_plan_number": code, "account_no": code, "license_plate": code, "vin": code,
            "device_serial": code, "website": code, "ip": code, "fingerprint": code, "photo": code,
            "street_address": code, "patient_id": code, "relationship": few, "BirthPlace": few, "NHS": few,
            "zip": few, "age": few, "dateOfBirth": few, "county": few, "diagnosis": few, "income": few,
            "shipping_description": few, "voltage": few, "flagged": few, "latency": few,
        }
    )  # fmt: skip


EXPECTED = {
    **dict.fromkeys(thirty().columns[:17], "identifier"),
    "relationship": ("quasi-identifier", "something that others may know"),
    "BirthPlace": ("quasi-identifier", "a place"),
    "NHS": "insensitive",
    "zip": ("quasi-identifier", "zip code"),
    "age": ("quasi-identifier", "age"),
    "dateOfBirth": ("quasi-identifier", "birth date"),
    "county": ("quasi-identifier", "a place"),
    "diagnosis": "sensitive",
    "income": "sensitive",
    **dict.fromkeys(["shipping_description", "voltage", "flagged", "latency"], "insensitive"),
}


def test_thirty_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    thirty().write_csv(path)
    found = {c.name: c for c in propose(path)}
    for name, wanted in EXPECTED.items():
        role, why = wanted if isinstance(wanted, tuple) else (wanted, "")
        assert (found[name].role, why in found[name].reason) == (role, True), (name, found[name])
    assert "plate" in found["license_plate"].reason


@pytest.mark.parametrize(
    ("texts", "what"),
    [
        (["ann@example.org", "b.c@d.co.uk", ""], "e-mail"),
        (["https://a.org/x", "www.b.org"], "web"),
        (["192.168.0.1", "10.0.0.255"], "network addresses"),
        (["2001:db8::1", "fe80::1:2:3"], "network addresses"),
        (["00:1A:2b:3c:4D:5e"], "network devices"),
        (["123-45-6789", "078-05-1120"], "social security"),
        (["1M8GDM9AXKP042788", "11111111111111111"], "vehicle"),
        (["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"], "account"),
        (["4111 1111 1111 1111", "5500000000000004"], "account"),
        (["123e4567-e89b-12d3-a456-426614174000"], "unique identifiers"),
        (["(212) 555-0100", "212-555-0101", "+49 30 123456", "030/1234567"], "telephone"),
        (["faces/1.jpg", "x.PNG"], "pictures"),
        (["12 Main Street", "7 Old Oak Ave.", "1600 Pennsylvania Avenue NW"], "street"),
        (["Hauptstraße 5", "Lange Str. 12a"], "street"),
        (["2020-01-02", "2020-12-31 10:00"], "dates"),
        (["RSSMRA85T10A562S", "mrtmtt91d08f205j"], "tax numbers"),
        (["12345678Z", "X1234567-L"], "tax numbers"),
    ],
)
def test_values_are_told_by_their_form(texts: list[str], what: str) -> None:
    found = by_values(texts)
    assert found is not None
    assert what in found.what
    for text in texts:
        assert not text or text not in found.reason


@pytest.mark.parametrize(
    "texts",
    [
        ["12:30", "23:59:59"], ["1.2.3", "4.5.6.7.8"], ["100-200", "300-400"], ["12345678901", "98765432109"],
        ["flu", "cold"], ["-73.935242", "40.73061"], ["1M8GDM9A1KP042788"], ["999-00-0000"], ["a@b"],
        ["10115", "01234"],
    ],
)  # fmt: skip
def test_other_values_are_not(texts: list[str]) -> None:
    assert by_values(texts) is None


OTHERS = """product drug_name education_num ship tip skip platform plan capital-gain mailing stage average hotel
            model_key_figure market_cap bottle_cap cp mobile_data data estimated nome_comune number_of_children via
            pays_premium eta_squared"""


@pytest.mark.parametrize("name", OTHERS.split())
def test_other_names_are_not(name: str) -> None:
    found = by_name(name)
    assert found is None or found.role != "identifier", found


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        (
            "adult/adult.csv",
            {
                "age": "quasi-identifier", "sex": "quasi-identifier", "race": "quasi-identifier",
                "marital-status": "quasi-identifier", "education": "quasi-identifier",
                "native-country": "quasi-identifier", "workclass": "quasi-identifier",
                "occupation": "quasi-identifier", "salary-class": "sensitive",
            },
        ),
        (
            "diabetes_hospital/diabetic_data.csv.gz",
            {
                "encounter_id": "identifier", "patient_nbr": "identifier", "race": "quasi-identifier",
                "gender": "quasi-identifier", "age": "quasi-identifier", "diag_1": "sensitive",
                "num_medications": "sensitive", "insulin": "insensitive", "metformin": "insensitive",
            },
        ),
        (
            "census_income/census_income.csv.gz",
            {
                "Age": "quasi-identifier", "Race": "quasi-identifier", "BirthPlace": "quasi-identifier",
                "IncomeClass": "sensitive",
            },
        ),
    ],
)  # fmt: skip
def test_real_tables(file: str, wanted: dict[str, str]) -> None:
    found = {c.name: c for c in propose(real(file))}
    assert {name: found[name].role for name in wanted} == wanted
    if "patient_nbr" in wanted:
        assert any("more than one row" in w for w in found["patient_nbr"].warnings)
        assert not any("more than one row" in w for w in found["encounter_id"].warnings)


ASKED: dict[str, Any] = {"quasi_identifiers": ["q"], "k": 2, "effort": "fast"}


def carrying(values: list[Any]) -> pl.DataFrame:
    return pl.DataFrame({"q": ["a"] * len(values), "note": values})


@pytest.mark.parametrize("engine", ["polars", "pandas", "arrow", "duckdb"])
def test_five_percent_and_no_more(engine: str) -> None:
    connection = duckdb.connect()
    kinds = {
        "polars": lambda f: f,
        "pandas": lambda f: f.to_pandas(),
        "arrow": lambda f: f.to_arrow(),
        "duckdb": lambda f: connection.from_arrow(f.to_arrow()),
    }
    repeated = [i % 3 for i in range(95)]
    fine = shoal.anonymize(kinds[engine](carrying([*repeated, 10, 11, 12, 13, 14])), **ASKED)
    assert fine.facts.carried.as_dict() == {"columns": ["note"], "insensitive": [], "alone": {"note": 5}, "together": 5}
    assert "single out 5 of 100 rows" in fine.facts.carried.warning
    over = carrying([*repeated[:-1], 10, 11, 12, 13, 14, 15])
    with pytest.raises(InputError, match=r"'note': 6.0 % of the rows hold a value that no other row holds"):
        shoal.anonymize(kinds[engine](over), **ASKED)
    kept = shoal.anonymize(kinds[engine](over), **ASKED, insensitive=["note"])
    assert kept.facts.carried.named == ("note",)
    with pytest.raises(InputError, match="social security"):
        shoal.anonymize(kinds[engine](carrying(["123-45-6789", "078-05-1120"] * 50)), **ASKED)


def test_columns_together() -> None:
    frame = pl.DataFrame({"q": ["a"] * 40, "x": [i % 8 for i in range(40)], "y": [i % 5 for i in range(40)]})
    found = shoal.anonymize(frame, **ASKED).facts.carried
    assert (dict(found.alone), found.together) == ({"x": 0, "y": 0}, 40)
    assert shoal.anonymize(frame.drop("y"), **ASKED).facts.carried.warning == ""


def test_counts_against_a_count_by_hand() -> None:
    for values in ([1.0, -0.0, 0.0, None, None, 2.5], ["a", "a", "b", None], [True, False, True], [[1], [1], [2]]):
        series = pl.Series(values)
        held: dict[str, int] = {}
        for value in values:
            shown = repr(0.0 if value == 0 else value)
            held[shown] = held.get(shown, 0) + 1
        assert counts_of(series) == (sum(n == 1 for n in held.values()), len(held))


def everything() -> dict[str, list[Any]]:
    """Two values of every type a table may hold."""
    day = dt.datetime(2020, 1, 2, 3, 4, 5)
    return {
        "int": [1, 2], "big": [2**60 + 1, 2**60 + 3], "float": [0.1 + 0.2, 1e18],
        "huge": [0.1 + 0.2, 1e300], "infinite": [float("inf"), 1.5],
        "bool": [True, False], "date": [day.date(), dt.date(2021, 1, 1)], "old": [dt.date(1850, 1, 1), day.date()],
        "second": [day, day.replace(day=3)], "micro": [day.replace(microsecond=123_457), day],
        "zone": [day.replace(tzinfo=dt.UTC), day.replace(day=3, tzinfo=dt.UTC)], "time": [day.time(), dt.time(0)],
        "span": [dt.timedelta(hours=1), dt.timedelta(days=3)], "decimal": [Decimal("1.10"), Decimal("2.50")],
        "text": ["007", "=1+1"], "link": ["http://a.b/c", "mailto:x"], "control": ["a\rb", "_x0041_"],
        "list": [[1], [2]], "bytes": [b"a", b"b"], "struct": [{"a": 1}, {"a": 2}],
    }  # fmt: skip


@pytest.mark.diagonal
@pytest.mark.parametrize("role", ["quasi", "starred", "gap", "carried"])
@pytest.mark.parametrize("kind", everything())
def test_excel_gives_back_or_refuses_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, role: str
) -> None:
    """A column of every type, published, wholly starred, with missing values, or carried."""
    one, two = everything()[kind]
    values = {"quasi": [one, one, one, one, two, two], "starred": [one, two], "gap": [one, one, None, None, two, two]}
    held = values.get(role, [one, one, two, two])
    frame = pl.DataFrame({"c": held, "s": ["p", "q"] * (len(held) // 2), "t": ["x"] * len(held)})
    path = tmp_path / "t.parquet"
    frame.write_parquet(path)
    quasi = ["t"] if role == "carried" else ["c", "t"]
    asked: dict[str, Any] = {"quasi_identifiers": quasi, "sensitive": ["s"], "k": 2, "effort": "fast"}
    if role == "carried":
        asked["insensitive"] = ["c"]
    from shoal.pipeline import prepare

    if kind in ("list", "bytes", "struct", "huge"):
        monkeypatch.setattr("shoal.problems.tables.group", lambda *_, **__: pytest.fail("work was done"))
        with pytest.raises(InputError, match="'c'"):
            prepare(path, **asked, target=tmp_path / "r.xlsx")
        return
    release = prepare(path, **asked, target=tmp_path / "r.xlsx")
    beside = release.write(tmp_path / "r.xlsx")
    for found in (shoal.verify(tmp_path / "r.xlsx", beside), shoal.verify(tmp_path / "r.xlsx", beside, path)):
        assert found.holds, [f for f in found.findings if not f[1]]


@pytest.mark.parametrize(("name", "low", "high", "period"), [
    ("hour", 0, 23, 24), ("admission_hour", 1, 24, 24), ("HourOfDay", 0, 23, 24), ("weekday", 0, 6, 7),
    ("day_of_week", 1, 7, 7), ("birthMonth", 1, 12, 12), ("bearing", 0, 359, 360), ("wind_direction_deg", 5, 350, 360),
    ("hours_per_week", 0, 23, None), ("wage_per_hour", 0, 23, None), ("hours", 0, 23, None), ("rush_hour", 0, 1, None),
    ("months", 1, 12, None), ("age_month", 1, 12, None), ("month", 0, 40, None), ("month", 1, 3, None),
    ("weekday", 0, 7, None), ("heading_error", 0, 359, None), ("heading", -180, 180, None), ("day", 1, 7, None),
])  # fmt: skip
def test_what_goes_around_is_told_by_name_and_range(name, low, high, period):
    numbers = np.arange(low, high + 1) % (high + 1 - low) + low
    for series in (pl.Series(name, numbers), pl.Series(name, [*map(str, numbers), None])):
        assert period_of(series) == period
    assert period_of(pl.Series(name, ["night", *map(str, numbers)])) is None
    assert period_of(pl.Series(name, numbers + 0.5)) == (period if period == 360 else None)


GERMAN = {
    "Patienten-Nr": "identifier", "PatientenNr": "identifier", "Fallnummer": "identifier", "Bemerkung": "identifier",
    "Geschlecht": "quasi-identifier", "Geburtsdatum": "quasi-identifier", "PLZ": "quasi-identifier",
    "Aufnahme": "quasi-identifier", "Wohnort": "quasi-identifier", "Diagnose": "sensitive", "Befund": "sensitive",
}  # fmt: skip


@pytest.mark.parametrize("name", GERMAN)
def test_names_of_a_german_hospital(name: str) -> None:
    found = by_name(name)
    assert found is not None
    assert found.role == GERMAN[name]


OTHER_LANGUAGES = {
    "identifier": """Patient Paziente Alumno
        Matricola Nome Cognome Codice_fiscale Nosologico Telefono Indirizzo Annotazioni Id_paziente
        Numero_paziente Prénom Nom_de_famille Courriel Numéro_de_sécurité_sociale Code_patient Commentaires Apellidos
        Nombre DNI Teléfono Dirección Número_de_paciente Historia_clínica Sobrenome Código_do_paciente Achternaam BSN
        Opmerkingen""",
    "quasi-identifier": """Data_di_nascita Età Luogo_di_nascita Sesso CAP Comune_di_residenza Cittadinanza Stato_civile
        Titolo_di_studio Data_ricovero Date_de_naissance Âge Lieu_de_naissance Sexe Code_postal Département Nationalité
        Fecha_de_nacimiento Edad Género Código_postal Municipio Estado_civil Data_de_nascimento Idade Escolaridade
        Geboortedatum Leeftijd Geslacht Woonplaats""",
    "sensitive": "Diagnosi Esito_finale Voto_italiano Reddito Maladie Salaire Enfermedad Salario Inkomen",
}


@pytest.mark.parametrize(("role", "names"), OTHER_LANGUAGES.items())
def test_names_in_italian_french_spanish_portuguese_and_dutch(role: str, names: str) -> None:
    found = {name: by_name(name.replace("_", " ")) for name in names.split()}
    assert {name for name, kind in found.items() if kind is None or kind.role != role} == set()


def test_texts_that_mostly_differ_are_no_quasi_identifier(tmp_path: Path) -> None:
    """As ranges, a group's set would list them: the names or numbers of its people, one beside the other."""
    half = [f"W{7919 * (i // 2) % 100003}x" for i in range(300)] + [f"Q{i}x" for i in range(100)]
    pl.DataFrame({"badge": half, "plz": [f"{10000 + 37 * (2 * i // 3)}" for i in range(400)]}).write_csv(
        tmp_path / "t.csv"
    )
    found = {c.name: c for c in propose(tmp_path / "t.csv")}
    assert (found["badge"].role, found["badge"].person) == ("identifier", False)
    assert "62 % of its values are different texts" in found["badge"].reason
    assert any("person = " in w for w in found["badge"].warnings)
    assert found["plz"].role == "quasi-identifier"


@pytest.mark.parametrize(
    ("make", "role"),
    [
        (lambda i: i + 0.25, "quasi-identifier"),
        (lambda i: f"{i},25", "quasi-identifier"),
        (lambda i: f"{i}.25", "quasi-identifier"),
        (Decimal, "identifier"),
        (lambda i: Decimal(f"{i}.25"), "quasi-identifier"),
        (lambda i: i + 0.0, "identifier"),
        (lambda i: i, "identifier"),
        (str, "identifier"),
        (lambda i: f"x{i}", "identifier"),
    ],
)
def test_numbers_that_nearly_all_differ_are_measured_where_they_have_a_fraction(
    make: Callable[[int], Any], role: str, tmp_path: Path
) -> None:
    frame = pl.DataFrame({"alpha": [make(i * 37 % 1009) for i in range(60)], "beta": [1, 2] * 30})
    frame.write_parquet(tmp_path / "t.parquet")
    assert {c.name: c.role for c in propose(tmp_path / "t.parquet")} == {"alpha": role, "beta": "insensitive"}


def test_floats_of_16_bits_are_measured_where_they_have_a_fraction() -> None:
    halves = pl.Series([i / 2 for i in range(60)], dtype=pl.Float16)
    frame = pl.DataFrame({"alpha": halves, "beta": [1, 2] * 30})
    assert {c.name: c.role for c in propose(frame)}["alpha"] == "quasi-identifier"


def test_numbers_of_another_country_have_a_decimal_mark(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    rows = [
        f"{i % 28 + 1:02}.0{i % 9 + 1}.2025;{i % 40},5;1.{i % 7}00,25;{i % 9 or '-'};{i % 9 or '-'}x"
        for i in range(200)
    ]
    path.write_text("\n".join(["Aufnahme;BMI;Betrag;Tage;Ziel", *rows]) + "\n", encoding="utf-8")
    said = {c.name: " ".join(c.warnings) for c in propose(path)}
    assert "count as texts" not in said["Aufnahme"]  # it has a notation
    assert 'it needs decimal = {"BMI" = ","}' in said["BMI"]
    assert 'it needs decimal = {"Betrag" = ","}' in said["Betrag"]
    assert "numbers or dates" not in said["Ziel"]
    assert "all its other values are numbers or dates" in said["Tage"]
    assert "empty these cells" in said["Tage"]


def test_remarks_are_no_number_of_a_person(tmp_path: Path) -> None:
    pl.DataFrame({"Bemerkung": [f"siehe {i // 2}" for i in range(60)]}).write_csv(tmp_path / "b.csv")
    (found,) = propose(tmp_path / "b.csv")
    assert (found.role, found.person, "person =" in " ".join(found.warnings)) == ("identifier", False, False)


def test_remarks_that_are_a_few_words_again_and_again_are_carried() -> None:
    frame = pl.DataFrame({"age": [20, 20, 30, 30], "note": ["flu", "gout"] * 2})
    assert "note" in shoal.anonymize(frame, quasi_identifiers=["age"], k=2, effort="fast").table.columns
    alone = frame.with_columns(note=pl.Series(["ring her sister", "gout", "gout", "gout"]))
    with pytest.raises(InputError, match="remarks, which can name people"):
        shoal.anonymize(alone, quasi_identifiers=["age"], k=2, effort="fast")


@pytest.mark.parametrize(
    "name", ["fnlwgt", "PWGTP", "Survey weight", "sample_weights", "perwt", "pspwght", "Hochrechnungsfaktor"]
)
def test_weights_of_a_survey_leave_and_a_body_weight_does_not(name: str) -> None:
    frame = pl.DataFrame({name: [0.5 + i / 7 for i in range(80)] * 2, "weight": [50.5 + i / 2 for i in range(80)] * 2})
    weights, body = shoal.roles(frame).columns
    assert (weights.role, weights.person) == ("identifier", False)
    assert "the weights of a survey" in weights.reason
    assert f'population_weights = "{name}"' in " ".join(weights.warnings)
    assert body.role == "quasi-identifier"
    assert not any("population_weights" in w for w in body.warnings)
    (words,) = shoal.roles(pl.DataFrame({name: ["light", "heavy"] * 40})).columns
    assert "weights of a survey" not in words.reason


def test_codes_of_censuses_and_surveys_are_known() -> None:
    for name in ("AGEP", "agea", "HISP", "RAC1P", "MSP", "MARST", "gndr", "EDU", "eduyrs"):
        said = by_name(name)
        assert said is not None, name
        assert said.role == "quasi-identifier", name
    for name in ("general_health", "voted_for", "mental_disorder", "pregnant", "disability"):
        said = by_name(name)
        assert said is not None, name
        assert said.role == "sensitive", name
    for name in ("MSPX", "pages", "misped", "schedule"):
        assert by_name(name) is None, name


def test_moments_of_a_csv_in_one_form_are_dates_and_others_are_texts_that_each_group_would_list(tmp_path: Path) -> None:
    moments = [f"2025-01-{1 + i % 28:02} {i % 24:02}:{i % 60:02}:07" for i in range(200)]
    days = [moment[:10] for moment in moments]
    zoned = [f"{moment}{'Z' if i % 2 else '+01:00'}" for i, moment in enumerate(moments)]
    pl.DataFrame({"admission": zoned, "arrival": moments, "discharge": days}).write_csv(tmp_path / "m.csv")
    found = {c.name: c for c in propose(tmp_path / "m.csv")}
    assert found["admission"].role == "identifier"
    assert found["admission"].reason.startswith("its moments are texts in several forms or with zones, and each group")
    assert found["arrival"].role == "quasi-identifier"
    assert found["discharge"].role == "quasi-identifier"
    typed = pl.DataFrame({"admission": pl.Series(moments).str.to_datetime()})
    assert shoal.roles(typed).columns[0].role == "quasi-identifier"
    few = pl.DataFrame({"admission": [moments[i % 9] for i in range(200)]})  # of nine moments, groups show few
    assert shoal.roles(few).columns[0].role == "quasi-identifier"


def _rounded() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    born = [dt.date(1940, 1, 1) + dt.timedelta(int(d)) for d in rng.integers(0, 60 * 365, 400)]
    return pl.DataFrame(
        {
            "birth_date": born,
            "admission": [dt.date(2025, 1, 1) + dt.timedelta(int(d)) for d in rng.integers(0, 365, 400)],
            "height": np.round(rng.normal(170, 12, 400), 2),
            "hours": rng.integers(100, 3000, 400),
            "age": rng.integers(20, 80, 400),
            "born_near": [None if i % 10 == 0 else day for i, day in enumerate(born)],
        }
    )


def _alone(marks: list[Any]) -> float:
    """The share of the rows whose mark no other row has, by counting."""
    held: dict[Any, int] = {}
    for mark in marks:
        held[mark] = held.get(mark, 0) + 1
    return sum(n == 1 for n in held.values()) / len(marks)


def _rare(marks: list[Any]) -> float:
    """The share of the rows whose mark fewer than five rows have, by counting."""
    return sum(marks.count(mark) < 5 for mark in marks) / len(marks)


def _finer(step: int | float) -> float:
    digit = f"{step:e}"[0]
    return float(step) / {"1": 2, "2": 2, "5": 2.5}[digit]


def test_ends_of_ranges_are_rounded_where_they_would_be_values_of_single_rows(tmp_path: Path) -> None:
    frame = _rounded()
    found = shoal.roles(frame)
    steps = found.settings()["range_step"]
    assert steps["birth_date"] == "year"
    assert steps["born_near"] == "year"
    assert "age" not in steps  # at most 5 % of the rows have their age alone
    assert _alone(frame["age"].to_list()) <= 0.05
    for name in ("height", "hours"):
        values, step = frame[name].to_list(), steps[name]
        assert _rare([value // step for value in values]) <= 0.05 < _rare([value // _finer(step) for value in values])
    assert ("admission" in steps) == (_alone(frame["admission"].to_list()) > 0.05)
    born = frame["birth_date"].to_list()
    assert _rare([(day.year, day.month) for day in born]) > 0.05
    assert _alone(born) > 0.05

    frame.write_csv(tmp_path / "p.csv")
    said = run("init", "p.csv", "--k", "4", cwd=tmp_path).ok().said
    assert '"birth_date" to years' in said
    assert f'"hours" to multiples of {steps["hours"]}' in said
    policy = shoal.Policy.read(tmp_path / "p.policy.toml")
    assert policy.range_step == steps  # a file and a frame are proposed the same
    local = frame.with_columns(birth_date=pl.col("birth_date").dt.strftime("%d.%m.%Y"))
    assert shoal.roles(local).settings()["range_step"] == steps
    release = shoal.anonymize(tmp_path / "p.csv", policy, effort="fast")
    ends = [end for text in release.table["birth_date"] if text[0] == "[" for end in text[1:-1].split(", ")]
    assert ends
    assert all(end.endswith("-01-01") for end in ends)


@pytest.mark.parametrize(
    "values",
    [
        [dt.time(i // 60, i % 60) for i in range(200)],
        [dt.datetime(2025, 1, 1, i // 60, i % 60, tzinfo=dt.UTC) for i in range(200)],
        [f"[{10 * i}-{10 * i + 10})" for i in range(200)],
        [f"{i}-{i * 7 % 100}-x{i}" for i in range(200)],
    ],
)
def test_other_values_are_proposed_no_step(values: list[Any]) -> None:
    found = shoal.roles(pl.DataFrame({"visit_date": values, "sex": ["f", "m"] * 100}))
    assert "range_step" not in found.settings()


def test_few_rows_and_wide_numbers_are_looked_at_without_harm() -> None:
    few = pl.DataFrame({"age": [20, 31, 45, 57], "height": [1.5, 1.6, 1.7, 1.8]})
    assert "range_step" not in shoal.roles(few).settings()
    wide = pl.DataFrame({"height": [10**18 + 7919 * i for i in range(40)] * 1 + [5, 6]})
    far = pl.DataFrame({"height": [1e-9 * i for i in range(40)] + [1e300]})
    for frame in (wide, far):
        settings = shoal.roles(frame).settings()
        shoal.anonymize(
            frame, shoal.Policy.of(**{**settings, "quasi_identifiers": ["height"], "identifiers": []}), effort="fast"
        )


def _answers(blank: str | None) -> pl.DataFrame:
    """Answers in words that few people gave, and columns that are as rarely filled but name nobody."""
    told = [f"I was a nurse in the village {i} until my husband fell ill" for i in range(8)]
    return pl.DataFrame(
        {
            "open": [*told, *[blank] * 492],
            "where": [f"near aunt {i}" if i < 14 else blank for i in range(500)],
            "kind": [f"W{i % 5}" if i < 14 else blank for i in range(500)],
            "stage": [("a long name of a stage that many of the patients share", blank)[i % 2] for i in range(500)],
            "age": [20 + i % 30 for i in range(500)],
        },
        schema_overrides={"open": pl.String, "where": pl.String, "kind": pl.String},
    )


@pytest.mark.parametrize("blank", [None, "", " "])
def test_answers_that_few_people_gave_are_still_free_text(tmp_path: Path, blank: str | None) -> None:
    frame = _answers(blank)
    found = {c.name: c for c in shoal.roles(frame).columns}
    assert found["open"].reason == "free text, which can name people, so it is removed"
    assert (found["where"].role, found["where"].reason[:5]) == ("identifier", "100 %")
    assert [found[name].role for name in ("kind", "stage")] == ["insensitive"] * 2


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_rarely_filled_free_text_is_not_published_by_accident(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "a.parquet"
    _answers(None).drop("where").write_parquet(path)
    asked: dict[str, Any] = {"quasi_identifiers": ["age"], "k": 2, "effort": "fast", "engine": engine}
    with pytest.raises(InputError, match=r"\('open': it holds free text, which can name people\)"):
        shoal.anonymize(path, **asked)
    assert "open" in shoal.anonymize(path, insensitive=["open"], **asked).table.columns


@pytest.mark.parametrize(
    ("odd", "rows"),
    [
        (["90+"] * 6, 6),
        (["Total"], 1),
        (["90+"] * 30, 0),
        (["NA"], 0),
        (["07"], 0),
        (["-3.5"], 0),
        ([None], 0),
        (["2025-02-30", "2025-13-01"], 2),
    ],
)
def test_few_texts_among_numbers_are_named(tmp_path: Path, odd: list[str | None], rows: int) -> None:
    """The column is a text then, and a range of it lists each value."""
    ages = [str(20 + i * 7 % 70) for i in range(200)]
    days = [f"2025-01-{1 + i % 28:02}" for i in range(200)]
    held = pl.DataFrame({"age": [*odd, *ages[len(odd) :]], "visit_date": [*odd, *days[len(odd) :]]})
    held.write_csv(tmp_path / "a.csv")
    for column in propose(tmp_path / "a.csv"):
        said = [w for w in column.warnings if "among numbers" in w]
        wanted = 1 if odd == ["-3.5"] and column.name == "visit_date" else rows
        assert [w.split(" ", 1)[0] for w in said] == ([str(wanted)] if wanted else [])
        assert not any(str(value) in " ".join(said) for value in odd if value not in (None, "90+", "Total", "NA"))


def test_proposed_roles_show_themselves_in_a_line_for_each_column() -> None:
    found = shoal.roles(pl.DataFrame({"age": [20 + i % 50 for i in range(300)], "ill": ["flu", "gout", "burn"] * 100}))
    assert [c.role for c in found.columns] == ["quasi-identifier", "sensitive"]
    lines = str(found).splitlines()
    assert [line.split(":")[0] for line in lines[1:3]] == ["age", "ill"]
    assert "quasi-identifier" in lines[1]
    assert "Proposal(" not in repr(found)
    assert lines[-1].startswith("publish ranges")
    assert "<" in found._repr_html_()
