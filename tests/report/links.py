"""Links of a page: whoever holds the file alone must not meet one that leads nowhere."""

import re


def dead_links(page: str) -> list[str]:
    """Addresses of links that lead out of the page, or to a place that it does not have."""
    places = {f"#{name}" for name in re.findall(r' id="([^"]*)"', page)}
    return [address for address in re.findall(r'href="([^"]*)"', page) if address not in places]
