"""Small sets of images for tests of `caffe new`."""
import json
import xml.etree.ElementTree as ElementTree

from PIL import Image, ImageDraw

COLOURS = {"blue": (30, 40, 220), "green": (20, 200, 40), "red": (230, 30, 20)}


def classes(folder, count=8, side=24, names=COLOURS):
    """A folder with single-colour images for each class."""
    for name in names:
        (folder / name).mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", (side, side + number), COLOURS.get(name, (9, 9, 9))).save(folder / name / f"{number}.png")
    return folder


def with_boxes(folder, count=8):
    """Images of 96x64 pixels with one red box each, and the positions of the boxes."""
    (folder / "pictures").mkdir(parents=True)
    found = []
    for number in range(count):
        image = Image.new("RGB", (96, 64), (90, 90, 90))
        box = (8 + 4 * number, 10, 40 + 4 * number, 50)
        ImageDraw.Draw(image).rectangle(box, fill=COLOURS["red"])
        image.save(folder / "pictures" / f"{number}.png")
        found.append((f"{number}.png", box))
    return found


def voc(folder, **changes):
    for name, box in with_boxes(folder):
        root = ElementTree.Element("annotation")
        size = ElementTree.SubElement(root, "size")
        for tag, value in zip(("width", "height"), changes.get("size", (96, 64))):
            ElementTree.SubElement(size, tag).text = str(value)
        node = ElementTree.SubElement(root, "object")
        ElementTree.SubElement(node, "name").text = changes.get("name", "brick")
        corners = ElementTree.SubElement(node, "bndbox")
        for tag, value in zip(("xmin", "ymin", "xmax", "ymax"), changes.get("box", box)):
            ElementTree.SubElement(corners, tag).text = str(value)
        ElementTree.ElementTree(root).write(folder / "pictures" / f"{name[:-4]}.xml")
    return folder


def coco(folder, **changes):
    found = with_boxes(folder)
    content = {"images": [{"id": i, "file_name": name, "width": 96, "height": 64} for i, (name, _) in enumerate(found)],
               "categories": [{"id": 7, "name": "brick"}],
               "annotations": [{"image_id": i, "category_id": 7, "bbox": [x0, y0, x1 - x0, y1 - y0]}
                               for i, (_, (x0, y0, x1, y1)) in enumerate(found)]}
    content.update(changes)
    (folder / "instances.json").write_text(json.dumps(content))
    return folder


def masks(folder, side=48, mask_side=48, count=8):
    for kind in ("images", "masks"):
        (folder / kind).mkdir(parents=True)
    for number in range(count):
        image, mask = Image.new("RGB", (side, side), (90, 90, 90)), Image.new("L", (mask_side, mask_side), 0)
        box = (number, 10, number + 20, 30)
        ImageDraw.Draw(image).ellipse(box, fill=COLOURS["blue"])
        ImageDraw.Draw(mask).ellipse(box, fill=1)
        image.save(folder / "images" / f"{number}.jpg")
        mask.save(folder / "masks" / f"{number}.png")
    return folder


def picture(file, mode="RGB", value=0, **options):
    """An image of 40x30 pixels of one colour; makes its folder. options: of Pillow's save()."""
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (40, 30), value).save(file, **{name: option for name, option in options.items() if option is not None})
    return file


def voc_note(image, size=(40, 30), flags=("0",), box=(1, 1, 20, 20)):
    """An XML file next to an image, with a box for each of the flags `difficult`."""
    corners = "".join(f"<{tag}>{value}</{tag}>" for tag, value in zip(("xmin", "ymin", "xmax", "ymax"), box))
    objects = "".join(f"<object><name>cat</name><difficult>{flag}</difficult><bndbox>{corners}</bndbox></object>" for flag in flags)
    image.with_suffix(".xml").write_text(f"<annotation><size><width>{size[0]}</width><height>{size[1]}</height></size>{objects}</annotation>")


def turned(orientation=6):
    """The EXIF data of a photograph that the camera held upright."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif
