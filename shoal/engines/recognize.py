"""What a column holds, told from its name and from its values: the 18 kinds of HIPAA's Safe Harbor, and the roles.

45 CFR 164.514(b)(2)(i) lists what must go before a table counts as without names: names, places below the state,
dates, telephone, fax, e-mail, social security, medical record, health plan, account and license numbers, vehicles,
devices, web and network addresses, biometrics, pictures, and any other number that stands for one person.  Names are
cut into words first, so that ``relationship`` holds no ``ip`` and ``license_plate`` no ``lat``.  Values are looked at
by form, in a sample; no value ever leaves this module.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

DIRECT = "identifier"
_LOOKED = 600  # values of a column whose form is looked at
CODES = {"id", "ids", "code", "codes", "type", "class", "category"}  # numbers of such columns stand for labels
FEW = 10  # a column with no more values than this, on many rows, numbers nobody


class Kind(NamedTuple):
    """What a column was recognized as: its role, what it is in words, and how that was told."""

    role: str
    what: str
    reason: str


def in_words(name: str) -> str:
    """A column's name as lower-case words with blanks around and between; digits at a word's end go."""
    spaced = re.sub(r"(?<=[a-zäöüß])(?=[A-ZÄÖÜ])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name).lower()
    parts = (re.sub(r"(?<=\D)\d+$", "", part) for part in re.split(r"[^a-z0-9äöüßéèñ]+", spaced))
    return " " + " ".join(part for part in parts if part) + " "


def named_words(name: str) -> set[str]:
    """The lower-case words of a column's name."""
    return set(in_words(name).split())


_PERSON = (
    r"(?:patient|person|member|customer|client|employee|user|student|subject|participant|provider|doctor|physician)"
)
_NUMBER = r"(?:id|ids|no|nr|nbr|num|number|code|key|identifier|nummer)"
_STREET = (
    r"(?:street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|place|pl|way|terrace|square|highway)"
)

# On the words of a name: role, what it is, pattern.  The first that is found counts, so the narrower stand first.
_NAMED: list[tuple[str, str, str]] = [
    (DIRECT, "an e-mail address", r" (?:e ?mails?|mail) (?:(?:address|addr|adresse) )?$| (?:emailaddress|email) "),
    (DIRECT, "a fax number", rf" (?:tele)?fax(?:number)? (?:{_NUMBER} )?$"),
    (
        DIRECT,
        "a telephone number",
        rf" (?:phones?|telephones?|tel|mobile|cell ?phone|telefon|handy|phonenumber|msisdn) (?:{_NUMBER} )?$",
    ),
    (
        DIRECT,
        "a social security or national number",
        rf" (?:ssn|social security|nhs|national id|nino|passport|tax id|tin|cpf|aadhaar) (?:{_NUMBER} )?$",
    ),
    (DIRECT, "a medical record number", rf" (?:mrn|(?:medical )?records?|chart|encounter|admission) {_NUMBER} $| mrn "),
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
        "a street address",
        r" (?:street|home|mailing|postal|house|residential) ?(?:address|addr)(?: line)? $"
        r"|^ (?:address|addr)(?: line)? $| street(?: name| number| no)? $"
        rf"| (?:strasse|straße|adresse|anschrift|hausnummer) | {_PERSON} addr",
    ),
    (
        DIRECT,
        "a person's name",
        r" (?:(?:sur|last|first|fore|given|middle|maiden|full|family|nick|user) ?names?) "
        r"| (?:vorname|nachname|prenom|apellido) "
        rf"|^ (?:names?|nom|nombre) $| {_PERSON} (?:full )?name $| (?:login|alias) $",
    ),
    (
        DIRECT,
        "a number that stands for a person or record",
        rf" (?:{_PERSON}|case|household|family) {_NUMBER} $| (?:uuid|guid|rowid|record ?id) $|^ (?:id|nr|pid|key) $"
        r"| (?:patientid|personid|userid|memberid|customerid) $",
    ),
    (
        "quasi-identifier",
        "a birth date or age",
        r" (?:age|ages|dob|yob|born|birth ?date|birth ?day|geburtsdatum|alter) ",
    ),
    ("quasi-identifier", "a birth date or age", r" (?:date|year|month|day) of birth | birth (?:date|year|month|day) "),
    (
        "quasi-identifier",
        "a zip code",
        r" (?:zip|zips|zipcode|postal|postcode|postalcode|plz|zcta|post code|zip code) ",
    ),
    (
        "quasi-identifier",
        "a place",
        r" (?:county|city|town|village|state|province|region|district|country|nation|puma|fips|tract|block|census tract"
        r"|lat|latitude|lon|lng|longitude|birth ?place|place|location|neighbou?rhood|municipality|canton|geo|residence"
        r"|native country|precinct) ",
    ),
    (
        "sensitive",
        "something that people keep private",
        r" (?:diag|diagnos\w*|dx|disease|icd|condition|symptoms?|hiv|aids|drugs?|medic(?!al|are|aid)\w*|treatment"
        r"|salary|income\w*|wages?|earn\w*|affairs?|crime|offen\w*|politic\w*|vote|sexual|orientation|grade|score"
        r"|results?|outcome|debt|default|a1cresult|readmitted) ",
    ),
    (
        "quasi-identifier",
        "something that others may know about a person",
        r" (?:sex|gender|race|ethnic\w*|marital\w*|marri\w*|educ\w*|occup\w*|profess\w*|job|work ?class|employ\w*"
        r"|relig\w*|household|children|language|citizen\w*|height|weight|hours|relationship|nationality|school"
        r"|veteran) ",
    ),
    (
        "quasi-identifier",
        "a date or an event that others may know",
        r" (?:dates?|admission|admitted|discharge|visit|death|datum|timestamp) ",
    ),
]
_COMPILED = [(role, what, re.compile(pattern)) for role, what, pattern in _NAMED]


