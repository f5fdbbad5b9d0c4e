"""Drives a headless Chromium by its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome") or ""
_TOOLS = """
const shown = (kind, text) => [...document.querySelectorAll(kind)]
  .filter(one => one.innerText.trim().replace(/\\s+/g, ' ') === text && one.getClientRects().length);
const around = (label, kind) => {
  let one = label && label.parentElement;
  while (one && !one.querySelector(kind)) one = one.parentElement;
  return one; };
const middle = one => {
  if (!one) return null;
  one.scrollIntoView({block: 'center'});
  const box = one.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2]; };
"""
"""Functions with which the scripts below find page positions."""
_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu-sandbox", "--use-angle=swiftshader", "--hide-scrollbars"),
    *("--enable-unsafe-swiftshader", "--no-first-run", "--remote-debugging-port=0", "--mute-audio"),
    "--disable-gpu-compositing",  # as on a computer without a GPU, where the CPU composes pages
)


class Browser:
    """One page.

    Args:
        folder: Folder of its profile.
        size: Width and height [px].
    """

    def __init__(self, folder: Path, *, size: tuple[int, int] = (1280, 800)) -> None:
        profile = folder / "profile"
        words = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}", "about:blank"]
        self._process = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"HOME": str(folder)}
        )
        port = _soon(lambda: (profile / "DevToolsActivePort").read_text().splitlines()[0], within=300)
        pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
        page = next(page for page in pages if page["type"] == "page")
        self._stack = ExitStack()
        self._socket = self._stack.enter_context(connect(page["webSocketDebuggerUrl"], max_size=2**28))
        self._count = 0
        self.errors: list[str] = []
        self.send("Runtime.enable")
        self.send("Page.enable")
        width, height = size
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def send(self, method: str, **parameters: Any) -> Any:
        """Send a command of the protocol; return its result."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=300))
            if answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(str(answer["params"]["exceptionDetails"].get("exception", {}).get("description")))
            if answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def open(self, address: str) -> None:
        """Go to a page."""
        self.send("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def find(self, place: str) -> Any:
        """Return a position found with the tools above."""
        return self.run(f"(() => {{ {_TOOLS} return {place}; }})()")

    def text(self) -> str:
        """Return all visible text."""
        return re.sub(r"[^\S\n]+", " ", self.run("document.body ? document.body.innerText : ''"))

    def wait_for(self, text: str, *, within: float = 300.0) -> None:
        """Wait until a text is visible."""
        _soon(lambda: text in self.text() or None, within=within, what=lambda: f"'{text}' in:\n{self.text()[:3000]}")

    def click(self, text: str, *, kind: str = "button, [role=tab], [role=option]", last: bool = False) -> None:
        """Click the element with a text."""
        nth = f"shown({json.dumps(kind)}, {json.dumps(text)}).at({-1 if last else 0})"
        script = f"(one => {{ if (!one) return null; one.click(); return true; }})({nth})"
        _soon(lambda: self.find(script), within=300, what=lambda: f"button '{text}' in:\n{self.text()[:3000]}")

    def tab(self, title: str) -> None:
        """Show a tab, by mouse, with retries, because a newly opened page may not react yet."""
        tab = f"shown('[role=tab]', {json.dumps(title)})[0]"

        def press() -> bool | None:
            if (place := self.find(f"middle({tab})")) is None:
                return None
            self.press(*place)
            self.release(*place)
            time.sleep(0.2)
            return self.find(f"{tab}.getAttribute('aria-selected') === 'true' || null")

        _soon(press, within=300, what=lambda: f"tab '{title}' in:\n{self.text()[:3000]}")

    def drag(self, start: tuple[float, float], stop: tuple[float, float], *, steps: int = 8) -> None:
        """Drag with the mouse from one position to another [px]."""
        self._mouse("mouseMoved", *start)
        time.sleep(0.3)
        self.press(*start)
        for step in range(1, steps + 1):
            self.hold(*(a + (b - a) * step / steps for a, b in zip(start, stop, strict=True)))
            time.sleep(0.05)
        self.release(*stop)

    def press(self, x: float, y: float) -> None:
        """Push the mouse button down at a position [px]."""
        self._mouse("mousePressed", x, y, button="left", clickCount=1, buttons=1)

    def hold(self, x: float, y: float) -> None:
        """Move to a position with the button down [px]."""
        self._mouse("mouseMoved", x, y, button="left", buttons=1)

    def release(self, x: float, y: float) -> None:
        """Release the button at a position [px]."""
        self._mouse("mouseReleased", x, y, button="left", clickCount=1)

    def _mouse(self, kind: str, x: float, y: float, **options: Any) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **options)

    def enter(self, label: str, *, nth: int = 0) -> None:
        """Focus a field, given by its label and its number among fields with that label."""
        kind = "'input:not([type=hidden]), textarea'"
        field = f"around(shown('label', {json.dumps(label)})[0], {kind})?.querySelectorAll({kind})[{nth}]"
        script = f"(one => {{ if (!one) return null; one.focus(); one.click(); one.select(); return true; }})({field})"
        _soon(lambda: self.find(script), within=300, what=lambda: f"field '{label}' in:\n{self.text()[:3000]}")

    def fill(self, label: str, text: str, *, nth: int = 0) -> None:
        """Replace the text of a field by typing."""
        self.enter(label, nth=nth)
        self.send("Input.insertText", text=text)
        self.run("new Promise(done => setTimeout(done, 500))")  # the page collects keystrokes before it sends them

    def choose(self, label: str, option: str) -> None:
        """Select an option of a drop-down."""
        self.enter(label)
        words = json.dumps(option)
        place_of = f"shown('[role=option]', {words}).slice(0, 1).map(one => one.click()).length || null"
        _soon(lambda: self.find(place_of), within=300, what=lambda: f"option '{option}' in:\n{self.text()[:3000]}")

    def unfold(self, title: str) -> None:
        """Open a folder, or close it."""
        self.click(title, kind="div, p, span", last=True)
        time.sleep(0.5)

    def dismiss(self) -> None:
        """Close the page's notice about software rendering."""
        self.run("document.querySelectorAll('.mantine-Notification-closeButton').forEach(e => e.click())")
        time.sleep(0.5)

    def settle(self, text: str, *, gone: bool = False, within: float = 300.0) -> None:
        """Wait until a text has been present or absent for some time."""
        time.sleep(1.0)
        _soon(lambda: (text in self.text()) != gone or None, within=within, what=self.text)
        time.sleep(2.0)

    def picture(self, path: Path) -> None:
        """Save a screenshot once nothing moves any more."""
        path.parent.mkdir(parents=True, exist_ok=True)
        before, seen = "", self._seen()
        for _ in range(10):
            if before == seen:
                break
            time.sleep(2.0)
            before, seen = seen, self._seen()
        path.write_bytes(base64.b64decode(seen))

    def _seen(self) -> str:
        return self.send("Page.captureScreenshot", format="png")["data"]

    def close(self) -> None:
        """Close the browser."""
        self._stack.close()
        self._process.terminate()
        self._process.wait(300)


def _soon(ask: Callable[[], Any], *, within: float, what: Callable[[], str] = lambda: "") -> Any:
    deadline = time.monotonic() + within
    while True:
        try:
            found = ask()
        except OSError:
            found = None
        if found is not None:
            return found
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)
