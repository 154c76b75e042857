"""The whole way in a real browser: with the mouse, by the keyboard alone, and with what goes wrong on it."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from tests.data import drawn
from tests.workbench.browser import Site, addresses, click, done, fill, line, see, until

pytest.importorskip("nicegui", reason="nicegui is not installed: pip install 'shoal[workbench]'")
pytest.importorskip("selenium", reason="selenium is not installed")

TELLING = ("Zebedee", "Quixotis")  # values of the table that stand nowhere but in its cells


def sample(folder: Path, every: int) -> tuple[Path, int]:
    """A table with names that would show anywhere, and its rows."""
    held = drawn(
        3000, 3, age=(17, 91), sex=["Male", "Female"], education=[f"grade {i}" for i in range(16)],
        **{"salary-class": {"<=50K": 0.75, ">50K": 0.25}},
    )  # fmt: skip
    held = held.gather_every(every).with_row_index("name")
    place = folder / "chosen.csv"
    held.with_columns(name=pl.format(f"{TELLING[0]}{{}} {TELLING[1]}", "name")).write_csv(place)
    return place, held.height


def quiet(page: Any, address: str) -> None:
    """Nothing but this server was asked, no value stands in an address or title, and the browser has no complaint."""
    here = address.split("//")[1].split("/")[0]
    asked = addresses(page)
    assert len(asked) > 5
    for one in asked:
        assert one.startswith((f"http://{here}/", f"ws://{here}/", "data:", "blob:")), one
        assert not any(value in one for value in TELLING), one
    assert "token" not in page.current_url
    assert page.title == "shoal workbench"
    complaints = [e["message"] for e in page.get_log("browser") if e["level"] == "SEVERE"]
    assert complaints == []


def test_from_choosing_a_file_to_a_verified_release(site: Site, page: Any, tmp_path: Path):
    (table, rows), out = sample(tmp_path, 10), tmp_path / "out"
    chooser = page.find_element("css selector", "input[type=file]")
    for name, held in (("torn.xlsx", b"no zip"), ("empty.csv", b"")):  # a wrong file leaves room for the next
        (tmp_path / name).write_bytes(held)
        chooser.send_keys(str(tmp_path / name))
        until(lambda name=name: name in page.find_element("css selector", ".q-notification").text, "nothing was said")
        if name == "torn.xlsx":
            click(page, "Close")
    done.clear()
    chooser.send_keys(str(table))
    done.append("the file")
    see(page, f"chosen.csv: {rows:,} rows, 5 columns")
    until(lambda: not page.find_elements("css selector", ".q-notification"), "the refusal stays beside the success")
    see(page, "Zebedee0")
    assert list(site.private.rglob("chosen.csv")) != []

    click(page, "2 Roles")
    see(page, "quasi-identifiers together")
    click(page, "Insensitive", "//*[@role='group' and @aria-label='sex']//*")
    line(page, "age and education")

    click(page, "3 Models")
    fill(page, "k", "7")
    line(page, "at least 7 rows")
    page.execute_script("window.scrollTo(0, document.body.scrollHeight)")
    box = page.find_element("css selector", ".wb-line").rect
    assert page.execute_script("return window.scrollY") > 0
    assert box["y"] - page.execute_script("return window.scrollY") >= 0  # still in sight

    click(page, "6 Release")
    fill(page, "Folder to keep it in (empty: download the files below)", str(out))
    click(page, "Make the release")
    see(page, "Verified: it was read back, judged again and holds.")
    assert len(done) == 8, done  # the guide says so
    quiet(page, site.address)
    page.switch_to.new_window("tab")  # a window of its own, without the first one's table
    page.get(site.address)
    see(page, "No table is open yet.")
    assert "chosen.csv" not in page.find_element("tag name", "body").text
    release, certificate = out / "chosen.release.csv", out / "chosen.release.certificate.json"
    assert shoal.verify(release, certificate).holds
    made = shoal.audit(release, quasi_identifiers=["age", "education"], sensitive=["salary-class"])
    assert made.k >= 7
    assert "name" not in pl.read_csv(release, infer_schema=False).columns


def test_a_value_is_dragged_into_another_class(site: Site, page: Any, tmp_path: Path):
    table = tmp_path / "chosen.csv"
    pl.DataFrame({"zip": [f"0123{i % 6}" for i in range(60)], "ill": ["flu", "gout"] * 30}).write_csv(table)
    fill(page, "Path of a table, or of a project's folder", str(table))
    click(page, "Open")
    see(page, "chosen.csv: 60 rows")
    click(page, "4 Hierarchies")
    click(page, "Show the tree")
    until(lambda: _classes(page), "no tree")
    held = _classes(page)
    assert len(held) > 1, held
    boxes = (
        "[document.querySelector('[role=treeitem] [role=checkbox]'), document.querySelectorAll('[role=treeitem]')[1]]"
    )
    script = f"return {boxes}.map(e => (b => [b.x + b.width / 2, b.y + b.height / 2])(e.getBoundingClientRect()))"
    page.execute_script("document.querySelector('[role=tree]').scrollIntoView({block: 'center'})")
    (x, y), (to_x, to_y) = page.execute_script(script)

    def mouse(kind: str, share: float) -> None:
        there = {"x": x + (to_x - x) * share, "y": y + (to_y - y) * share}
        page.execute_cdp_cmd(
            "Input.dispatchMouseEvent", {"type": kind, "button": "left", "buttons": 1, "clickCount": 1, **there}
        )

    mouse("mousePressed", 0)
    for step in range(1, 11):
        mouse("mouseMoved", step / 10)
    mouse("mouseReleased", 1)
    moved = [held[0][1:], [*held[0][:1], *held[1]], *held[2:]]
    until(lambda: sorted(map(sorted, _classes(page))) == sorted(sorted(c) for c in moved if c), "not moved")
    click(page, "Undo this edit")
    until(lambda: _classes(page) == held, "not taken back")
    quiet(page, site.address)


def _classes(page: Any) -> list[list[str]]:
    """The members of every class that is shown."""
    return page.execute_script(
        "return [...document.querySelectorAll('[role=treeitem]')].map(e => [...e.querySelectorAll('[role=checkbox]')]"
        ".map(b => b.innerText.trim()))"
    )


class Keyboard:
    """A user without a mouse: Tab moves, Enter and Space press, letters write."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.page).send_keys(*keys).perform()

    def name(self) -> str:
        """What the element with the focus is called."""
        return self.page.execute_script(
            "const e = document.activeElement; const l = e.closest('label');"
            "return (e.getAttribute('aria-label') || e.innerText || (l && l.innerText) || '').trim()"
        )

    def to(self, name: str, most: int = 200) -> None:
        """Tab until the focus is on what has a name."""
        from selenium.webdriver.common.keys import Keys

        passed = []
        for _ in range(most):
            if self.name() == name:
                return
            passed.append(self.name())
            self.press(Keys.TAB)
        raise AssertionError(f"no Tab leads to {name!r}: {passed[-60:]}")


