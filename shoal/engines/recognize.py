"""What a column contains, from its name and its values: the 18 kinds of HIPAA's Safe Harbor, and the roles.

45 CFR 164.514(b)(2)(i) lists what must be removed to de-identify a table: names, places below the state, dates,
telephone, fax, e-mail, social security, medical record, health plan, account and license numbers, vehicles, devices,
web and network addresses, biometrics, pictures, and any other number that identifies a person. Names are split into
words first, so that ``relationship`` isn't mistaken for ``ip`` or ``license_plate`` for ``lat``. Values are examined by
form, in a sample; no value leaves this module.

Cyclic columns, such as hours of a day, are recognized by name and range together, never by one alone. Codes for missing
values, and numbers and dates in a local notation, are recognized by their form.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import polars as pl

from shoal.engines.codes import on_a_line
from shoal.model.members import place
from shoal.model.notation import NUMBER, day_of, marks_of, notations_of

DIRECT = "identifier"
REMARKS = "remarks, which can name people"
AGES = "a birth date or age"
HOMES = ("a street address", "street addresses")  # kinds that ``by_name`` and ``by_values`` report
_LOOKED = 600  # number of values whose form is examined
CODES = {"id", "ids", "code", "codes", "type", "class", "category"}  # numbers in such columns are labels
FEW = 10  # a column with at most this many values, on many rows, identifies no one


class Kind(NamedTuple):
    """What a column was recognized as: its role, its kind as text, and the reason."""

    role: str
    what: str
    reason: str


def in_words(name: str) -> str:
    """A column's name as lower-case words with blanks around and between, without digits at a word's end and accents.

    The two dots of ä, ö, and ü stay, and so do letters without an accent, such as ß.
    """
    spaced = re.sub(r"(?<=[a-zäöüß])(?=[A-ZÄÖÜ])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name).lower()
    spaced = unicodedata.normalize(
        "NFC", re.sub(r"[\u0300-\u0307\u0309-\u036f]", "", unicodedata.normalize("NFD", spaced))
    )
    parts = (re.sub(r"(?<=\D)\d+$", "", part) for part in re.split(r"[\W_]+", spaced))
    return " " + " ".join(part for part in parts if part) + " "


def named_words(name: str) -> set[str]:
    """The lower-case words of a column's name."""
    return set(in_words(name).split())


_PERSON = (
    r"(?:patient|person|member|customer|client|employee|user|student|subject|participant|provider|doctor|physician"
    r"|individual|respondent|interviewee"
    r"|patienten|pat|versicherten|kunden|mitarbeiter|mitglieds|matrikel|fall|akten"
    r"|paziente|alunno|alunna|studente|dipendente|assistito|cliente|utente|socio|eleve|etudiant|salarie|assure|adherent"
    r"|paciente|alumno|estudiante|empleado|usuario|aluno|estudante|funcionario|leerling|klant|medewerker)"
)
_NUMBER = (
    r"(?:id|ids|no|nr|nbr|num|number|code|key|identifier|nummer|kennung|zeichen|numero|codice|cod|codigo"
    r"|identificativo|identifiant|identificador)"
)
# prepositions between two words of Romance and Dutch names
_OF = r"(?:(?:di|del|della|dello|de|du|des|do|da|la|l|van) )*"
_BIRTH = r"(?:nascita|naissance|nacimiento|nascimento|geboorte)"
_STREET = (
    r"(?:street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|place|pl|way|terrace|square|highway)"
)

