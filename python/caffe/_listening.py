"""Sockets and callers of the commands that are servers."""
import hmac
import socket

from ._caffe import IoError


def listen(host, port):
    """A bound socket, on which listen() has to be called. port: 0 for any that is free. Raises IoError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        raise IoError(f"cannot listen on {host}, port {port}: {error.strerror}; give another --port, or 0 for any that is free") from None
    return listening


def url_of(listening):
    """The address of a bound socket, as browsers take it."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def local_hosts(host, port):
    """Names, with the port, in requests to a server that only this machine reaches; None if others shall reach it too.

    Other names are those of pages of other sites, whose address was made that of this machine (DNS rebinding).
    """
    if host not in ("127.0.0.1", "localhost", "::1"):
        return None
    names = ("127.0.0.1", "localhost", "[::1]")
    return {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())


def foreign_origin(headers):
    """The site whose page sends a request, if that is not a page of this server; otherwise "". headers: a mapping."""
    origin = headers.get("origin")
    return origin[:100] if origin and origin.partition("://")[2] != headers.get("host") else ""


def is_same(given, secret):
    """Compares texts in a time that does not tell how much of them agrees."""
    return hmac.compare_digest(given.encode(), secret.encode())
