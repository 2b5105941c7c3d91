"""Files of the workspace, for browsers."""
import asyncio
import os

from fastapi.responses import FileResponse, PlainTextResponse, Response

from .. import Error
from .messages import text_of
from .pictures import thumbnail

# These are shown, and not only downloaded. A page runs without access to the studio, as if it came from elsewhere.
_SHOWN = {".html": "text/html", ".json": "application/json", ".txt": "text/plain", ".png": "image/png", ".jpg": "image/jpeg", ".svg": "image/svg+xml"}
_HEADERS = {"Content-Security-Policy": "sandbox allow-scripts; default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'",
            "X-Content-Type-Options": "nosniff"}


def add_files(app, workspace):
    """Adds /thumbnail?path= and /file?path=[&download=1]."""
    def found(path):
        """An absolute path, or an answer that there is no such file."""
        try:
            whole = workspace.inside(path)
        except Error as error:
            return PlainTextResponse(text_of(error), 404)
        return whole if os.path.isfile(whole) else PlainTextResponse(f"{path[:200]}: there is no such file", 404)

    @app.get("/thumbnail")
    async def show_thumbnail(path: str):
        file = found(path)
        if isinstance(file, Response):
            return file
        try:
            content = await asyncio.to_thread(thumbnail, file)
        except Error as error:
            return PlainTextResponse(str(error), 415)
        return Response(content, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=3600", "X-Content-Type-Options": "nosniff"})

    @app.get("/file")
    def show_file(path: str, download: bool = False):
        file = found(path)
        if isinstance(file, Response):
            return file
        kind = _SHOWN.get(os.path.splitext(file)[1].lower())
        if download or kind is None:
            return FileResponse(file, filename=os.path.basename(file), media_type="application/octet-stream", headers=_HEADERS)
        return FileResponse(file, media_type=kind, headers=_HEADERS)
