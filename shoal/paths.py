"""Properties of a path that follow from its name: the kind of file or server, and the names of files written next to
it.

All code that reads endings is in this module. Endings may be in lower or upper case. No file is opened. Addresses of
servers are shown without user, password, and query.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

from shoal.errors import InputError, PolicyError

PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xls", ".xlsb")
STATISTICS = (".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")  # of SPSS, Stata, and SAS
SPSS, STATA = (".sav", ".zsav"), (".dta",)  # the formats that shoal writes
TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
GEOJSON = (".geojson", ".json")
_DRAWN_AS_TEXT = (*GEOJSON, ".topojson")
_DRAWN_FOR_GDAL = (".gpkg", ".shp", ".fgb", ".gml", ".kml", ".geoparquet", ".zip")
_MAPS = (".geojson", ".topojson", ".gpkg", ".shp", ".fgb", ".gml", ".kml")
_WEB = (".html", ".htm")
PICTURES = (".png", ".svg", ".pdf")
OUTLINES = (*GEOJSON, ".gpkg", ".shp", ".kml")  # the formats that shoal writes
_SIDES = {".shp": (".dbf", ".shx", ".cpg", ".prj")}  # further files that a file with this ending consists of

Kind = Literal["csv", "parquet", "excel", "statistics"]


def ending(path: str | Path) -> str:
    """The ending of a name in lower case with its dot, such as ".csv"; "" if there is none."""
    return Path(path).suffix.lower()


def ends(path: str | Path, endings: tuple[str, ...]) -> bool:
    """Whether a name ends in one of several endings. An ending may have two parts, such as ".csv.gz"."""
    return Path(path).name.lower().endswith(endings)


def kind_of(path: str | Path) -> Kind:
    """The format of a table. Every file that is not Parquet, Excel, or of a statistics program is read as CSV."""
    if ends(path, PARQUET):
        return "parquet"
    if ends(path, STATISTICS):
        return "statistics"
    return "excel" if ends(path, EXCEL) else "csv"


def is_sheet(path: str | Path) -> bool:
    """Whether the format is a file of typed cells that is read and written as a whole: Excel, or a statistics
    program's."""
    return kind_of(path) in ("excel", "statistics")


def is_packed(path: str | Path) -> bool:
    """Whether a file is compressed with gzip."""
    return ends(path, (".gz",))


def is_table_name(path: Path) -> bool:
    """Whether a name is that of a single table, not of a folder."""
    return ends(path, (*PARQUET, *EXCEL, *STATISTICS, *TEXT))


def is_part_name(name: str) -> bool:
    """Whether a name is that of one file of a partitioned table: Parquet or CSV."""
    return ends(name, (*PARQUET, *TEXT))


def usual_separator(path: str | Path) -> str:
    """The field separator of a new file: a tab for .tsv, otherwise a comma."""
    return "\t" if ends(path, (".tsv", ".tsv.gz")) else ","


def is_map(path: object, packed: bool = False) -> bool:
    """Whether a value is the path of a file of geometries, or with ``packed`` of one compressed with gzip.

    A plain .json doesn't count, because it may be the certificate of a table.
    """
    more = ".gz" if packed else ""
    return isinstance(path, (str, Path)) and ends(path, tuple(f"{end}{more}" for end in _MAPS))


def has_tables(path: object) -> bool:
    """Whether a value is the path of a file that may hold several tables: layers of a map, or sheets of Excel."""
    return is_map(path) or (isinstance(path, (str, Path)) and ends(path, EXCEL))


def is_drawing(path: str | Path) -> bool:
    """Whether a file that may be a table or polygons holds polygons."""
    return ending(path) in (*_DRAWN_AS_TEXT, *_DRAWN_FOR_GDAL)


def has_layers(path: str | Path) -> bool:
    """Whether a file of geometries is read through GDAL, which supports layers, and not as text."""
    return ending(path) not in _DRAWN_AS_TEXT


def is_picture(path: str | Path) -> bool:
    """Whether a file is a picture."""
    return ending(path) in PICTURES


def is_page(path: str | Path) -> bool:
    """Whether a file is a web page."""
    return ending(path) in _WEB


def is_json(path: str | Path) -> bool:
    """Whether a file holds JSON: a certificate, a record, or the figures of a page."""
    return ending(path) == ".json"


def is_arx(path: str | Path) -> bool:
    """Whether a file is a project of ARX."""
    return ending(path) == ".deid"


def sides_of(path: Path) -> list[Path]:
    """The files that belong to a file and are in the same folder, such as the .dbf of a shapefile."""
    return [path.with_suffix(end) for end in _SIDES.get(ending(path), ())]


class Form(NamedTuple):
    """A kind of output: its endings, and the endings of the files written next to it."""

    what: str
    endings: tuple[str, ...]
    sides: tuple[str, ...] = ()

    def next_to(self, path: Path) -> list[Path]:
        """The paths of the files that are written next to an output of this kind."""
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
    """The default stem of outputs: visits.csv -> visits, visits.xlsx -> visits.xlsx.

    Only .csv is removed, so that two tables of one folder never share a policy, a certificate, or a record.
    """
    name = table.name or table.resolve().name
    return name[: -len(".csv")] if ends(name, (".csv",)) and len(name) > len(".csv") else name


