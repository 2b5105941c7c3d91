"""Bodies that clients have compressed."""
import zlib

from .answers import Refusal

_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}  # zlib's wbits for each format


def encoding_of(headers):
    """The encoding of a body by its headers, "" if it is not encoded. Raises Refusal for one that is unknown, or for several."""
    name = ", ".join(headers.getlist("content-encoding")).strip().lower()
    if name in ("", "identity"):
        return ""
    if name not in _WINDOWS:
        raise Refusal(415, f"Content-Encoding is '{name[:100]}'; send gzip, deflate, or the body as it is", {"Accept-Encoding": "gzip, deflate"})
    return name


def expanded(body, encoding, limit):
    """The body without its encoding. Never makes more than `limit` + 1 bytes. Raises Refusal for more than `limit`, and for data that are
    damaged."""
    decoder = zlib.decompressobj(_WINDOWS[encoding])
    try:
        content = decoder.decompress(body, limit + 1)
    except zlib.error as error:
        raise Refusal(400, f"the body is not valid {encoding}, which Content-Encoding says: {error}") from None
    if len(content) > limit:
        raise Refusal(413, f"the request has more than {limit} bytes when it is expanded, which is the limit (--max_request_mb)")
    if not decoder.eof:
        raise Refusal(400, f"the body ends in the middle of its {encoding} data; it has {len(body)} bytes")
    if decoder.unused_data:
        raise Refusal(400, f"the body has {len(decoder.unused_data)} bytes after the end of its {encoding} data; send one stream")
    return content
