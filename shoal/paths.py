"""What a path is, by its name: the kind of file or of server that it names, and what the files beside it are called.

Endings are read here and nowhere else, in small letters or capitals.  No file is opened.  The address of a server is
shown without its secrets.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

from shoal.errors import InputError

PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xls", ".xlsb")
STATISTICS = (".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")  # of SPSS, Stata and SAS
SPSS, STATA = (".sav", ".zsav"), (".dta",)  # in which shoal writes them
TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
GEOJSON = (".geojson", ".json")
_DRAWN_AS_TEXT = (*GEOJSON, ".topojson")
_DRAWN_FOR_GDAL = (".gpkg", ".shp", ".fgb", ".gml", ".kml", ".geoparquet", ".zip")
_MAPS = (".geojson", ".topojson", ".gpkg", ".shp", ".fgb", ".gml", ".kml")
_WEB = (".html", ".htm")
PICTURES = (".png", ".svg", ".pdf")
OUTLINES = (*GEOJSON, ".gpkg", ".shp", ".kml")  # in which shoal writes them
_SIDES = {".shp": (".dbf", ".shx", ".cpg", ".prj")}  # what else a file of this ending is made of

Kind = Literal["csv", "parquet", "excel", "statistics"]


def ending(path: str | Path) -> str:
    """The ending of a name, in small letters with its dot: ".csv"; "" where there is none."""
    return Path(path).suffix.lower()


def ends(path: str | Path, endings: tuple[str, ...]) -> bool:
    """Whether a name ends in one of several endings, also in two at once such as ".csv.gz"."""
    return Path(path).name.lower().endswith(endings)


def kind_of(path: str | Path) -> Kind:
    """The kind of a table: whatever is not Parquet, Excel or a file of a statistics program is read as CSV."""
    if ends(path, PARQUET):
        return "parquet"
    if ends(path, STATISTICS):
        return "statistics"
    return "excel" if ends(path, EXCEL) else "csv"


def is_sheet(path: str | Path) -> bool:
    """Whether a table is written and read as a whole, in cells with types: Excel, or a file of a statistics program."""
    return kind_of(path) in ("excel", "statistics")


def is_packed(path: str | Path) -> bool:
    """Whether a file is packed with gzip."""
    return ends(path, (".gz",))


def is_table_name(path: Path) -> bool:
    """Whether a name is that of a single table, and not that of a folder."""
    return ends(path, (*PARQUET, *EXCEL, *STATISTICS, *TEXT))


def is_part_name(name: str) -> bool:
    """Whether a name is that of a part of a table: Parquet or CSV."""
    return ends(name, (*PARQUET, *TEXT))


def usual_separator(path: str | Path) -> str:
    """What stands between the fields of a new file: a tab in .tsv, else a comma."""
    return "\t" if ends(path, (".tsv", ".tsv.gz")) else ","


def is_map(path: object, packed: bool = False) -> bool:
    """Whether something is the path of a file of geometries, or of one packed with gzip; a plain .json may be a table's
    certificate, so it is none."""
    more = ".gz" if packed else ""
    return isinstance(path, (str, Path)) and ends(path, tuple(f"{end}{more}" for end in _MAPS))


def has_tables(path: object) -> bool:
    """Whether something is the path of one file that may hold several tables: layers of a map, sheets of Excel."""
    return is_map(path) or (isinstance(path, (str, Path)) and ends(path, EXCEL))


def is_drawing(path: str | Path) -> bool:
    """Whether a file that may be a table or polygons holds polygons."""
    return ending(path) in (*_DRAWN_AS_TEXT, *_DRAWN_FOR_GDAL)


def has_layers(path: str | Path) -> bool:
    """Whether a file of geometries is read through GDAL, which knows several layers, and is no text."""
    return ending(path) not in _DRAWN_AS_TEXT


def is_picture(path: str | Path) -> bool:
    """Whether a file is a picture."""
    return ending(path) in PICTURES


def is_page(path: str | Path) -> bool:
    """Whether a file is a page for the browser."""
    return ending(path) in _WEB


def is_json(path: str | Path) -> bool:
    """Whether a file holds JSON: a certificate, a record, the figures of a page."""
    return ending(path) == ".json"


def is_arx(path: str | Path) -> bool:
    """Whether a file is a project of ARX."""
    return ending(path) == ".deid"


def sides_of(path: Path) -> list[Path]:
    """The files that belong to a file and lie next to it: those of a shapefile."""
    return [path.with_suffix(end) for end in _SIDES.get(ending(path), ())]


class Form(NamedTuple):
    """A kind of output, the endings it may have, and those of what is written beside it."""

    what: str
    endings: tuple[str, ...]
    sides: tuple[str, ...] = ()

    def next_to(self, path: Path) -> list[Path]:
        """What is written beside an output of this kind."""
        return [path.with_suffix(end) for end in self.sides]


TABLE = Form("table", (*TEXT[:5], *PARQUET, ".xlsx", *SPSS, *STATA))
HIERARCHY = Form("hierarchy", (".csv", ".txt"))
JSON = Form("certificate", (".json",))
RECORD = Form("record", (".json",))
PAGE = Form("report", _WEB, (".json",))
SHEET = Form("map", _WEB)
POLICY = Form("policy", (".toml",))
OUTLINED = Form("file of outlines", OUTLINES)
TILES = Form("table or file of tiles", (*TABLE.endings, *GEOJSON))
CIRCLES = Form("file of circles", GEOJSON)
PICTURE = Form("picture", PICTURES)
DRAWING = Form("picture", (".svg",))
MAP = Form("map", (*_WEB, *PICTURES))


def named_after(table: Path) -> str:
    """What outputs that were given no name are called after: visits.csv -> visits, visits.xlsx -> visits.xlsx.

    Only .csv goes, so that no two tables of one folder share a policy, a certificate or a record.
    """
    name = table.name or table.resolve().name
    return name[: -len(".csv")] if ends(name, (".csv",)) and len(name) > len(".csv") else name


def release_name(table: Path) -> str:
    """people.csv -> people.release.csv; people.xlsx -> people.xlsx.release.xlsx; people.por.release.csv."""
    packed = ".gz" if is_packed(table) else ""
    end = ending(table.stem if packed else table)
    known = {".xls": ".xlsx", ".xlsb": ".xlsx"} | {e: e for e in (".xlsx", *PARQUET, *SPSS, *STATA, ".tsv", ".txt")}
    return f"{named_after(table)}.release{known.get(end, '.csv')}{packed}"


def certificate_path(path: Path) -> Path:
    """release.csv -> release.certificate.json, beside it."""
    path = path if path.name else path.resolve()
    end = next((end for end in (".csv.gz", ".tsv.gz") if ends(path, (end,))), path.suffix)
    return path.with_name(f"{path.name[: len(path.name) - len(end)]}.certificate.json")


def record_path(certificate: Path) -> Path:
    """release.certificate.json -> release.record.json, the private record beside a certificate."""
    return certificate.with_name(f"{certified_name(certificate)}.record.json")


def certified_name(certificate: Path) -> str:
    """release.certificate.json -> release."""
    return certificate.name.removesuffix(".json").removesuffix(".certificate")


def internal_path(page: Path) -> Path:
    """report.html -> report.internal.html: a page that must not be published says so in its name."""
    if page.stem.lower().endswith(".internal"):
        return page
    return page.with_name(f"{page.stem}.internal{page.suffix}")


def is_private(path: Path) -> bool:
    """Whether the name of a file says that it must not leave: NAME.record.json, NAME.internal.html."""
    return ".internal." in path.name or path.name.endswith((".record.json", ".policy.toml"))


def level_file(path: Path, level: int) -> Path:
    """Where a level of regions is drawn: the finest in the file itself, those above beside it, ``map.level2.html``."""
    return path if level == 0 else path.with_name(f"{path.stem}.level{level + 1}{path.suffix}")


def certificate_of(release: str | Path, named: str | Path | None) -> Path:
    """The certificate that was named, else the one beside a release; InputError where none lies there."""
    if named is not None:
        return Path(named)
    beside = certificate_path(Path(release))
    if not beside.is_file():
        if not Path(release).exists():
            raise InputError(f"there is no file {str(release)!r} to read; give its whole path, or change folder")
        raise InputError(f"there is no certificate {beside.name!r} next to the release; name the right one")
    return beside


def is_remote(path: Any) -> bool:
    """Whether a path is a place that only Spark knows, such as s3a://bucket/table."""
    return isinstance(path, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) is not None


