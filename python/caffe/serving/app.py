"""The addresses of the server."""
import asyncio
import dataclasses
import functools
import logging
from urllib.parse import quote

import prometheus_client as prometheus
from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect

from .. import Error, InvalidArgument, IoError, __version__
from . import tensors
from .admission import Admission
from .answers import JsonAnswer, Refusal
from .batcher import Batcher, QueueFull
from .encodings import encoding_of, expanded
from .images import ImageQuestion
from .metrics import Metrics

_EXTENSIONS = ["binary_tensor_data", "classification", "model_repository"]
_LENGTH = "Inference-Header-Content-Length"
_LARGE = 1 << 20  # bytes of a request; reading it must not hold up others
_MOST_DIGITS = 40  # Python refuses to read thousands


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits for clients.

    body: bytes in a request
    queue: requests that may wait for each model
    read_seconds: time for a client to send a request
    wait_seconds: time for an answer
    """
    body: int = 64 << 20
    queue: int = 256
    read_seconds: float = 30
    wait_seconds: float = 60


def _query(request, name, kind, default):
    """A number in the query. Raises Refusal unless it is from 0 on."""
    text = request.query_params.get(name, str(default))
    try:
        value = kind(text)
    except ValueError:
        value = -1
    if not 0 <= value < 1e9:
        raise Refusal(400, f"{name} is '{text[:40]}'; give a {'whole ' if kind is int else ''}number from 0 on")
    return value


class Server:
    """Models by name, and the FastAPI application `app` that answers for them.

    models: Model objects with different names
    limits: Limits
    token: what clients have to send as "Authorization: Bearer TOKEN"; "" for nothing
    hosts: names and numbers with the port by which clients may reach it; None: all
    start: makes the Batcher of a model: a function of (model, observer)
    """

    def __init__(self, models, limits=Limits(), token="", hosts=None, start=lambda model, observe: Batcher(model, observe=observe)):
        self._limits = limits
        self.metrics = Metrics()
        self._models = {model.name: model for model in models}
        self._questions = {}
        self._batchers = {}
        for name, model in self._models.items():
            self._batchers[name] = start(model, self.metrics.observer(name))
            self.metrics.watch(name, self._batchers[name])
        self.app = FastAPI(title="Cortado", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
        self.app.add_exception_handler(Refusal, lambda request, refusal: refusal.answer())
        self.app.add_exception_handler(404, lambda request, error: Refusal(404, f"there is nothing at {request.url.path}").answer())
        self.app.add_exception_handler(405, lambda request, error: Refusal(405, f"{request.url.path} does not take {request.method}").answer())
        self.app.add_middleware(Admission, token=token, hosts=hosts)
        self._add_routes()

    def close(self):
        """Computes what waits, and ends the threads."""
        for batcher in self._batchers.values():
            batcher.close()

    def _add_routes(self):
        get = self.app.get
        get("/")(self._index)
        get("/metrics")(self._metrics)
        get("/v2")(self._server)
        for probe in ("/v2/health/live", "/v2/health/ready"):
            self.app.api_route(probe, methods=["GET", "HEAD"])(self._alive)
        self.app.post("/v2/repository/index")(self._repository)
        for model in ("/v2/models/{name}", "/v2/models/{name}/versions/{version}"):
            get(model)(self._model)
            get(model + "/ready")(self._ready)
            get(model + "/config")(self._config)
            self.app.post(model + "/infer")(self._infer)
            self.app.post(model + "/image")(self._image)

    def _index(self):
        return JsonAnswer({"server": "cortado", "version": __version__, "models": {name: f"/v2/models/{quote(name)}" for name in self._models}})

    def _metrics(self):
        return Response(self.metrics.text(), media_type=prometheus.CONTENT_TYPE_LATEST)

    def _server(self):
        return JsonAnswer({"name": "cortado", "version": __version__, "extensions": _EXTENSIONS})

    def _alive(self):
        return Response()

    def _repository(self):
        return JsonAnswer([{"name": name, "version": "1", "state": "READY", "reason": ""} for name in self._models])

    def _named(self, name, version):
        if name not in self._models:
            raise Refusal(404, f"there is no model '{name[:100]}'; there are {', '.join(self._models)}")
        if version != "1":
            raise Refusal(404, f"model '{name}' has version 1 only, not '{version[:100]}'")
        return self._models[name]

    def _model(self, name: str, version: str = "1"):
        model = self._named(name, version)
        described = {kind: [{"name": one.name, "datatype": "FP32", "shape": list(one.shape)} for one in found]
                     for kind, found in (("inputs", model.inputs), ("outputs", model.outputs))}
        return JsonAnswer({"name": name, "versions": ["1"], "platform": "cortado", **described,
                           "parameters": {"labels": model.labels} if model.labels else {}})

    def _ready(self, name: str, version: str = "1"):
        self._named(name, version)
        return Response()

    def _config(self, name: str, version: str = "1"):
        model = self._named(name, version)
        described = {kind: [{"name": one.name, "data_type": "TYPE_FP32", "dims": [extent for extent in one.shape if extent != -1]}
                            for one in found] for kind, found in (("input", model.inputs), ("output", model.outputs))}
        return JsonAnswer({"name": name, "platform": "cortado", "max_batch_size": model.max_batch, **described})

    async def _infer(self, request: Request, name: str, version: str = "1"):
        return await self._counted(name, version, request, self._tensors)

    async def _image(self, request: Request, name: str, version: str = "1"):
        return await self._counted(name, version, request, self._of_image)

    async def _counted(self, name, version, request, answer):
        """Answers by answer(model, request, body), and counts the request."""
        status = 500
        try:
            model = self._named(name, version)
            response = await answer(model, request, await self._body(request))
            status = 200
            return response
        except Refusal as refusal:
            status = refusal.status
            raise
        finally:
            self.metrics.requests.labels(name if name in self._models else "", str(status)).inc()

    async def _tensors(self, model, request, body):
        length = request.headers.get(_LENGTH)
        if length is not None and not (length.isascii() and length.isdigit() and len(length) <= _MOST_DIGITS):
            raise Refusal(400, f"{_LENGTH} is '{length[:40]}'; give a number of bytes")
        try:
            read = functools.partial(tensors.read_request, body, None if length is None else int(length), model)
            wish = await asyncio.to_thread(read) if len(body) > _LARGE else read()
        except tensors.BadRequest as error:
            raise Refusal(400, str(error)) from None
        computed = await self._compute(model, wish.inputs, wish.count, request)
        content, header_length = tensors.write_answer(model, wish, computed)
        if header_length is None:
            return Response(content, media_type="application/json")
        return Response(content, media_type="application/octet-stream", headers={_LENGTH: str(header_length)})

    async def _of_image(self, model, request, body):
        top, threshold = _query(request, "top", int, 5), _query(request, "threshold", float, 0.5)
        if request.headers.get("content-type", "").startswith("multipart/"):
            raise Refusal(415, f"the image is in a form; send its bytes as they are: curl --data-binary @photo.jpg {request.url}")
        try:
            if model.name not in self._questions:
                self._questions[model.name] = ImageQuestion(model)
            question = self._questions[model.name]
            inputs, place = await asyncio.to_thread(question.read, body)
        except (InvalidArgument, IoError) as error:
            raise Refusal(400, str(error)) from None
        return JsonAnswer(question.answer(await self._compute(model, inputs, 1, request), place, top, threshold))

    async def _body(self, request):
        """The bytes of a request, expanded if the client has compressed them. Raises Refusal if there are too many, or if they take too
        long."""
        limit, encoding = self._limits.body, encoding_of(request.headers)
        too_large = Refusal(413, f"the request has more than {limit} bytes, which is the limit (--max_request_mb)")
        announced = request.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > limit:
            raise too_large

        async def read():
            parts, size = [], 0
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise too_large
                parts.append(part)
            return b"".join(parts)

        try:
            body = await asyncio.wait_for(read(), self._limits.read_seconds)
        except asyncio.TimeoutError:
            raise Refusal(408, f"the request took more than {self._limits.read_seconds:g} s to arrive") from None
        except ClientDisconnect:
            raise Refusal(400, "the request ended in its middle") from None
        return await asyncio.to_thread(expanded, body, encoding, limit) if encoding else body

    async def _compute(self, model, inputs, count, request):
        """The arrays of an answer. What nobody waits for any more is not computed."""
        try:
            future = asyncio.wrap_future(self._batchers[model.name].submit(inputs, count))
        except QueueFull:
            raise Refusal(503, f"{self._limits.queue} requests wait for '{model.name}'; ask again later", {"Retry-After": "1"}) from None
        gone = asyncio.ensure_future(request.receive())  # comes when the client closes the connection
        try:
            await asyncio.wait({future, gone}, timeout=self._limits.wait_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()  # does nothing if it has come
        if not future.done():
            future.cancel()
            if gone.done():
                raise Refusal(499, "the client has closed the connection")
            raise Refusal(504, f"there is no answer after {self._limits.wait_seconds:g} s")
        try:
            return future.result()
        except Error as error:
            raise Refusal(400, str(error)) from None
        except Exception as error:
            logging.getLogger("uvicorn.error").exception("%s", model.name)
            raise Refusal(500, f"{model.name}: {error}") from None