def by_name(name: str) -> Kind | None:
    """What a column's name says it holds; None when it says nothing."""
    words = in_words(name)
    for role, what, pattern in _COMPILED:
        if pattern.search(words):
            return Kind(role, what, f"its name suggests {what}")
    return None


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
    """A vehicle identification number with its check digit (ISO 3779, 49 CFR 565)."""
    if not re.fullmatch(r"[A-HJ-NPR-Z0-9]{17}", text):
        return False
    values = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", [*range(1, 9), *range(1, 6), 7, 9, *range(2, 10)], strict=True))
    weights = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
    total = sum(w * (int(c) if c.isdigit() else values[c]) for w, c in zip(weights, text, strict=True))
    return text[8] == ("X" if total % 11 == 10 else str(total % 11))


def _account(text: str) -> bool:
    """An IBAN (ISO 13616, remainder 1 of 97) or a card number (16 digits in the first digits in use, sum of Luhn)."""
    bare = re.sub(r"[ -]", "", text).upper()
    if re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", bare):
        return int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1
    if re.fullmatch(r"[3-6]\d{12,15}", bare) and len(bare) in (15, 16):
        doubled = [int(c) * (1 + i % 2) for i, c in enumerate(reversed(bare))]
        return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0
    return False


# What the form of values says, and the share of the values looked at from which on it counts.
_FORMS: list[tuple[str, str, float, Callable[[str], bool]]] = [
    (DIRECT, "e-mail addresses", 0.2, _matches(r"[^@\s<>]+@[^@\s<>]+\.[a-z]{2,}")),
    (DIRECT, "web addresses", 0.2, _matches(r"(?:https?://|www\.)\S+")),
    (DIRECT, "network addresses", 0.2, lambda text: _network(text)),
    (DIRECT, "addresses of network devices", 0.2, _MACHINE),
    (DIRECT, "social security numbers", 0.2, _matches(r"(?!000|666)[0-8]\d{2}-(?!00)\d{2}-(?!0000)\d{4}")),
    (DIRECT, "vehicle identification numbers", 0.5, _vehicle),
    (DIRECT, "account or card numbers", 0.5, _account),
    (DIRECT, "unique identifiers", 0.2, _matches(r"\{?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\}?")),
    (DIRECT, "telephone numbers", 0.5, _TELEPHONE),
    (DIRECT, "pictures", 0.2, _matches(r"data:image/.*|\S*\.(?:jpe?g|png|gif|bmp|tiff?|heic|dcm)")),
    (
        DIRECT,
        "street addresses",
        0.5,
        _matches(
            rf"\d{{1,6}}[a-z]? (?:[\w'.-]+ ){{1,4}}{_STREET}\.?(?:[ ,].*)?|[\w .-]*(?:stra(?:ss|ß)e|str\.) ?\d+ ?[a-z]?"
        ),
    ),
    ("quasi-identifier", "dates", 0.8, _matches(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[ T]\d{2}:\d{2}.*)?")),
    ("quasi-identifier", "dates", 0.8, _matches(r"\d{1,2}[-/.]\d{1,2}[-/.]\d{4}(?: \d{1,2}:\d{2}.*)?")),
]


def by_values(texts: Sequence[str]) -> Kind | None:
    """What the form of values says they are, from at most 600 of them spread over those given; never a value."""
    step = max(1, -(-len(texts) // _LOOKED))
    looked = [text.strip() for text in texts[::step]]
    if not looked:
        return None
    for role, what, share, test in _FORMS:
        found = sum(map(test, looked))
        if found >= share * len(looked):
            return Kind(role, what, f"{found:,} of {len(looked):,} values looked at have the form of {what}")
    return None


def numbers_nobody(distinct: int, rows: int) -> bool:
    """Whether so few values on so many rows cannot be names or numbers of single people, whatever the name says."""
    return distinct <= FEW and distinct * 3 <= rows


def recognize(name: str, texts: Sequence[str], distinct: int, rows: int) -> Kind | None:
    """What a column holds by its values or else by its name; None when neither says anything.

    texts           non-missing values as text, or a sample of them
    distinct, rows  of the whole column
    """
    held = by_values(texts)
    if held is not None and held.role == DIRECT:
        return held
    said = by_name(name)
    if said is not None and said.role == DIRECT and numbers_nobody(distinct, rows):
        said = None
    return said or held