SERVERS = ("postgres", "postgresql", "mysql", "mariadb", "mssql", "oracle", "snowflake", "bigquery", "trino")


def is_server(path: Any) -> bool:
    """Whether a path is the address of a server of databases."""
    return is_remote(path) and scheme_of(path) in SERVERS


def scheme_of(address: str) -> str:
    """The kind of server an address names, without its driver."""
    return address.partition("://")[0].partition("+")[0].lower()


def hides_password(address: str) -> bool:
    """Whether a password stands in the address of a server, before its host or behind a question mark."""
    rest = address.partition("://")[2]
    before, _, place = rest.rpartition("@")
    return re.search("[:?#;]", before) is not None or re.search(r"(?i)[?&](password|passwd|pwd)=", place) is not None


def hidden_in(text: str, address: str) -> str:
    """A text without the secrets of an address: user, password and query stand in it in no form.

    Also where the address was taken for a path, of which two slashes are one, or for a folder and a name.
    """
    shown = without_secrets(address)
    rest = address.partition("://")[2]
    before = rest.rpartition("@")[0]
    query = re.split("[?#;]", rest.rpartition("@")[2] or rest, maxsplit=1)
    for whole in (address, str(Path(address))):
        for form in (whole, repr(whole)[1:-1]):
            text = text.replace(form, shown)
    user, _, password = before.partition(":")
    parts = [before, str(Path(before)) if before else "", password, *query[1:]]
    for secret in sorted({p for p in parts if p and p not in (".", user)}, key=len, reverse=True):
        for form in (secret, repr(secret)[1:-1]):
            text = text.replace(form, "...")
    return text


def without_secrets(address: str) -> str:
    """A remote address as it may be shown and kept: without user, password and what follows a question mark and alike.

    Where such a mark stands before an @ nobody can tell a password from a query, and neither is shown.
    """
    scheme, _, rest = address.partition("://")
    before, _, place = rest.rpartition("@")
    if re.search("[?#;]", before):
        return f"{scheme}://..."
    return f"{scheme}://{re.split('[?#;]', place)[0]}"