def release_name(table: Path) -> str:
    """The default name of a release: people.csv -> people.release.csv; people.xlsx -> people.xlsx.release.xlsx."""
    packed = ".gz" if is_packed(table) else ""
    end = ending(table.stem if packed else table)
    known = {".xls": ".xlsx", ".xlsb": ".xlsx"} | {e: e for e in (".xlsx", *PARQUET, *SPSS, *STATA, ".tsv", ".txt")}
    return f"{named_after(table)}.release{known.get(end, '.csv')}{packed}"


def certificate_path(path: Path) -> Path:
    """The certificate's path, next to the release: release.csv -> release.certificate.json.

    If this belonged to another release when the certificate was written, it has the whole name (``apart_path``).
    """
    path = path if path.name else path.resolve()
    if (apart := apart_path(path)).is_file():
        return apart
    end = next((end for end in (".csv.gz", ".tsv.gz") if ends(path, (end,))), path.suffix)
    return path.with_name(f"{path.name[: len(path.name) - len(end)]}.certificate.json")


def apart_path(path: Path) -> Path:
    """The certificate's path if another release has that one: release.csv -> release.csv.certificate.json."""
    return path.with_name(f"{path.name}.certificate.json")


def record_path(certificate: Path) -> Path:
    """The private record's path, next to the certificate: release.certificate.json -> release.record.json."""
    return certificate.with_name(f"{certified_name(certificate)}.record.json")


def certified_name(certificate: Path) -> str:
    """The stem of the release: release.certificate.json -> release."""
    return certificate.name.removesuffix(".json").removesuffix(".certificate")


def internal_path(page: Path) -> Path:
    """The name of a page that must not be published: report.html -> report.internal.html."""
    if page.stem.lower().endswith(".internal"):
        return page
    return page.with_name(f"{page.stem}.internal{page.suffix}")


def is_private(path: Path) -> bool:
    """Whether the name marks a file that must not be published, such as NAME.record.json or NAME.internal.html."""
    return ".internal." in path.name or path.name.endswith((".record.json", ".policy.toml"))


def level_file(path: Path, level: int) -> Path:
    """The file for the map of a level of regions: the path itself for the finest level, otherwise
    ``map.level2.html``."""
    return path if level == 0 else path.with_name(f"{path.stem}.level{level + 1}{path.suffix}")


def certificate_of(release: str | Path, named: str | Path | None, *, there: bool = False) -> Path:
    """The given certificate, otherwise the one next to the release; InputError if there is none.

    there  whether the release exists, although its path may not, such as a table in a catalog
    """
    if named is not None:
        if not isinstance(named, (str, Path)):
            raise PolicyError(
                f"the certificate is one {type(named).__name__}; give the path of its file, and the original after it: "
                "verify(RELEASE, CERTIFICATE, ORIGINAL)"
            )
        return Path(named)
    beside = certificate_path(Path(release))
    if not beside.is_file():
        if not there and not Path(release).exists():
            raise InputError(f"there is no file {str(release)!r} to read; give its whole path, or change folder")
        raise InputError(f"there is no certificate {beside.name!r} next to the release; name the right one")
    return beside


def is_remote(path: Any) -> bool:
    """Whether a path is an address with a scheme that only Spark reads, such as s3a://bucket/table."""
    return isinstance(path, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) is not None


SERVERS = ("postgres", "postgresql", "mysql", "mariadb", "mssql", "oracle", "snowflake", "bigquery", "trino")


def is_server(path: Any) -> bool:
    """Whether a path is the address of a database server."""
    return is_remote(path) and scheme_of(path) in SERVERS


def scheme_of(address: str) -> str:
    """The kind of server in an address, without the driver."""
    return address.partition("://")[0].partition("+")[0].lower()


def hides_password(address: str) -> bool:
    """Whether the address of a server contains a password, before its host or in its query."""
    rest = address.partition("://")[2]
    before, _, place = rest.rpartition("@")
    return re.search("[:?#;]", before) is not None or re.search(r"(?i)[?&](password|passwd|pwd)=", place) is not None


def hidden_in(text: str, address: str) -> str:
    """A text in which user, password, and query of an address are replaced by dots, in every form.

    This includes the forms that arise if the address is treated as a path (where two slashes become one), or is split
    into a folder and a name.
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
    """A remote address without user, password, and everything from a question mark or similar on.

    If such a mark precedes an @, a password can't be distinguished from a query. Then only the scheme is shown.
    """
    scheme, _, rest = address.partition("://")
    before, _, place = rest.rpartition("@")
    if re.search("[?#;]", before):
        return f"{scheme}://..."
    return f"{scheme}://{re.split('[?#;]', place)[0]}"
