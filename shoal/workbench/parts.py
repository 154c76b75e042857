"""Parts that several steps draw."""

from __future__ import annotations

from typing import Any

from nicegui import ui


def scrolling(name: str) -> Any:
    """Around a table that may be wider than the window: it scrolls, by the keyboard, too."""
    return ui.element("div").classes("wb-scroll").props(f'tabindex=0 role=region aria-label="{name}"')
