"""Connections whose clients are slow."""
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


def protocol_of(seconds):
    """uvicorn's protocol, which also closes a connection if the header of a request takes longer than `seconds` to arrive."""
    return type("Protocol", (_Impatient,), {"seconds": seconds})


class _Impatient(HttpToolsProtocol):
    seconds = 30.0
    _timer = None

    def connection_made(self, transport):
        super().connection_made(transport)
        self._wait()

    def on_message_begin(self):
        self._wait()
        super().on_message_begin()

    def on_headers_complete(self):
        self._timer.cancel()
        super().on_headers_complete()

    def connection_lost(self, exc):
        self._timer.cancel()
        super().connection_lost(exc)

    def _wait(self):
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(self.seconds, self.transport.close)
