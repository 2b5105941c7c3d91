"""The server of the studio."""
import asyncio
import contextlib
import dataclasses
import logging

from fastapi import FastAPI
from nicegui import ui

from .. import __version__
from .files import add_files
from .guard import Guard
from .jobs import Jobs
from .messages import text_of
from .pages import add_pages
from .versions import Versions
from .workspace import Workspace

_LOG = logging.getLogger(__name__)
_LOOKS_EVERY = 2.0  # seconds, for jobs to start


@dataclasses.dataclass
class Studio:
    """Everything that pages work with. program: the program `caffe`; trouble: why no job can be started, "" if they can."""
    workspace: Workspace
    jobs: Jobs
    program: str
    trouble: str = ""

    def __post_init__(self):
        self.versions = Versions(self.workspace.path("versions"))


def make_app(studio, token, port, hosts):
    """The ASGI application. token, port, hosts: see Guard."""
    @contextlib.asynccontextmanager
    async def life(_app):
        task = asyncio.create_task(_run_jobs(studio))
        yield
        task.cancel()

    app = FastAPI(title="Cortado studio", version=__version__, docs_url=None, redoc_url=None, openapi_url=None, lifespan=life)
    add_pages(studio)
    add_files(app, studio.workspace)
    ui.run_with(app, title="Cortado studio", favicon="☕", reconnect_timeout=20, binding_refresh_interval=None)
    return Guard(app, token, port, hosts)


async def _run_jobs(studio):
    """Starts jobs when there is room for them. An error, such as a full disk, is logged once and tried again."""
    while True:
        try:
            await asyncio.to_thread(studio.jobs.start_next)
            studio.trouble = ""
        except Exception as error:  # pylint: disable=broad-exception-caught  # or the queue would stand still
            text = text_of(error)
            if text != studio.trouble:
                _LOG.error("no job can be started: %s", text)
            studio.trouble = text
        await asyncio.sleep(_LOOKS_EVERY)
