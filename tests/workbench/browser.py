"""A workbench of its own for a test, and a headless Chromium that opens it; skips, saying so, where either lacks."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

WAIT = 200  # seconds for one thing on the page
done: list[str] = []  # what was clicked and filled in, in order


class Site(NamedTuple):
    """A workbench that all walks share: its address, and where it puts what is temporary."""

    address: str
    private: Path
    telling: tuple[str, ...] = ("Zebedee", "Quixotis", "chosen")  # values of tables, and their names


@contextmanager
def served(
    *words: str, folder: Path, said: list[str] | None = None, ending: signal.Signals = signal.SIGTERM
) -> Iterator[str]:
    """The address of a workbench that runs as the command does; it is ended by a signal.

    folder  where it puts what is temporary;  said is given all that it printed, once it has ended
    """
    pytest.importorskip("nicegui", reason="nicegui is not installed: pip install 'shoal[workbench]'")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "NICEGUI"))}
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal", "workbench", "--no-browser", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder,
        env={**plain, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(folder)},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line, line
        yield line.split()[-1]
    finally:
        process.send_signal(ending)
        rest = process.communicate(timeout=WAIT)[0]
        if said is not None:
            said.append(rest)


@contextmanager
def chromium(downloads: Path | None = None, size: tuple[int, int] = (1280, 1000), *flags: str) -> Iterator[Any]:
    """A headless browser with its network log; skips where Chromium, its driver or Selenium is not installed."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no headless browser: Debian has it as chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    quiet = ("--disable-background-networking", "--disable-component-update", "--no-first-run", "--disable-sync")
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        f"--window-size={size[0]},{size[1]}",
        *quiet,
        *flags,
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    if downloads is not None:
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    from selenium.webdriver.chrome.service import Service

    page = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield page
    finally:
        page.quit()


def addresses(page: Any) -> set[str]:
    """Every address that the browser's network log says was asked for, sockets included."""
    found = set()
    for entry in page.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            found.add(message["params"]["request"]["url"])
        elif message["method"] == "Network.webSocketCreated":
            found.add(message["params"]["url"])
    return found


def see(page: Any, text: str, seconds: float = WAIT) -> None:
    """Wait until a text stands on the page."""
    asked = "return document.body.innerText.includes(arguments[0])"
    until(lambda: page.execute_script(asked, text), f"{text!r} is not on the page", seconds)


def line(page: Any, text: str) -> None:
    """Wait until the line on top has a text."""
    asked = "return document.querySelector('.wb-line').innerText.includes(arguments[0])"
    until(lambda: page.execute_script(asked, text), f"{text!r} is not in the line on top")


def until(holds: Any, words: str, seconds: float = WAIT) -> Any:
    """Wait until something holds, whatever the page does meanwhile."""
    from selenium.common.exceptions import WebDriverException

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := holds():
                return found
        except WebDriverException:
            pass
        time.sleep(0.1)
    raise AssertionError(words)


def click(page: Any, text: str, within: str = "//*") -> None:
    """Click the button, tab, option or link that shows a text and nothing else."""
    here = "contains(@class,'q-tab') or self::button or self::a or @role='option' or @role='radio' or @role='switch'"
    path = f"{within}[({here}) and normalize-space(.)={_quoted(text)}]"

    def tried() -> bool:
        for found in page.find_elements("xpath", path):
            page.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
            if found.is_displayed():
                found.click()
                done.append(text)
                return True
        return False

    until(tried, f"nothing to click that says {text!r}")


def fill(page: Any, label: str, text: str) -> None:
    """Write into the field with a label, in place of what stands there, and leave it."""
    from selenium.webdriver.common.keys import Keys

    field = until(lambda: next((e for e in _fields(page, label) if e.is_displayed()), None), f"no field {label!r}")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", field)
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(text, Keys.TAB)
    done.append(label)


def _fields(page: Any, label: str) -> list[Any]:
    named = f"//label[.//*[normalize-space(.)={_quoted(label)}]]//input | //input[@aria-label={_quoted(label)}]"
    return page.find_elements("xpath", named)


def _quoted(text: str) -> str:
    return f'"{text}"' if "'" in text else f"'{text}'"
