"""A real headless Chromium, driven over its own protocol: no driver of another project stands between."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from devkit import debian

CHROMIUM = (
    debian.Package("chromium", "chromium"),
    debian.Package("fonts-dejavu-core", "/usr/share/fonts/truetype/dejavu"),
)


class Page:
    """One tab. ``told`` has every event: console messages, exceptions, requests."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._next = 0
        self.told: list[dict[str, Any]] = []
        self.reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            document = json.loads(message.data)
            if (number := document.get("id")) in self._answers:
                self._answers.pop(number).set_result(document)
            else:
                self.told.append(document)

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._next += 1
        answer = self._answers[self._next] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._next, "method": method, "params": params})
        document = await asyncio.wait_for(answer, 30)
        assert "error" not in document, f"{method}: {document['error']}"
        return document["result"]  # type: ignore[no-any-return]

    async def evaluate(self, script: str) -> Any:
        """Return the value of an expression."""
        result = await self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    async def open(self, path: Path) -> None:
        """Go to a file and wait until its script has filled the list."""
        await self.send("Page.navigate", url=path.as_uri())
        until = time.monotonic() + 60
        while not await self.evaluate("document.querySelector('#count')?.textContent"):
            assert time.monotonic() < until, self.troubles()
            await asyncio.sleep(0.02)
        # What is typed before a page's first frame is dropped.
        await self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")

    async def appearing(self, selector: str) -> str:
        """Return the text of the first such node once there is one: a page acts on its events a little later."""
        until = time.monotonic() + 60
        while (text := await self.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent")) is None:
            assert time.monotonic() < until, f"nothing is {selector}: {self.troubles()}"
            await asyncio.sleep(0.02)
        return str(text)

    async def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            await self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more)

    async def theme(self, name: str) -> None:
        """Prefer a colour scheme: light or dark."""
        await self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def troubles(self) -> list[dict[str, Any]]:
        """Return what the console or the policy complained of."""
        complaints = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [event for event in self.told if event.get("method") in complaints]

    def requests(self) -> list[str]:
        """Return the address of everything that was asked for."""
        sent = [event for event in self.told if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]


@asynccontextmanager
async def browsing(folder: Path) -> AsyncIterator[Page]:
    """Start a browser of one's own and yield its tab."""
    debian.require(CHROMIUM)
    words = [
        shutil.which("chromium") or "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
        "--remote-debugging-port=0", f"--user-data-dir={folder / 'profile'}", "--window-size=1280,1000", "about:blank",
    ]  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *words, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        port = await _port(folder / "profile" / "DevToolsActivePort", process)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                tabs = await answer.json(content_type=None)
            address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
            async with session.ws_connect(address, max_msg_size=0) as socket:
                page = Page(socket)
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await page.send(f"{domain}.enable")
                yield page
                page.reader.cancel()
    finally:
        process.terminate()
        await process.wait()


async def _port(file: Path, process: asyncio.subprocess.Process) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.returncode is None, f"chromium ended with {process.returncode}"
        if file.exists() and (lines := file.read_text().splitlines()):
            return lines[0]
        await asyncio.sleep(0.05)
    raise AssertionError("chromium did not start within 60 s")
