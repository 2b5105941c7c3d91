"""Small versions of images for the pages."""
import io

from PIL import Image, ImageOps

from .. import IoError

_SIDE = 160
Image.MAX_IMAGE_PIXELS = 100_000_000  # a file may claim more than fits into memory


def thumbnail(path, side=_SIDE):
    """A JPEG file whose longer side has at most `side` pixels. Raises IoError for what is not an image."""
    try:
        with Image.open(path) as image:
            image.draft("RGB", (side, side))
            image = ImageOps.exif_transpose(image.convert("RGB"))
            image.thumbnail((side, side))
            output = io.BytesIO()
            image.save(output, "jpeg", quality=85)
            return output.getvalue()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise IoError(f"{path}: {error}") from None
