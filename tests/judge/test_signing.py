"""Signed certificates, and a certificate as the recipe of a release."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.errors import ExistsError, MissingDependencyError
from shoal.publishing.documents import make_key, signed
from tests.commands import run
from tests.kept import kept, write_sealed

LINES = "age,zip,d\n" + "".join(f"{20 + i % 5},{1230 + i % 3},{'xy'[i % 2]}\n" for i in range(20))
TREE = "1230;123;*\n1231;123;*\n1232;123;*\n1239;123;*\n"


def made(folder: Path, **more: object) -> tuple[Path, Path, Path]:
    source, tree = folder / "t.csv", folder / "zip.csv"
    source.write_text(LINES)
    tree.write_text(TREE)
    release = shoal.anonymize(
        source, quasi_identifiers=["age", "zip"], sensitive=["d"], k=3, l=2, publish="hierarchy",
        hierarchies={"zip": tree, "age": "intervals:2,4"}, effort="fast", seed=4, secret=b"x" * 16,
    )  # fmt: skip
    out = folder / "r.csv"
    return source, out, release.write(out, **more)  # type: ignore[arg-type]


def holds(verdict: Any, check: str) -> bool:
    return next(f.holds for f in verdict.findings if f.check == check)


def test_a_signature_covers_the_certificate(tmp_path: Path) -> None:
    private, public = make_key(tmp_path / "key")
    _, other = make_key(tmp_path / "other")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    source, out, record = made(tmp_path, sign=private)
    assert shoal.verify(out, record, source, signer=public).holds
    assert not holds(shoal.verify(out, record, signer=other), "signature")
    unsigned = next(f for f in shoal.verify(out, record).findings if f.check == "signature")
    assert unsigned.how == "stated"
    assert "forge" in unsigned.found
    facts = json.loads(record.read_text())
    for part, value in (
        ("made_at", "2020-01-01T00:00:00+00:00"),
        ("groups", 99),
        ("policy", facts["policy"] | {"effort": 5}),
    ):
        forged = facts | {part: value}
        write_sealed(record, forged)
        assert not holds(shoal.verify(out, record, signer=public), "signature")
    record.write_text(json.dumps(signed(facts | {"made_at": "2020-01-01T00:00:00+00:00"}, tmp_path / "other")))
    assert not holds(shoal.verify(out, record, signer=public), "signature")


def test_without_a_signature_a_signer_is_not_there(tmp_path: Path) -> None:
    _, public = make_key(tmp_path / "key")
    _, out, record = made(tmp_path)
    assert not shoal.verify(out, record, signer=public).holds


def test_keys_are_never_written_over_and_must_be_keys(tmp_path: Path) -> None:
    private, public = make_key(tmp_path / "key")
    with pytest.raises(ExistsError, match="already"):
        make_key(private)
    with pytest.raises(shoal.InputError, match="private key"):
        made(tmp_path, sign=public)
    assert not (tmp_path / "r.csv").exists()
    _, out, record = made(tmp_path)
    with pytest.raises(shoal.InputError, match="public key"):
        shoal.verify(out, record, signer=private)
    series = shoal.Series.start(tmp_path / "s", shoal.Policy.of(quasi_identifiers=["age"], k=2))
    with pytest.raises(shoal.InputError, match="public key"):
        series.verify(signer=private)


def test_without_the_extra_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(MissingDependencyError, match=r"shoal\[sign\]"):
        make_key(tmp_path / "key")


def test_the_commands(tmp_path: Path) -> None:
    source, _, _ = made(tmp_path)
    facts = run("keygen", tmp_path / "key", "--json").facts
    out, record = tmp_path / "s.csv", tmp_path / "s.certificate.json"
    asked = ["anonymize", source, "--quasi", "age,zip", "--k", 3, "--effort", "fast", "-o", out]
    assert run(*asked, "--sign", facts["private"], "--json").returncode == 0
    done = run("verify", out, record, "--original", source, "--signer", facts["public"], "--json")
    assert {f["how"] for f in done.facts["findings"]} == {"recomputed", "checked for consistency", "stated"}


def test_a_certificate_is_the_recipe_of_its_release(tmp_path: Path) -> None:
    source, out, record = made(tmp_path)
    again = shoal.anonymize(source, shoal.Policy.read(record), secret=b"x" * 16)
    asked = again.policy.describe()
    assert {name: asked[name] for name in asked if name != "seed"} == json.loads(record.read_text())["policy"]
    again = shoal.anonymize(source, shoal.Policy.read(kept(record)), secret=b"x" * 16)  # with the seed
    second = tmp_path / "again.csv"
    again.write(second)
    assert second.read_bytes() == out.read_bytes()
    (tmp_path / "zip.csv").write_text(TREE.replace("1239;123", "1239;999"))
    with pytest.raises(shoal.InputError, match="not the one certified"):
        shoal.Policy.read(record)
    assert not shoal.verify(out, record, source).holds
    (tmp_path / "zip.csv").unlink()
    with pytest.raises(shoal.InputError, match="neither next to"):
        shoal.Policy.read(record)
    with pytest.raises(shoal.InputError, match="neither next to"):
        shoal.verify(out, record, source)


def test_a_missing_hierarchy_is_asked_for_in_the_callers_own_words(tmp_path: Path) -> None:
    from shoal.cli.common import in_flags

    source, out, record = made(tmp_path)
    (tmp_path / "zip.csv").unlink()
    with pytest.raises(shoal.InputError) as refused:
        shoal.verify(out, record, source)
    assert str(refused.value).endswith("pass it in: hierarchies['zip']=FILE")
    assert in_flags(refused.value.sentence).endswith("pass it in: --hierarchy zip=FILE")
