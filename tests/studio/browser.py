"""A studio and a browser for the tests. CAFFE_STUDIO_SHOTS=folder keeps a picture of each step there."""
import contextlib
import os
import pathlib
import shutil
import threading

import pytest
import uvicorn
from playwright.sync_api import sync_playwright

import caffe
from caffe._listening import listen
from caffe._listening import local_hosts
from caffe.studio.server import Jobs, Studio, Workspace, make_app

LIMIT = 300_000  # milliseconds, which only end a test that hangs
ALL_COLUMNS = {"width": 6000, "height": 860}  # of a window; the table of runs makes only those that can be seen
_BUILT = pathlib.Path(caffe.__file__).resolve().parents[2] / "bin" / "caffe"
PROGRAM = os.environ.get("CAFFE_PROGRAM") or (str(_BUILT) if _BUILT.exists() else None)


class Page:
    """A page of the browser, and what went wrong on it: errors of scripts and requests to other hosts."""

    def __init__(self, page, address):
        self.page, self.address, self.problems = page, address, []
        self._shots = 0
        page.set_default_timeout(LIMIT)
        page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        page.on("console", lambda message: self.problems.append(f"console: {message.text}") if message.type == "error" else None)
        page.on("request", self._note)

    def _note(self, request):
        if not request.url.startswith((self.address, "data:", "blob:", "ws" + self.address[4:])):
            self.problems.append(f"outside: {request.url}")

    def open(self, path):
        self.page.goto(self.address + path)

    def shot(self, name):
        """A picture of the page, where CAFFE_STUDIO_SHOTS names a folder."""
        folder = os.environ.get("CAFFE_STUDIO_SHOTS")
        if folder:
            self._shots += 1
            self.page.screenshot(path=os.path.join(folder, f"{self._shots:02}_{name}.png"))


@contextlib.contextmanager
def served(root, jobs=1):
    """The address of a studio for a folder, and the Studio. NiceGUI has one server in a process."""
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    workspace = Workspace(root)
    studio = Studio(workspace, Jobs(workspace.path("jobs"), jobs), PROGRAM or "caffe")
    server = uvicorn.Server(uvicorn.Config(make_app(studio, "token", port, local_hosts("127.0.0.1", port)), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}", studio
    finally:
        server.should_exit = True
        thread.join()


@contextlib.contextmanager
def browsed(address):
    """A Page that is logged in."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium (scripts/install_dependencies.sh studio)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=LIMIT)
        page = Page(browser.new_page(viewport={"width": 1280, "height": 860}), address)
        page.open("/?token=token")
        yield page
        browser.close()
