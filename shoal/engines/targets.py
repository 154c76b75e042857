"""Where outputs may go: looked at in one place, for every command and every ``write``, before any work."""

from __future__ import annotations

import json
import os
import stat
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from shoal.engines.atomic import closed_to, real_path
from shoal.engines.parts import MANIFEST
from shoal.errors import ExistsError, InputError, MissingDependencyError, PolicyError


class Form(NamedTuple):
    """A kind of output, the endings it may have, and those of what is written beside it."""

    what: str
    endings: tuple[str, ...]
    sides: tuple[str, ...] = ()


TABLE = Form("table", (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".parquet", ".pq", ".xlsx"))
HIERARCHY = Form("hierarchy", (".csv", ".txt"))
JSON = Form("certificate", (".json",))
RECORD = Form("record", (".json",))
PAGE = Form("report", (".html", ".htm"), (".json",))
SHEET = Form("map", (".html", ".htm"))
POLICY = Form("policy", (".toml",))
OUTLINES = Form("file of outlines", (".geojson", ".json", ".gpkg", ".shp", ".kml"))
SIDES = {".shp": (".dbf", ".shx", ".cpg", ".prj")}  # what else a file of this ending is made of
TILES = Form("table or file of tiles", (*TABLE.endings, ".geojson", ".json"))
GEOJSON = Form("file of circles", (".geojson", ".json"))
PICTURE = Form("picture", (".png", ".svg", ".pdf"))
DRAWING = Form("picture", (".svg",))
MAP = Form("map", (".html", ".htm", ".png", ".svg", ".pdf"))

Wanted = tuple[str | Path | None, Form]


def check_outputs(wanted: Iterable[Wanted], read: Iterable[str | Path | None] = (), *, overwrite: bool = True) -> int:
    """Refuse targets that would do harm; returns the permission bits that no output may have (``closed_to``).

    wanted     (path or None, form) of everything that will be written
    read       everything that is read: tables, policies, hierarchies, crosswalks
    overwrite  whether existing files may be replaced

    A target is a regular file, or a new one in a folder that exists and can be written to; its ending is one of its
    form; it is no file that is read, by whatever name, and no other target.  Raises InputError, PolicyError, or
    MissingDependencyError for a picture that nothing here can draw.
    """
    sources = [Path(p) for p in read if p is not None]
    targets: list[tuple[Path, str]] = []  # and what each is called in a refusal
    for given, form in wanted:
        if given is None:
            continue
        path = Path(given)
        check_place(path)
        if not path.name.lower().endswith(form.endings):
            raise InputError(
                f"{path.name!r}: a {form.what} is written as {', '.join(form.endings[:-1])}"
                f"{' or ' if len(form.endings) > 1 else ''}{form.endings[-1]}; name another file"
            )
        if form in (MAP, PICTURE) and path.suffix.lower() in PICTURE.endings:
            MissingDependencyError.unless("matplotlib", "drawing a picture", "plot")
        beside = [path.with_suffix(ending) for ending in form.sides]
        for one in beside:
            check_place(one)
        for one in (path, *beside):
            named = repr(str(one)) + ("" if one is path else f", which is written beside {path.name!r},")
            if any(_one(one, source) for source in sources):
                raise InputError(
                    f"the output {named} is a file that is read; what is read is never changed, name another file"
                )
            taken = next((said for other, said in targets if _one(one, other) or _alike(one, other)), "")
            if taken:
                said = named if "beside" in named or "beside" not in taken else taken
                raise PolicyError(f"{said} is named for two outputs; name another file")
            sides = map(one.with_suffix, SIDES.get(one.suffix.lower(), ()))
            if not overwrite and any(p.exists() for p in (one, *sides)):
                raise ExistsError(f"{named} exists already; say overwrite=True to replace it, or name another file")
            targets.append((one, named))
    return closed_to(sources)


