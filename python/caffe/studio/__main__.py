"""python -m caffe.studio: see `caffe help studio`."""
import argparse
import os
import secrets
import sys
from urllib.parse import quote

from .._listening import listen, local_hosts, url_of
from .._output import run_command
from .._packages import missing


def _parser():
    parser = argparse.ArgumentParser(prog="caffe studio", description=__doc__)
    parser.add_argument("folder", nargs="?", default=".")
    parser.add_argument("--program", default="caffe")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8050)
    parser.add_argument("--token", default="")
    parser.add_argument("--jobs", type=int, default=1)
    return parser


def query_of(token):
    """The end of the address that is printed."""
    return f"?token={quote(token, safe='')}"


def _run(options):
    os.environ.setdefault("MATPLOTLIB", "false")  # NiceGUI would import it
    try:
        import uvicorn

        from .server import Jobs, Studio, Workspace, make_app
    except ImportError as error:
        raise missing(error, "nicegui", "uvicorn", "orjson", "tsdownsample") from None
    listening = listen(options.host, options.port)
    port = listening.getsockname()[1]
    token = options.token or os.environ.get("CAFFE_STUDIO_TOKEN", "") or secrets.token_urlsafe(16)
    workspace = Workspace(options.folder)
    studio = Studio(workspace, Jobs(workspace.path("jobs"), options.jobs), options.program)
    app = make_app(studio, token, port, local_hosts(options.host, port))
    listening.listen()  # what comes before uvicorn runs waits
    print(f"{url_of(listening)}/{query_of(token)}\nCtrl-C ends; jobs go on.", flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2, ws_max_size=64 << 20)
    uvicorn.Server(config).run(sockets=[listening])


def main(words=None):
    """Returns the exit status."""
    options = _parser().parse_args(words)
    return run_command("studio", lambda: _run(options))


if __name__ == "__main__":
    sys.exit(main())
