"""What a page does that it must not: errors in its console, uncaught exceptions, dialogs, requests to elsewhere."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page, Route

NUMBER_STOPS = """() => {
  const groups = new Set();
  const stops = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
    .filter((each) => each.checkVisibility() && !each.disabled && each.type !== "hidden")
    .filter((each) => each.type !== "radio" || !(groups.has(each.name) || !groups.add(each.name)));
  stops.forEach((each, number) => (each.dataset.stop = number));
  return stops.map((each) => each.outerHTML.slice(0, 120));
}"""
"""Numbers what can be used, in the page's order; of a group of radio buttons there is one stop."""
DESCRIBE_STOP = """() => {
  const each = document.activeElement, style = getComputedStyle(each), box = each.getBoundingClientRect();
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return {number: Number(each.dataset.stop ?? -1), shown: outlined && inside};
}"""
STRANGE_SCRIPT = """() => {
  const script = document.createElement("script");
  script.textContent = "window.strange = true";
  document.body.append(script);
  return window.strange ?? false;
}"""
NARROW, WIDE = 390, 1440


@dataclass
class Watcher:
    """Collects complaints about a page. A test that expects one takes it out of the list.

    Attributes:
        origin: The only origin that may be asked for anything.
        complaints: What was found so far.
    """

    origin: str
    complaints: list[str] = field(default_factory=list)

    def watch(self, context: BrowserContext, page: Page) -> None:
        """Watches a page from now on; what it requests from elsewhere is not sent."""
        context.route(lambda url: not self._is_own(url), self._refuse)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        page.on("dialog", self._dismiss)

    def expect(self, words: str) -> None:
        """Takes out the complaints that contain these words, of which there is one at least."""
        expected = [complaint for complaint in self.complaints if words in complaint]
        assert expected, f"no complaint has {words!r}: {self.complaints}"
        self.complaints[:] = [complaint for complaint in self.complaints if complaint not in expected]

    def _is_own(self, url: str) -> bool:
        parts = urlsplit(url)
        # What stands in a page, or in a file that a test opens, is asked of nobody.
        return f"{parts.scheme}://{parts.netloc}" == self.origin or parts.scheme in {"data", "blob", "file"}

    def _refuse(self, route: Route) -> None:
        self.complaints.append(f"request to elsewhere: {route.request.url}")
        route.abort()

    def _dismiss(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")


def barriers(page: Page) -> list[str]:
    """What axe finds in a page as it is shown once it has loaded, a line each."""
    page.wait_for_load_state()  # a click that leads elsewhere returns when that has begun
    found: dict[str, Any] = Axe().run(page).response
    return [
        f"{violation['impact']}: {violation['help']} ({violation['id']}): {node['target']} {node['failureSummary']}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


def unreached(page: Page) -> list[str]:
    """What the tabulator key does not reach in the page's order, or does not show to be reached, a line each."""
    stops: list[str] = page.evaluate(NUMBER_STOPS)
    count = len(stops)
    seen: list[int] = []
    complaints: list[str] = []
    while (len(seen) < 2 * count + 10) and (not seen or len(set(seen) - {-1}) < count):
        page.keyboard.press("Tab")
        stop = page.evaluate(DESCRIBE_STOP)
        seen.append(int(stop["number"]))
        if stop["number"] >= 0 and not stop["shown"]:
            complaints.append(f"not seen to be reached: {stops[stop['number']]}")
    reached = [number for number in seen if number >= 0]
    missing = sorted(set(range(count)) - set(reached))
    complaints += [f"not reached: {stops[number]}" for number in missing]
    if reached != sorted(reached):
        complaints.append(f"not in the page's order: {reached}")
    return complaints


def runs_strange_script(page: Page) -> bool:
    """Whether a script that stands in a page, and is not the page's own, runs."""
    return bool(page.evaluate(STRANGE_SCRIPT))


def overflow(page: Page) -> int:
    """By how many pixels a page is wider than its window; 0 where nothing sticks out."""
    root = page.locator("html")
    return int(root.evaluate("root => root.scrollWidth - root.clientWidth"))


def looks_right(page: Page) -> None:
    """Whether a page can be read, in light and dark, wide and narrow, and used by keys alone."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        for width in (NARROW, WIDE):
            page.set_viewport_size({"width": width, "height": 900})
            assert overflow(page) == 0
            assert barriers(page) == []
    page.reload()
    assert unreached(page) == []
