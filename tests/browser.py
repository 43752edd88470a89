"""A headless browser, driven over its DevTools protocol: pages as a person sees them, without a person."""

from __future__ import annotations

import base64
import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
REQUIRED = "REQUIRE_BROWSER"
"""Set where a test that is skipped for want of a browser must fail."""


def program() -> str:
    """The browser, or the end of the test."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        _missing("no browser was found: install chromium")
    if importlib.util.find_spec("websocket") is None:
        _missing("websocket-client, which speaks with the browser, is not installed")
    return str(found)


def _missing(why: str) -> NoReturn:
    if os.environ.get(REQUIRED):
        pytest.fail(why)
    pytest.skip(why)


class Browser:
    """One page. What goes wrong in it is kept in `errors`."""

    def __init__(self, address: str) -> None:
        import websocket

        self._socket = websocket.create_connection(address, timeout=30, suppress_origin=True)
        self._numbers = itertools.count(1)
        self.errors: list[str] = []
        self._loaded = False
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.exceptionThrown":
                detail = params["exceptionDetails"]
                self.errors.append(detail.get("exception", {}).get("description") or detail["text"])
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.errors.append(" ".join(str(arg.get("value", arg)) for arg in params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.errors.append(params["entry"]["text"])
            case "Network.requestWillBeSent" if not params["request"]["url"].startswith(("file:", "data:", "about:")):
                self.errors.append(f"asked for {params['request']['url']}")

    def open(self, path: Path) -> None:
        self._loaded = False
        self.call("Page.navigate", url=path.absolute().as_uri())
        while not self._loaded:
            self._note(json.loads(self._socket.recv()))
        self.frames()

    def size(self, width: int, height: int, *, dark: bool = False, phone: bool = False, scale: float = 1) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def eval(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def frames(self, count: int = 2) -> None:
        """Wait until so much has been drawn."""
        for _ in range(count):
            self.eval("new Promise((done) => requestAnimationFrame(() => done(true)))")

    def key(self, key: str) -> None:
        # What a key types it types only if the event says so.
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.frames()

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
        self.frames()

    def drag(self, x: float, y: float, across: float) -> None:
        held = {"button": "left", "buttons": 1, "clickCount": 1}
        self.mouse("mousePressed", x, y, **held)
        self.mouse("mouseMoved", x + across, y, **held)
        self.mouse("mouseReleased", x + across, y, **held)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def paper(self, path: Path) -> None:
        data = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self._socket.close()


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with an empty page, ended with the block."""
    found = program()
    with tempfile.TemporaryDirectory(prefix="penstock-browser-", ignore_cleanup_errors=True) as profile:
        options = [
            "--headless=new", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--disable-extensions",
            "--disable-background-networking", "--remote-debugging-port=0", f"--user-data-dir={profile}",
        ]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            options.append("--no-sandbox")  # it refuses to run as root with one
        quiet = subprocess.DEVNULL
        process = subprocess.Popen([found, *options, "about:blank"], stdout=quiet, stderr=quiet)
        page = None
        try:
            page = Browser(_address(Path(profile), process))
            yield page
        finally:
            if page is not None:
                page.close()
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(profile: Path, process: subprocess.Popen[bytes]) -> str:
    """Where the page listens; the browser writes its port when it is ready."""
    from urllib.request import urlopen

    until = time.monotonic() + 30
    while time.monotonic() < until:
        assert process.poll() is None, "the browser ended at once"
        port = profile / "DevToolsActivePort"
        if port.exists() and "\n" in port.read_text():
            with urlopen(f"http://127.0.0.1:{port.read_text().splitlines()[0]}/json/list", timeout=10) as answer:
                pages = [each for each in json.load(answer) if each["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
        time.sleep(0.05)
    raise AssertionError("the browser did not start")
