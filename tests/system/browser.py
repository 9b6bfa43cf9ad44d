"""A headless Chromium, controlled over pipes with the DevTools protocol: uses no port and no network.

    with Browser(tmp_path / "profile") as browser:
        page = browser.open("file:///…", width=390, height=844, dark=True)
        assert page.value("document.documentElement.scrollWidth") <= 390 and page.complaints() == []
"""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"]


def find_executable():
    """The path of the program, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    def __init__(self, profile, timeout=60):
        self.timeout = timeout
        self.next_id = 0
        self.rest = b""
        self.events = []
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4. These may be in use, so the pipes get high
        # numbers first.
        high = [os.dup(read_commands), os.dup(write_answers)]
        script = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", *map(str, high), find_executable(), *FLAGS,
             f"--user-data-dir={profile}", "about:blank"],
            pass_fds=high, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        for descriptor in (read_commands, write_answers, *high):
            os.close(descriptor)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)

    def call(self, method, session=None, **parameters):
        """Sends a command and returns its result; stores events that arrive meanwhile in `events`."""
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.next_id:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def receive(self):
        deadline = time.monotonic() + self.timeout
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.answers], [], [], deadline - time.monotonic())
            assert ready, f"chromium did not answer within {self.timeout} s"
            part = os.read(self.answers, 1 << 20)
            assert part, "chromium ended"
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, address, width, height, dark=False):
        return Page(self, address, width, height, dark)


class Page:
    def __init__(self, browser, address, width, height, dark):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target,
                                    flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def seen(self, *methods):
        return [event["params"] for event in self.browser.events
                if event.get("sessionId") == self.session and event["method"] in methods]

    def wait_for(self, method):
        while not self.seen(method):
            self.browser.events.append(self.browser.receive())

    def complaints(self):
        """All messages in the browser's console, and everything that could not be loaded."""
        return [event for event in self.seen("Runtime.exceptionThrown", "Runtime.consoleAPICalled",
                                             "Log.entryAdded", "Network.loadingFailed")]

    def requests(self):
        return [event["request"]["url"] for event in self.seen("Network.requestWillBeSent")]

    def value(self, expression):
        """The value of a JavaScript expression, converted through JSON."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def screenshot(self, path, whole=False):
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))
