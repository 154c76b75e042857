"""One workbench and one browser for all walks: each walk has a window of its own, as two users of a server have."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workbench.browser import Site, addresses, chromium, served


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A workbench that opens no table by itself; in the end it leaves nothing behind and has told nothing."""
    private, said = tmp_path_factory.mktemp("private"), list[str]()
    with served(folder=private, said=said) as address:
        here = Site(address, private)
        yield here
    assert list(private.iterdir()) == []
    assert not any(value in text for text in said for value in here.telling)


@pytest.fixture(scope="session")
def _browser(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    downloads = tmp_path_factory.mktemp("downloads")
    with chromium(downloads) as page:
        yield page, downloads


@pytest.fixture
def page(_browser: tuple[Any, Path], site: Site) -> Iterator[Any]:
    """A fresh window on the page, with nothing in its network log but its own; others are closed."""
    from tests.workbench.browser import see

    page, _ = _browser
    kept = page.current_window_handle
    page.get("about:blank")
    page.set_window_size(1280, 1000)
    addresses(page)
    page.get_log("browser")
    page.get(site.address)
    see(page, "No table is open yet.")
    yield page
    for other in page.window_handles:
        if other != kept:
            page.switch_to.window(other)
            page.close()
    page.switch_to.window(kept)


@pytest.fixture
def downloads(_browser: tuple[Any, Path]) -> Path:
    """Where the browser puts what it downloads."""
    return _browser[1]
