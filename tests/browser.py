"""A real browser for tests: headless Chromium, asked over the pipe of its DevTools protocol, which needs no package.

Messages are JSON, each ended by a zero byte, to file descriptor 3 of the browser and from its descriptor 4.
"""

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --remote-debugging-pipe"
).split()
SECONDS = 120


class Browser:
    """One page in a browser of its own; `events` are all that it reported, such as requests and messages."""

    def __init__(self, profile: Path):
        (to_read, self._to), (self._from, to_write) = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, to_write)]  # clear of 3 and 4
        command = ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "bash", CHROMIUM, *FLAGS]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([*command, f"--user-data-dir={profile}"], pass_fds=ends, **quiet)
        for end in (to_read, to_write, *ends):
            os.close(end)
        self.events, self._buffer, self._count, self._session = [], b"", 0, None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters) -> dict:
        """Send one command and return its result."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._count:
            self.events.append(answer)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def open(self, path: Path, width: int, height: int = 900) -> None:
        """Load a file in a window of some size, in pixels, and wait until all of it is there."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        self.events.clear()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while not self.happened("Page.loadEventFired"):
            self.events.append(self._next())

    def happened(self, method: str) -> list[dict]:
        """Return what events of one kind said."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def evaluate(self, script: str):
        """Return the value of a piece of JavaScript in the page."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str, code: int, text: str) -> None:
        """Press and release a key."""
        keys = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **keys)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **keys)

    def close(self) -> None:
        """End the browser."""
        self.ask("Browser.close")
        self.process.wait(timeout=SECONDS)

    def _next(self) -> dict:
        """Return the next message."""
        end = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0, end - time.monotonic()))
            assert ready, f"the browser said nothing for {SECONDS} s"
            part = os.read(self._from, 1 << 16)
            assert part, "the browser has ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)


def first_paint(page: Path, profile: Path, width: int = 1280) -> float:
    """Return the seconds from the start of loading a file to its first text on the screen, in a browser of its own."""
    one = Browser(profile)
    one.open(page, width)
    name, wait = "first-contentful-paint", "setTimeout(see, 50)"
    seen = f"performance.getEntriesByName('{name}')[0]"
    script = f"new Promise(done => {{ const see = () => {seen} ? done({seen}.startTime) : {wait}; see(); }})"
    milliseconds = one.evaluate(script)
    one.close()
    return milliseconds / 1000
