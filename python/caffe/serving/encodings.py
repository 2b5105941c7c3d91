"""Bodies that clients have compressed."""
import zlib

from .answers import Refusal

_MOST_GROWTH = 100  # times the size of the body, for what is larger than _ALWAYS bytes
_ALWAYS = 1 << 20
_MOST_MEMBERS = 10_000  # of gzip: each costs time, also if it is empty
_CHUNK = 1 << 16  # bytes that are copied at most when a member ends
_GZIP = 31
_GZIP_MAGIC = b"\x1f\x8b"
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": 15}  # zlib's wbits for each format


def encoding_of(headers):
    """The encoding of a body by its headers, "" if it is not encoded. Raises Refusal for one that is unknown, or for several."""
    name = ", ".join(headers.getlist("content-encoding")).strip().lower()
    if name in ("", "identity"):
        return ""
    if name not in _WINDOWS:
        raise Refusal(415, f"Content-Encoding is '{name[:100]}'; send gzip, deflate, or the body as it is", {"Accept-Encoding": "gzip, deflate"})
    return name


def expanded(body, encoding, limit):
    """The body without its encoding; gzip may have several members (RFC 1952). Raises Refusal for more than `limit` bytes, for more than a
    hundred times the body, for thousands of members, and for data that are damaged."""
    most = min(limit, max(_ALWAYS, _MOST_GROWTH * len(body)))
    content, rest, members, decoder = bytearray(), memoryview(body), 0, None
    try:
        while decoder is None or decoder.eof and rest[:2] == _GZIP_MAGIC and _WINDOWS[encoding] == _GZIP:
            members += 1
            if members > _MOST_MEMBERS:
                raise Refusal(413, f"the body has more than {_MOST_MEMBERS} {encoding} members; send one")
            decoder = zlib.decompressobj(_WINDOWS[encoding])
            while rest and not decoder.eof and len(content) <= most:
                chunk = rest[:_CHUNK]
                content += decoder.decompress(chunk, most + 1 - len(content))
                rest = rest[len(chunk) - len(decoder.unused_data):]
    except zlib.error as error:
        raise Refusal(400, f"the body is not valid {encoding}, which Content-Encoding says: {error}") from None
    if len(content) > most:
        why = "which is the limit (--max_request_mb)" if most == limit else f"from the {len(body)} that were sent; send it as it is"
        raise Refusal(413, f"the request has more than {most} bytes when it is expanded, {why}")
    if not decoder.eof:
        raise Refusal(400, f"the body ends in the middle of its {encoding} data; it has {len(body)} bytes")
    if rest:
        raise Refusal(400, f"the body has {len(rest)} bytes after the end of its {encoding} data; remove them")
    return bytes(content)