# Patterns for the words of a name: role, kind, pattern. The first match counts, so narrower patterns are first.
_NAMED: list[tuple[str, str, str]] = [
    (
        DIRECT,
        "an e-mail address",
        r" (?:e ?mails?|mail) (?:(?:address|addr|adresse) )?$"
        r"| (?:emailaddress|email|posta elettronica|courriel|correo electronico) ",
    ),
    (DIRECT, "a fax number", rf" (?:tele)?fax(?:number)? (?:{_NUMBER} )?$"),
    (
        DIRECT,
        "a telephone number",
        rf" (?:phones?|telephones?|tel|mobile|cell ?phone|telefon|handy|phonenumber|msisdn|telefono"
        rf"|cellulare|telefone|celular|telefoon) (?:{_NUMBER} )?$",
    ),
    (
        DIRECT,
        "a social security or national number",
        rf" (?:ssn|social security|nhs|national id|nino|passport|tax id|tin|cpf|aadhaar) (?:{_NUMBER} )?$"
        r"| (?:codice|cod) fiscale | tessera sanitaria | securite sociale | seguridad social | (?:dni|nif|nie|bsn|nir"
        r"|pesel|personnummer|burgerservicenummer|steuer ?id|steuernummer|sozialversicherungsnummer) $",
    ),
    (
        DIRECT,
        "a medical record number",
        rf" (?:mrn|(?:medical )?records?|chart|encounter|admission) {_NUMBER} $| mrn "
        r"| (?:nosologico|cartella clinica|historia clinica|nhc) $",
    ),
    (
        DIRECT,
        "a health plan number",
        rf" (?:(?:health ?)?plan|beneficiary|medicare|medicaid|insurance|policy|subscriber|hicn|mbi) {_NUMBER} $"
        r"| (?:hicn|mbi) ",
    ),
    (
        DIRECT,
        "an account number",
        rf" (?:account|acct|konto|iban|credit ?card|card) {_NUMBER} $| (?:iban|account|acct) $",
    ),
    (
        DIRECT,
        "a vehicle's number or plate",
        r" vin $| (?:licen[cs]e|number|registration|vehicle) ?plates? (?:number |no )?$| plate (?:number|no) $"
        rf"| vehicle (?:registration |identification )?{_NUMBER} $| kennzeichen ",
    ),
    (
        DIRECT,
        "a certificate or license number",
        rf" (?:drivers? )?(?:licen[cs]e|certificate|permit|dea|npi) {_NUMBER} $| drivers? licen[cs]e $| npi ",
    ),
    (
        DIRECT,
        "a device's number",
        rf" (?:device|serial|imei|imsi|mac|udid|implant|pacemaker)(?: (?:serial|address|{_NUMBER}))+ $"
        r"| (?:serial|imei|imsi|udid|mac address|deviceid) $",
    ),
    (DIRECT, "a web address", r" (?:url|uri|web ?site|web ?page|home ?page|web address) $"),
    (DIRECT, "a network address", r" (?:ip|ipv) (?:address |addr )?$| ip ?(?:address|addr) $"),
    (
        DIRECT,
        "a biometric record",
        r" (?:finger ?prints?|voice ?prints?|retina|iris ?scan|biometrics?|dna|genome|genotype|face ?id) ",
    ),
    (DIRECT, "a picture", r" (?:photos?|photograph|pictures?|portrait|selfie|face image|image|avatar|mugshot) "),
    (
        DIRECT,
        HOMES[0],
        r" (?:street|home|mailing|postal|house|residential) ?(?:address|addr)(?: line)? $"
        r"|^ (?:address|addr)(?: line)? $| street(?: name| number| no)? $"
        rf"| (?:strasse|straße|adresse|anschrift|hausnummer) | {_PERSON} addr"
        r"| (?:indirizzo(?! di studio)|numero civico|direccion|endereco|adres|straat|calle|rue) ",
    ),
    (
        DIRECT,
        "a person's name",
        r" (?:(?:sur|last|first|fore|given|middle|maiden|full|family|nick|user) ?names?) "
        r"| (?:vorname|nachname|familienname|prenom|apellidos?|cognome|nominativo|sobrenome|apelido|voornaam"
        r"|achternaam) "
        rf"|^ (?:names?|nome?|nombres?|naam)(?: {_OF}(?:{_PERSON}|famille))? $| {_PERSON} (?:full )?name $"
        r"| (?:login|alias) $",
    ),
    (
        DIRECT,
        "a number that identifies a person or record",
        rf" (?:{_PERSON}|case|household|family) {_NUMBER} $| (?:uuid|guid|rowid|record ?id) $|^ (?:id|nr|pid|key) $"
        rf"| (?:patient|person|user|member|customer)id $| {_PERSON}{_NUMBER} $|^ {_NUMBER} {_OF}{_PERSON} $"
        rf"|^ (?:matricola|matricule|expediente|legajo)(?: {_OF}{_PERSON})? $"
        r"|^ (?:patient|person|individual|respondent|customer|client|employee|student|participant"
        r"|paziente|alunno|studente|assistito|paciente"
        r"|alumno|estudiante|aluno|etudiant) $",
    ),
    (
        DIRECT,
        REMARKS,
        r" (?:remarks?|comments?|notes?|memo|free ?text|bemerkung(?:en)?|kommentare?|freitext|anmerkung(?:en)?"
        r"|notiz(?:en)?|remarques?|observaciones|annotazion[ei]|osservazion[ei]|commenti|commentaires?|comentarios?|observacoes"
        r"|opmerking(?:en)?) $",
    ),
    (
        "quasi-identifier",
        "a place",
        r" (?:luogo|comune|provincia|paese|nazione|stato|lieu|pays|commune|departement|lugar|pais|ciudad|municipio"
        rf"|local|cidade) {_OF}{_BIRTH} | geboorte(?:plaats|land) | geburts(?:ort|land) ",
    ),
    (
        "quasi-identifier",
        AGES,
        r" (?:age|ages|agea|agep|dob|yob|yrbrn|born|birth ?date|birth ?day|geburts(?:datum|tag|jahr)|geb ?datum|alter"
        r"|edad|idade"
        rf"|leeftijd|nascita|naissance|nacimiento|nascimento|geboorte(?:datum|jaar)) "
        rf"|^ eta (?:in anni )?$| eta {_OF}{_PERSON} ",
    ),
    ("quasi-identifier", AGES, r" (?:date|year|month|day) of birth | birth (?:date|year|month|day) "),
    (
        "quasi-identifier",
        "a zip code",
        r" (?:zip|zips|zipcode|postal|postcode|postalcode|plz|postleitzahl|zcta|post code|zip code"
        r"|codice postale) |^ (?:cap|cep)(?: (?:di )?(?:residenza|domicilio))? $",
    ),
    (
        "quasi-identifier",
        "something that others may know about a person",
        r" (?:stato civile|estado civil|etat civil|burgerlijke staat) ",
    ),
    (
        "quasi-identifier",
        "a place",
        r" (?:county|city|town|village|state|province|region|district|country|nation|puma|fips|tract|block|census tract"
        r"|lat|latitude|lon|lng|longitude|birth ?place|place|location|neighbou?rhood|municipality|canton|geo|residence"
        r"|native country|precinct|ort|wohnort|stadt|gemeinde|landkreis|kreis|bundesland|ville|ciudad"
        r"|comune|citta|provincia|regione|nazione|residenza|domicilio|localita|quartiere|commune|departement|quartier"
        r"|municipio|comunidad|pais|barrio|localidad|distrito|concelho|freguesia|cidade|woonplaats|gemeente"
        r"|provincie) ",
    ),
    (
        "sensitive",
        "something that people keep private",
        r" (?:diag|diagnos\w*|dx|disease|icd|condition|symptoms?|hiv|aids|drugs?|medic(?!al|are|aid)\w*|treatment"
        r"|salary|income\w*|wages?|earn\w*|affairs?|crime|offen\w*|politic\w*|vote|voted|voting|sexual|health|ill|illness(?:es)?|sick|sickness"
        r"|disabilit(?:y|ies)|disabled|mental|depress\w*|pregnan\w*|orientation|grade|score"
        r"|results?|outcome|debt|default|a1cresult|readmitted|befund|krankheit|haupt ?diagnose|gehalt|lohn|einkommen"
        r"|malattia|patologia|esito|terapia|farmac\w*|stipendio|reddito|retribuzione|vot[oi]|giudizio|maladie|pathologie"
        r"|traitement|salaire|revenus?|enfermedad|tratamiento|salario|sueldo|ingresos|renta|doenca|ziekte|inkomen) ",
    ),
    (
        "quasi-identifier",
        "something that others may know about a person",
        r" (?:sex|gender|gndr|race|rac1p|ethnic\w*|hisp|hispan\w*|marital\w*|marri\w*|marst|msp|educ\w*|edu|eduyrs"
        r"|occup\w*|profess\w*|job|work ?class|employ\w*"
        r"|relig\w*|household|children|language|citizen\w*|height|weight|hours|relationship|nationality|school"
        r"|veteran|geschlecht|sexe|sexo|familienstand|beruf|konfession|staatsangehörigkeit|nationalität|größe|groesse|gewicht"
        r"|sesso|genere|razza|etnia|istruzione|titolo di studio|cittadinanza|nazionalita|lingua|scuola|classe|sezione"
        r"|figli|altezza|peso|diplome|langue|nationalite|ecole|enfants|taille|poids|genero|raza|ocupacion|trabajo"
        r"|idioma|nacionalidad|escuela|colegio|hijos|altura|escolaridade|ocupacao|filhos|geslacht|opleiding"
        r"|beroep|nationaliteit) ",
    ),
    (
        "quasi-identifier",
        "a date or an event that others may know",
        r" (?:dates?|admission|admitted|discharge|visit|death|datum|timestamp|aufnahme|entlassung|tod|fecha"
        r"|ricovero|dimissione|decesso|hospitalisation|deces|defuncion|obito|opname|ontslag|overlijden)"
        r" |^ data (?:visita|esame|iscrizione|accesso|prelievo|intervento|inizio|fine|ingresso|uscita) "
        r"| data d[aeio]l? ",
    ),
]
# Weights of a survey. A column named just "weight" may be body weights.
_SURVEY = re.compile(
    r" (?:survey|sampl(?:e|ing)|design|final|household|population|analysis|calibrat\w*|post ?strat\w*|base|replicate"
    r"|frequency|probability|expansion|grossing) (?:up )?(?:weights?|weighting|wgts?|wts?|factors?) "
    r"| (?:fnlwgt|finalwgt|finalwt|pwgtp|wgtp|perwt|hhwt|asecwt|wtfinl|pspwght|pweight|dweight|anweight) "
    r"| (?:gewichtung\w*|gewichtungsfaktor|hochrechnungs?\w*|designgewicht|ponderacion|ponderation|ponderazione"
    r"|peso campionario|factor de expansion|fator de expansao|wegingsfactor) "
)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?")
_BORN = re.compile(
    rf" (?:dob|yob|yrbrn|born|birth ?date|birth ?day|birth|geburts\w*|geb ?datum|{_BIRTH}(?:datum|jaar)?) "
)
_COMPILED = [(role, what, re.compile(pattern)) for role, what, pattern in _NAMED]


