"""Answers in JSON, and refusals as the protocol has them."""
import orjson
from fastapi.responses import Response


class JsonAnswer(Response):
    media_type = "application/json"

    def render(self, content):
        return orjson.dumps(content)


class Refusal(Exception):
    """An answer other than 200. The text says what is wrong, and what to do."""

    def __init__(self, status, text, headers=None):
        super().__init__(text)
        self.status = status
        self._headers = headers

    def answer(self):
        return JsonAnswer({"error": str(self)}, status_code=self.status, headers=self._headers)
