"""Bodies that clients have compressed."""
import zlib

from .answers import Refusal

_MOST_GROWTH = 100  # times the size of the body, for what is larger than _ALWAYS bytes
_ALWAYS = 1 << 20
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
    """The body without its encoding. Raises Refusal for more than `limit` bytes, for more than a hundred times the body, and for data
    that are damaged."""
    decoder = zlib.decompressobj(_WINDOWS[encoding])
    most = min(limit, max(_ALWAYS, _MOST_GROWTH * len(body)))
    try:
        content = decoder.decompress(body, most + 1)
    except zlib.error as error:
        raise Refusal(400, f"the body is not valid {encoding}, which Content-Encoding says: {error}") from None
    if len(content) > most:
        why = "which is the limit (--max_request_mb)" if most == limit else f"from the {len(body)} that were sent; send it as it is"
        raise Refusal(413, f"the request has more than {most} bytes when it is expanded, {why}")
    if not decoder.eof:
        raise Refusal(400, f"the body ends in the middle of its {encoding} data; it has {len(body)} bytes")
    if decoder.unused_data:
        raise Refusal(400, f"the body has {len(decoder.unused_data)} bytes after the end of its {encoding} data; send one stream")
    return content