def by_name(name: str) -> Kind | None:
    """The kind of a column by its name; None if the name matches nothing."""
    words = in_words(name)
    for role, what, pattern in _COMPILED:
        if pattern.search(words):
            return Kind(role, what, f"its name suggests {what}")
    return None


def ages_revealed(limited: Iterable[str], published: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of columns, by name: one with limits, and one without that tells its values.

    An age tells the year of birth, and a birth date tells the age. published: all columns except those that are
    removed. O(columns).
    """
    limits = set(limited)
    kinds = {name: by_name(name) for name in published}
    ages = [name for name, kind in kinds.items() if kind is not None and kind.what == AGES]
    born = {name for name in ages if _BORN.search(in_words(name))}
    return [
        (name, one) for name in ages if name in limits
        for one in ages if one not in limits and (name in born) != (one in born)
    ]  # fmt: skip


def free_text(texts: Sequence[str]) -> bool:
    """Whether texts, a sample of a column's, are sentences that mostly differ; blank texts don't count."""
    told = [text for text in texts if text.strip()]
    return bool(told) and sum(map(len, told)) > 40 * len(told) and len(set(told)) * 2 > len(told)


def survey_weights(name: str, label: str | None = None) -> str | None:
    """The reason why a column may hold the weights of a survey, by its name or its label in the file; None if there is
    none."""
    if _SURVEY.search(in_words(name)):
        return "its name suggests the weights of a survey"
    return "its label suggests the weights of a survey" if label and _SURVEY.search(in_words(label)) else None


def _matches(pattern: str) -> Callable[[str], bool]:
    found = re.compile(pattern, re.IGNORECASE)
    return lambda text: found.fullmatch(text) is not None


def _network(text: str) -> bool:
    if text.count(".") != 3 and text.count(":") < 3:
        return False
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


_MACHINE = _matches(r"(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}")
_TELEPHONE = _matches(
    r"\+\d[\d ()./-]{6,18}\d|(?:1[ .-])?\(\d{3}\) ?\d{3}[ .-]?\d{4}|(?:1[ .-])?\d{3}([ .-])\d{3}\1\d{4}"
    r"|0\d{2,5} ?[/ -] ?\d{4,9}"
)


def _vehicle(text: str) -> bool:
    """Whether a text is a vehicle identification number, by its check digit (ISO 3779, 49 CFR 565)."""
    if not re.fullmatch(r"[A-HJ-NPR-Z0-9]{17}", text):
        return False
    values = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", [*range(1, 9), *range(1, 6), 7, 9, *range(2, 10)], strict=True))
    weights = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
    total = sum(w * (int(c) if c.isdigit() else values[c]) for w, c in zip(weights, text, strict=True))
    return text[8] == ("X" if total % 11 == 10 else str(total % 11))


def _tax(text: str) -> bool:
    """Whether a text is a tax code of Italy, by its form, or a personal number of Spain, whose letter is the remainder
    mod 23."""
    code = text.replace(" ", "").upper()
    if re.fullmatch(r"[A-Z]{6}[0-9L-NP-V]{2}[A-EHLMPR-T][0-9L-NP-V]{2}[A-Z][0-9L-NP-V]{3}[A-Z]", code):
        return True
    if re.fullmatch(r"[0-9XYZ]\d{7}-?[A-Z]", code):
        return code[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[int(code[:8].translate(str.maketrans("XYZ", "012"))) % 23]
    return False


def _account(text: str) -> bool:
    """Whether a text is an IBAN (ISO 13616, remainder 1 mod 97) or a card number (first digit 3 to 6, Luhn
    checksum)."""
    bare = re.sub(r"[ -]", "", text).upper()
    if re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", bare):
        return int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1
    if re.fullmatch(r"[3-6]\d{12,15}", bare) and len(bare) in (15, 16):
        doubled = [int(c) * (1 + i % 2) for i, c in enumerate(reversed(bare))]
        return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0
    return False


# Kinds by the form of values, with the share of examined values from which on a kind counts.
_FORMS: list[tuple[str, str, float, Callable[[str], bool]]] = [
    (DIRECT, "e-mail addresses", 0.2, _matches(r"[^@\s<>]+@[^@\s<>]+\.[a-z]{2,}")),
    (DIRECT, "web addresses", 0.2, _matches(r"(?:https?://|www\.)\S+")),
    (DIRECT, "network addresses", 0.2, lambda text: _network(text)),
    (DIRECT, "addresses of network devices", 0.2, _MACHINE),
    (DIRECT, "social security numbers", 0.2, _matches(r"(?!000|666)[0-8]\d{2}-(?!00)\d{2}-(?!0000)\d{4}")),
    (DIRECT, "tax numbers of persons", 0.5, lambda text: _tax(text)),
    (DIRECT, "vehicle identification numbers", 0.5, _vehicle),
    (DIRECT, "account or card numbers", 0.5, _account),
    (DIRECT, "unique identifiers", 0.2, _matches(r"\{?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\}?")),
    (DIRECT, "telephone numbers", 0.5, _TELEPHONE),
    (DIRECT, "pictures", 0.2, _matches(r"data:image/.*|\S*\.(?:jpe?g|png|gif|bmp|tiff?|heic|dcm)")),
    (
        DIRECT,
        HOMES[1],
        0.5,
        _matches(
            rf"\d{{1,6}}[a-z]? (?:[\w'.-]+ ){{1,4}}{_STREET}\.?(?:[ ,].*)?|[\w .-]*(?:stra(?:ss|ß)e|str\.) ?\d+ ?[a-z]?"
        ),
    ),
    ("quasi-identifier", "dates", 0.8, _matches(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[ T]\d{2}:\d{2}.*)?")),
    ("quasi-identifier", "dates", 0.8, _matches(r"\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})(?: \d{1,2}:\d{2}.*)?")),
]


def by_values(texts: Sequence[str]) -> Kind | None:
    """The kind of a column by the form of at most 600 of its values, spread evenly; the result contains no value."""
    step = max(1, -(-len(texts) // _LOOKED))
    looked = [text.strip() for text in texts[::step]]
    if not looked:
        return None
    for role, what, share, test in _FORMS:
        found = sum(map(test, looked))
        if found >= share * len(looked):
            return Kind(role, what, f"{found:,} of {len(looked):,} values looked at have the form of {what}")
    return None


def identifies_nobody(distinct: int, rows: int) -> bool:
    """Whether there are so few values on so many rows that they can't identify single people, whatever the column's
    name."""
    return distinct <= FEW and distinct * 3 <= rows


def recognize(name: str, texts: Sequence[str], distinct: int, rows: int, label: str | None = None) -> Kind | None:
    """The kind of a column by its values, otherwise by its name or its label; None if none of them matches.

    texts           non-missing values as text, or a sample of them
    distinct, rows  of the whole column
    label           the column's label in the file
    """
    held = by_values(texts)
    if held is not None and held.role == DIRECT:
        return held
    recognized = by_name(name)
    if recognized is None and label is not None and (told := by_name(label)) is not None:
        recognized = told._replace(reason=f"its label suggests {told.what}")
    if recognized is not None and recognized.role == DIRECT and identifies_nobody(distinct, rows):
        recognized = None
    return recognized or held


class Cycle(NamedTuple):
    """A cyclic quantity: its last value is next to its first.

    name    pattern of the whole name, as words
    starts  possible first numbers
    period  length of the cycle
    whole   whether it has only integers
    """

    name: re.Pattern[str]
    starts: tuple[int, ...]
    period: int
    whole: bool


_BEFORE = r"(?:(?!(?:per|an?|each|every|half|since|age|tenure|follow|up|duration|total|number|rush|credit)\b)\w+ )*"
AROUND = [
    Cycle(re.compile(rf"{_BEFORE}(?:hour(?: of (?:the )?day)?)"), (0, 1), 24, True),
    Cycle(re.compile(rf"{_BEFORE}(?:week ?day|day of (?:the )?week|dow)"), (0, 1), 7, True),
    Cycle(re.compile(rf"{_BEFORE}(?:month(?: of (?:the )?year)?)"), (0, 1), 12, True),
    Cycle(re.compile(rf"{_BEFORE}(?:bearing|heading|azimuth|wind direction)(?: degrees?| deg)?"), (0,), 360, False),
]


def period_of(series: pl.Series) -> int | None:
    """The period of a cyclic column: 24, 7, 12, or 360; None for a column that isn't known to be cyclic.

    The name must match, every number must be in range, and the numbers must fill more than half of it. A flag for the
    rush hour doesn't.
    """
    name = in_words(series.name).strip()
    kind = next((a for a in AROUND if a.name.fullmatch(name)), None)
    numbers = series.cast(pl.Float64, strict=False) if kind and not series.dtype.is_temporal() else None
    if kind is None or numbers is None or numbers.null_count() > series.null_count() or numbers.len() == 0:
        return None
    known = numbers.drop_nulls()
    if not len(known) or not known.is_finite().all() or (kind.whole and (known % 1 != 0).any()):
        return None
    low, high = float(known.min()), float(known.max())  # type: ignore[arg-type]
    ends = [start + kind.period - kind.whole for start in kind.starts]
    inside = any(start <= low and high <= end for start, end in zip(kind.starts, ends, strict=True))
    wide = high - low > kind.period / 2 and known.n_unique() > min(kind.period, 24) / 2
    return kind.period if inside and wide else None


# fmt: off
ODD_CODES = frozenset([
    "na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "nil", "missing", "unknown", "unk", "-", "--", "---", ".",
    "..", "?", "??", "#ref!", "#value!", "#div/0!", "#name?", "#null!", "#num!", "#error!", "#spill!", "#calc!",
    "#getting_data", "inf", "-inf",
])
# fmt: on
NUMBERS = frozenset([77.7777, 99.9999, 777.7777, 999.9999])
NINES = frozenset([99.0, 999.0, 9999.0, 99999.0, 999999.0, -9.0, -99.0, -999.0, -9999.0])


def codes(series: pl.Series) -> list[tuple[int, str]]:
    """(rows, what they contain) for texts or numbers in a column that often stand for a missing value.

    0 rows: a sentence about the column. Texts such as NA, NULL, ?, -, or a spreadsheet's #REF! always count; numbers of
    sevens and nines (77.7777, 999) count if they are far from all others.
    """
    if series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary):
        return []
    found = []
    numbers = series
    if series.dtype == pl.String or isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        text = series.cast(pl.String).str.strip_chars()
        count = int(text.str.to_lowercase().is_in(list(ODD_CODES)).sum())
        if count:
            found.append(
                (count, "a text that often means a missing value (NA, NULL, ?, - or a spreadsheet's error); it counts "
                 "as a value like any other; empty these cells if the value is missing")
            )  # fmt: skip
            others = text.filter(~text.str.to_lowercase().is_in(list(ODD_CODES))).drop_nulls().unique()
            if on_a_line(others):
                found.append(
                    (0, "all its other values are numbers or dates, which count as texts because of that one, so a "
                     "range of them is a set")
                )  # fmt: skip
        numbers = text.cast(pl.Float64, strict=False)
    if numbers.dtype.is_numeric():
        values = numbers.cast(pl.Float64).drop_nulls().drop_nans()
        count = int(values.is_in(list(NUMBERS)).sum()) + _apart(values)
        if count:
            found.append(
                (count, "a number that often means a missing value (77.7777, 99.9999, 999, -9); it counts as a number; "
                 "empty these cells if the value is missing")
            )  # fmt: skip
    return found


def among_numbers(series: pl.Series) -> int:
    """The number of rows with a text, such as 90+, a total, or 2024-02-30, if 90 % of the rows have a number or a date.

    Zip codes with and without a leading zero are codes and don't count. Texts that often mean a missing value don't
    either.
    """
    if series.dtype != pl.String:
        return 0
    texts = series.drop_nulls().str.strip_chars()
    texts = texts.filter(~texts.str.to_lowercase().is_in(list(ODD_CODES)))
    dates = texts.str.contains(r"^\d{4}-\d{2}-\d{2}$") & texts.str.to_date("%Y-%m-%d", strict=False).is_not_null()
    for fits in (texts.str.contains(NUMBER), dates):
        others = texts.filter(~fits)
        if 0 < len(others) <= 0.1 * len(texts):
            return 0 if others.str.contains(r"^\d+$").any() else len(others)
    return 0


_MARKED = re.compile(r"-?\d{1,3}(?:[. '\u2019\u00a0\u202f]?\d{3})*(?:,\d+)?|-?\d{1,3}(?:[,'\u2019]?\d{3})*(?:\.\d+)?")
_THREE = re.compile(r"-?[1-9]\d{0,2}(?:\.\d{3})+")
_LOCAL = re.compile(r"\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d{2})|\d{4}[./]\d{1,2}[./]\d{1,2}")


def decimal_mark(column: pl.Series, texts: Sequence[str], ranged: bool = True) -> tuple[str | None, list[str]]:
    """The decimal mark with which all values of a column are numbers, and sentences if there isn't exactly one.

    texts   a sample of the values
    ranged  whether ranges of its values may be published

    O(distinct values); fast for texts that aren't numbers.
    """
    if not _mostly(_MARKED, texts):
        return None, []
    values = column.unique().drop_nulls()
    if on_a_line(values):
        points = values.filter(values.str.contains(".", literal=True)).to_list()
        if len(points) in (0, len(values)) or not all(map(_THREE.fullmatch, points)):
            return None, []
        return None, [
            "three digits follow each point; if it separates thousands, name the comma in decimal, so that 1.234 is "
            "more than 999"
        ]
    held = values.to_list()
    found = [m for m in marks_of(held) if len({place(text, m) for text in held}) == len(held) > 1]
    if len(found) == 1:
        return found[0], []
    so = _as_texts("numbers", ranged)
    if found:
        either = "',' if 1,234 is between 1 and 2, or '.' if it is above 1,000"
        return None, [
            f"no value tells whether a comma separates decimals or thousands, {so}; in decimal, name {either}"
        ]
    if not any("," in text for text in texts):  # codes such as 007
        return None, []
    return None, [
        f"no decimal mark reads all its values as different numbers, {so}; write them alike, empty those that are no "
        "numbers, and name the mark in decimal"
    ]


def _as_texts(what: str, ranged: bool) -> str:
    """The consequence if no notation is known."""
    then = "and a range of them is a set that lists each" if ranged else "which have no order for t-closeness"
    return f"so its {what} count as texts, {then}"


def _mostly(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    held = [text.strip() for text in texts[:: max(1, -(-len(texts) // _LOOKED))]]
    return bool(held) and sum(pattern.fullmatch(text) is not None for text in held) >= 0.8 * len(held)


def moments(texts: Sequence[str]) -> bool:
    """Whether texts are dates with a time of day, such as 2024-12-31 23:59:00."""
    return _mostly(_MOMENT, texts)


def local_dates(column: pl.Series, texts: Sequence[str], ranged: bool = True) -> tuple[str | None, list[str]]:
    """The notation in which all values of a column are dates, and sentences if there isn't exactly one.

    texts   a sample of the values
    ranged  whether ranges of its values may be published

    O(distinct values); fast for texts that aren't dates.
    """
    if not _mostly(_LOCAL, texts):
        return None, []
    values = column.unique().drop_nulls().to_list()
    found = [n for n in notations_of(values) if len({day_of(text, n) for text in values}) == len(values)]
    so = _as_texts("dates", ranged)
    if ahead := [n for n in found if "%y" in n and any(_ahead(text, n) for text in values)]:
        found = [n for n in found if n not in ahead]
        if not found:
            return None, [
                f"years of two digits are those from 1969 to 2068, and some of its dates would lie ahead, {so}; write "
                "years of four digits"
            ]
    if len(found) == 1:
        return found[0], []
    if len(found) > 1:
        either = " or ".join(found)
        return None, [f"no value tells which number is the day and which the month, {so}; in dates, name {either}"]
    return None, [
        f"no notation reads all its values as different dates, {so}; write them alike, empty those that are no dates, "
        "and name their notation in dates, such as %d.%m.%Y"
    ]


def _ahead(text: str, notation: str) -> bool:
    """Whether a date is more than a year from now."""
    days = day_of(text, notation)
    return days is not None and days > (datetime.date.today() - datetime.date(1970, 1, 1)).days + 366


def _apart(values: pl.Series) -> int:
    """The number of rows with a number of nines that is more than twice any other, or negative if no other is."""
    nines = values.is_in(list(NINES))
    plain = values.filter(~nines & ~values.is_in(list(NUMBERS)) & values.is_finite())
    if not len(plain) or not nines.any():
        return 0
    low, high = float(plain.min()), float(plain.max())  # type: ignore[arg-type]
    return int((nines & ((values > 2 * max(high, 0.0)) | ((values < 0) & (low >= 0)))).sum())