def check_folder(path: Path, read: Iterable[str | Path | None] = (), *, overwrite: bool = True) -> int:
    """Refuse a folder of parts that would do harm; returns the bits that no output may have (``closed_to``).

    It is new, or empty, or holds an earlier release and nothing else, and neither stands in what is read nor holds it.
    """
    path = Path(path)
    sources = [Path(p) for p in read if p is not None]
    real = real_path(path)
    if not real.is_dir():
        check_place(path)
    if real.is_file():
        raise InputError(f"{str(path)!r} is no folder; name a folder, or a file that ends in .csv or .parquet")
    for source in sources:
        held = real_path(source)
        if held == real or real in held.parents or (held.is_dir() and held in real.parents):
            raise InputError(
                f"the output {str(path)!r} is in a folder that is read, or holds a file that is; name another folder"
            )
    check_place(real.with_name(real.name + ".new"))
    if real.is_dir() and any(real.iterdir()):
        if not _is_release(real):
            raise InputError(f"the folder {str(path)!r} holds other things than a release; name a new folder")
        if not overwrite:
            raise ExistsError(f"{str(path)!r} exists already; say overwrite=True to replace it, or name another folder")
    return closed_to(sources)


def _is_release(folder: Path) -> bool:
    """Whether a folder holds a manifest, the parts it names, and nothing else."""
    try:
        named = {part["file"] for part in json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["parts"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    return {p.name for p in folder.iterdir()} <= named | {MANIFEST}


def _one(path: Path, other: Path) -> bool:
    """Whether two paths are one file, through links of either kind too."""
    if real_path(path) == real_path(other):
        return True
    return path.exists() and other.exists() and os.path.samefile(path, other)


def _alike(path: Path, other: Path) -> bool:
    """Whether macOS and Windows take two names of new files for one: capitals and composed letters are the same."""
    one, two = (unicodedata.normalize("NFC", str(real_path(p))).casefold() for p in (path, other))
    return one == two


def check_place(path: Path) -> None:
    """InputError unless a file may stand there: no device, pipe, socket or folder, in a folder that can be written."""
    path = Path(path)
    real = real_path(path)
    try:
        mode = real.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be looked at ({os.strerror(error.errno or 5)}); name a file") from None
    kinds = {stat.S_IFDIR: "folder", stat.S_IFCHR: "device", stat.S_IFBLK: "device", stat.S_IFIFO: "pipe"}
    if not stat.S_ISREG(mode):
        raise InputError(f"{str(path)!r} is a {kinds.get(stat.S_IFMT(mode), 'socket')}; name a file to write")
    named = real if path.is_symlink() else path  # a link is followed
    if not real.parent.is_dir():
        raise InputError(f"there is no folder {str(named.parent)!r} to write {path.name!r} into; make it first")
    if not os.access(real.parent, os.W_OK):
        raise InputError(f"the folder {str(named.parent)!r} cannot be written to")


def named_after(table: Path) -> str:
    """What outputs that were given no name are called after: visits.csv -> visits, visits.xlsx -> visits.xlsx.

    Only .csv goes, so that no two tables of one folder share a policy, a certificate or a record.
    """
    name = table.name or table.resolve().name
    return name[: -len(".csv")] if name.lower().endswith(".csv") and len(name) > len(".csv") else name


def certificate_path(path: Path) -> Path:
    """release.csv -> release.certificate.json, beside it."""
    path = path if path.name else path.resolve()
    name = path.name
    for ending in (".csv.gz", ".tsv.gz", path.suffix):
        if ending and name.lower().endswith(ending):
            name = name[: -len(ending)]
            break
    return path.with_name(f"{name}.certificate.json")


def record_path(certificate: Path) -> Path:
    """release.certificate.json -> release.record.json, the private record beside a certificate."""
    name = certificate.name.removesuffix(".json").removesuffix(".certificate")
    return certificate.with_name(f"{name}.record.json")


def internal_path(page: Path) -> Path:
    """report.html -> report.internal.html: a page that must not be published says so in its name."""
    if page.stem.lower().endswith(".internal"):
        return page
    return page.with_name(f"{page.stem}.internal{page.suffix}")


def certificate_of(release: str | Path, named: str | Path | None) -> Path:
    """The certificate that was named, else the one beside a release; InputError where none lies there."""
    if named is not None:
        return Path(named)
    beside = certificate_path(Path(release))
    if not beside.is_file():
        if not Path(release).exists():
            raise InputError(f"there is no file {str(release)!r} to read; give its whole path, or change folder")
        raise InputError(f"there is no certificate {beside.name!r} beside the release; name the one that belongs to it")
    return beside
