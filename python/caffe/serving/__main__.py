"""python -m caffe.serving: see `caffe help serve`."""
import argparse
import os
import sys
from urllib.parse import quote

from .. import InvalidArgument, set_device, set_mode_gpu
from .._listening import listen, local_hosts, url_of
from .._output import run_command, start_log
from .._packages import missing
from ..class_names import read_names
from ..deployment import read_model_info
from .weights import weights_of

_LEAST_CONNECTIONS = 1024  # that may be open, busy or not
_PARTS = ("model", "net", "weights", "labels", "info")  # name, net, weights, class names and preprocessing of a model


def _parser():
    parser = argparse.ArgumentParser(prog="caffe serve", description=__doc__)
    for part in _PARTS:
        parser.add_argument(f"--{part}", action="append", required=True, help="each model's; may be empty, as in --labels=")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--token", default="")
    parser.add_argument("--max_batch", type=int, default=16)
    parser.add_argument("--max_delay_ms", type=float, default=0)
    parser.add_argument("--max_queue", type=int, default=256)
    parser.add_argument("--max_request_mb", type=int, default=64)
    parser.add_argument("--instances", type=int, default=1)
    parser.add_argument("--precision")
    parser.add_argument("--gpu", type=int)
    return parser


def _libraries():
    try:
        import uvicorn

        from .app import Limits, Server
        from .connections import protocol_of
    except ImportError as error:
        raise missing(error, "fastapi", "uvicorn", "httptools", "uvloop", "orjson", "prometheus-client") from None
    return uvicorn, Limits, Server, protocol_of


def _use(gpu):
    if gpu is not None:
        set_mode_gpu()
        set_device(gpu)


def _models(options):
    """The Model objects that the options name. Raises InvalidArgument, and what Model raises."""
    from .model import Model

    given = list(zip(*(getattr(options, part) for part in _PARTS)))
    names = [name for name, *_ in given]
    for name in names:
        if not name or "/" in name:
            raise InvalidArgument(f"a model's name is '{name}', which has no address; give another one, as in caffe serve cats=a_model")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        nets = " and ".join(net for name, net, *_ in given if name == twice)
        raise InvalidArgument(f"{nets} have the same name, '{twice}'; give names, as in caffe serve cats=a_model dogs=b_model")
    return [Model(name, net, weights_of(net, weights), max_batch=options.max_batch, precision=options.precision,
                  labels=read_names(labels) if labels else (), info=read_model_info(info) if info else None, pads=options.gpu is not None)
            for name, net, weights, labels, info in given]


def _run(options):
    uvicorn, limits_of, server_of, protocol_of = _libraries()
    from .batcher import Batcher

    listening = listen(options.host, options.port)
    _use(options.gpu)
    models = _models(options)

    def start(model, observe):
        return Batcher(model, instances=options.instances, max_queue=options.max_queue, max_delay=options.max_delay_ms / 1000,
                       observe=observe, begin=lambda: _use(options.gpu))

    limits = limits_of(body=options.max_request_mb << 20, queue=options.max_queue)
    server = server_of(models, limits, options.token or os.environ.get("CAFFE_SERVE_TOKEN", ""),
                       local_hosts(options.host, listening.getsockname()[1]), start)
    listening.listen()  # what comes before uvicorn runs waits
    for model in models:
        shapes = ", ".join(f"{one.name} {'x'.join(map(str, one.shape)).replace('-1', 'N')}" for one in (*model.inputs, *model.outputs))
        print(f"{model.name}: {shapes}  {url_of(listening)}/v2/models/{quote(model.name)}", flush=True)
    print("Ctrl-C ends.", flush=True)
    config = uvicorn.Config(server.app, http=protocol_of(limits.read_seconds), log_level="warning", access_log=False, lifespan="off",
                            timeout_keep_alive=75, limit_concurrency=max(_LEAST_CONNECTIONS, 4 * options.max_queue), timeout_graceful_shutdown=30)
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        server.close()


def main(words=None):
    """Returns the exit status."""
    options = _parser().parse_args(words)
    start_log()
    return run_command("serve", lambda: _run(options))


if __name__ == "__main__":
    sys.exit(main())