def test_the_whole_way_by_the_keyboard_alone_in_a_narrow_dark_window(
    site: Site, page: Any, downloads: Path, tmp_path: Path
):
    from selenium.webdriver.common.keys import Keys

    page.set_window_size(390, 844)
    keys = Keyboard(page)
    keys.to("Light or dark")
    keys.press(Keys.ENTER)
    until(lambda: page.find_elements("css selector", "body.body--dark"), "it stays light")
    keys.to("Path of a table, or of a project's folder")
    table, rows = sample(tmp_path, 30)
    keys.press(str(table), Keys.ENTER)
    see(page, f"chosen.csv: {rows:,} rows, 5 columns")
    narrow(page)
    keys.to("Next: roles")
    keys.press(Keys.ENTER)
    see(page, "quasi-identifiers together")
    narrow(page)
    keys.to("Next: models")
    keys.press(Keys.ENTER)
    see(page, "What are you worried about?")
    narrow(page)
    keys.to("k")
    keys.press(Keys.ARROW_UP, Keys.TAB)
    line(page, "at least 6 rows")

    keys.to("3 Models")
    keys.press(Keys.ARROW_RIGHT, Keys.ENTER)
    see(page, "How may values be generalized?")
    keys.to("Show the tree")
    keys.press(Keys.ENTER)
    see(page, "of the rows")
    narrow(page)
    first = page.find_element("css selector", "[role=treeitem] [role=checkbox]").text.strip()
    keys.to(first)
    keys.press(Keys.SPACE)
    keys.to("Class for the marked values, also a new one")
    keys.press("apart", Keys.TAB)
    keys.to("Move")
    keys.press(Keys.ENTER)
    until(lambda: _value(page, "apart"), "the class was not made")
    keys.to("Use this hierarchy")
    keys.press(Keys.ENTER)
    line(page, "classes")

    keys.to("4 Hierarchies")
    keys.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
    keys.to("Make the release")
    style = page.execute_script(
        "const e = document.activeElement;"
        "return [getComputedStyle(e).boxShadow, getComputedStyle(e.querySelector('.q-focus-helper')).opacity]"
    )
    assert style == ["rgb(201, 106, 0) 0px 0px 0px 3px", "0"], "the focus is not seen, or makes the letters pale"
    keys.press(Keys.ENTER)
    see(page, "Verified: it was read back")
    narrow(page)
    for link, name in (("Release", "chosen.release.csv"), ("Certificate", "chosen.release.certificate.json")):
        keys.to(link)
        keys.press(Keys.ENTER)
        until(lambda name=name: (downloads / name).exists(), f"{name} did not come")
    quiet(page, site.address)
    assert shoal.verify(downloads / "chosen.release.csv", downloads / "chosen.release.certificate.json").holds


def narrow(page: Any) -> None:
    """Nothing lies beside the window."""
    wide = page.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0, f"{wide} pixels wider than the window"
    beside = page.execute_script(
        "return [...document.querySelectorAll('button, input, a')].filter(e => !e.closest('.q-tabs, .wb-scroll'))"
        ".filter(e => e.getBoundingClientRect().right > window.innerWidth + 1).map(e => e.ariaLabel || e.innerText)"
    )
    assert not beside, f"{beside} reach beyond the window"
    assert len(page.find_elements("tag name", "main")) == 1, "a page has one main part"
    nameless = page.find_elements("css selector", "[role=progressbar]:not([aria-label])")
    assert not nameless, f"{len(nameless)} bars have no name"


def _value(page: Any, text: str) -> bool:
    return any(e.get_attribute("value") == text for e in page.find_elements("css selector", "[role=treeitem] input"))
