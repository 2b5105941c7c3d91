"""Pairs of images and masks: `images` and `masks` with files of equal names (or VOC's `JPEGImages`
and `SegmentationClass`). A mask has the number of a class in each pixel, 255 for none; classes.txt
or labels.txt has their names."""
from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Optional, Tuple

from ... import InvalidArgument
from . import Dataset, Halves, ImportOptions, beside, images_below

KIND = "pairs of images and masks, in folders 'images' and 'masks'"
IGNORED = 255
_FOLDERS = (("images", "masks"), ("JPEGImages", "SegmentationClass"), ("images", "labels"))


def find(path: Path) -> Optional[Dataset]:
    for images, masks in _FOLDERS:
        if (path / images).is_dir() and (path / masks).is_dir() and images_below(path / masks):
            return MaskPairs(path, path / images, path / masks)
    return None


class MaskPairs(Dataset):
    kind = "images and masks"
    task = "segmentation"

    def __init__(self, path: Path, images: Path, masks: Path) -> None:
        super().__init__(path)
        files = {str(file.relative_to(images).with_suffix("")): file for file in images_below(images)}
        others = {str(file.relative_to(masks).with_suffix("")): file for file in images_below(masks)}
        pairs = {name: (files[name], others[name]) for name in sorted(files) if name in others}
        without = sorted(set(others) - set(files))
        if without:
            raise InvalidArgument(f"{others[without[0]]}: there is no image of this name in {images}; add it, or remove the mask")
        if len(pairs) < 2:
            raise InvalidArgument(f"{path}: has {len(pairs)} images with a mask of the same name; give two or more")
        self.without_mask = len(files) - len(pairs)
        self._pairs: Dict[Path, Path] = dict(pairs.values())
        values = set()
        for file, mask in self._pairs.items():
            values |= _values(file, mask)
        values.discard(IGNORED)
        if len(values) < 2:
            raise InvalidArgument(f"{masks}: all pixels have the class {', '.join(map(str, values)) or IGNORED}; there is nothing to tell "
                                  "apart")
        self.classes = self._names(max(values) + 1)

    def _names(self, count: int) -> List[str]:
        for name in ("classes.txt", "labels.txt"):
            file = self.path / name
            if file.is_file():
                lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
                if len(lines) < count:
                    raise InvalidArgument(f"{file}: has {len(lines)} names, but the masks have classes up to {count - 1}")
                return lines
        return [str(label) for label in range(count)]

    def images(self) -> List[Path]:
        return list(self._pairs)

    def import_into(self, folder: Path, options: ImportOptions) -> Halves:
        halves = beside(list(self._pairs), options.seed, options.val)
        sums, count = [0.0, 0.0, 0.0], 0
        for half, files in zip(("train", "val"), halves):
            lines = []
            for number, file in enumerate(files):
                image, mask = _resized(file, self._pairs[file], options.side)
                names = [folder / half / kind / f"{number:06}.png" for kind in ("images", "masks")]
                for name, picture in zip(names, (image, mask)):
                    name.parent.mkdir(parents=True, exist_ok=True)
                    picture.save(name)
                lines.append(f"{half}/images/{number:06}.png {half}/masks/{number:06}.png\n")
                if half == "train":
                    sums = [total + mean for total, mean in zip(sums, _means(image))]
                    count += 1
            (folder / f"{half}.txt").write_text("".join(lines), encoding="utf-8")
        (folder / "labels.txt").write_text("".join(f"{name}\n" for name in self.classes), encoding="utf-8")
        return Halves("data/train.txt", "data/val.txt", len(halves[0]), len(halves[1]),
                      mean=tuple(round(total / count, 1) for total in sums), more={"ignore": str(IGNORED)})


def _values(file: Path, mask: Path) -> set:
    """The classes in a mask. Raises InvalidArgument where it has not the image's size or is none."""
    from PIL import Image

    try:
        with Image.open(file) as image, Image.open(mask) as labels:
            if image.size != labels.size:
                raise InvalidArgument(f"{mask}: is of {labels.width}x{labels.height}, but its image of {image.width}x{image.height}; a mask "
                                      "has a class for each pixel")
            if labels.mode not in ("L", "P", "1", "I", "I;16"):
                raise InvalidArgument(f"{mask}: is a colour image ({labels.mode}); a mask has the number of a class in each pixel: save it "
                                      "gray, or with a palette")
            return {value for _, value in labels.getcolors(1 << 24)}
    except OSError as error:
        raise InvalidArgument(f"{file} or {mask.name}: cannot be read as an image ({error}); remove the pair") from None


def _resized(file: Path, mask: Path, side: int) -> Tuple:
    """Both of side x side pixels; classes of the mask are not mixed."""
    from PIL import Image, ImageOps

    with Image.open(file) as image, Image.open(mask) as labels:
        picture = ImageOps.exif_transpose(image).convert("RGB").resize((side, side), Image.BILINEAR)
        # Not convert("L"), which would turn the palette's colours into brightness.
        classes = Image.frombytes("L", labels.size, labels.tobytes()) if labels.mode == "P" else labels.convert("L")
        return picture, classes.resize((side, side), Image.NEAREST)


def _means(image) -> Tuple[float, ...]:
    """Of blue, green and red."""
    from PIL import ImageStat

    return tuple(reversed(ImageStat.Stat(image).mean))
