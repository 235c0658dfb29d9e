# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A headless Chromium, spoken to over its debugging pipe: pages, what they log, pictures, PDF."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars",
         "--disable-dev-shm-usage", "--remote-debugging-pipe"]


def find():
    """The program, or None when this machine has no Chromium."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    def __init__(self, program, seconds=300):  # the book as one PDF takes a busy machine minutes
        self.seconds, self.number, self.events, self.rest = seconds, 0, [], b""
        self.profile = tempfile.mkdtemp(prefix="browser-")
        read_end, self.write_to = os.pipe()
        self.read_from, write_end = os.pipe()

        def take_pipes():  # Chromium reads commands from 3 and writes answers to 4
            ends = [os.dup2(os.dup(end), target) for end, target in ((read_end, 100), (write_end, 101))]
            for end, target in zip(ends, (3, 4)):
                os.dup2(end, target)
        self.process = subprocess.Popen([program, *QUIET, f"--user-data-dir={self.profile}", "about:blank"],
                                        preexec_fn=take_pipes, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_end)
        os.close(write_end)
        target = self.call("Target.createTarget", {"url": "about:blank"}, session=None)["targetId"]
        self.session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True},
                                 session=None)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

        self.call("Emulation.setFocusEmulationEnabled", {"enabled": True})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.write_to)
        os.close(self.read_from)
        shutil.rmtree(self.profile, ignore_errors=True)

    def message(self, deadline):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.read_from], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.read_from, 1 << 20) if ready else b""
            if not piece:
                raise TimeoutError("the browser does not answer")
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, parameters=None, session=""):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters or {}}
        if session is not None:
            command["sessionId"] = self.session
        os.write(self.write_to, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + self.seconds
        while True:
            message = self.message(deadline)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self.events.append(message)

    def scripts(self, run):
        self.call("Emulation.setScriptExecutionDisabled", {"value": not run})

    def screen(self, width, height, phone=False, dark=False, media=""):
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone})
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})

    def open(self, url):
        """Loads the page to its end; returns what went wrong and which addresses were asked for."""
        self.events = []
        answer = self.call("Page.navigate", {"url": url})
        deadline = time.monotonic() + self.seconds
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.message(deadline))
        self.value("document.fonts.ready.then(() => true)")
        wrong, asked = [answer["errorText"]] if "errorText" in answer else [], []
        for event in self.events:
            method, said = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                wrong.append(f"exception: {said['exceptionDetails']['text']}")
            elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "assert"):
                wrong.append(f"console: {said['args'][:1]}")
            elif method == "Log.entryAdded" and said["entry"]["level"] == "error":
                wrong.append(f"console: {said['entry']['text']} {said['entry'].get('url', '')}")
            elif method == "Network.loadingFailed":
                wrong.append(f"not loaded: {said['errorText']}")
            elif method == "Network.requestWillBeSent":
                asked.append(said["request"]["url"])
        return wrong, asked

    def value(self, expression):
        result = self.call("Runtime.evaluate", {"expression": expression, "awaitPromise": True,
                                                "returnByValue": True})
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["text"])
        return result["result"].get("value")

    def picture(self, path, whole=False):
        options = {"format": "png", "captureBeyondViewport": whole}
        data = self.call("Page.captureScreenshot", options)["data"]
        path.write_bytes(base64.b64decode(data))

    def pdf(self, footer=None):
        """The page on paper; its headings as the outline."""
        options = {"preferCSSPageSize": True, "generateDocumentOutline": True, "generateTaggedPDF": True,
                   "printBackground": True}
        if footer:
            options |= {"displayHeaderFooter": True, "headerTemplate": "<span></span>", "footerTemplate": footer}
        return base64.b64decode(self.call("Page.printToPDF", options)["data"])
