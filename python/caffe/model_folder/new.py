"""Makes a model's folder."""
from __future__ import annotations

import shlex
import shutil
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Tuple

from .. import InvalidArgument, IoError, zoo
from .._counted import counted
from .._new_folder import new_folder
from ..prototxt import text_of
from . import duplicates, initial_weights, recipes
from .databases import run
from .datasets import Dataset, ImportOptions, open_dataset
from .pixels import size_of

_LOOKED_AT = 200  # images whose sizes determine the choice of the net
_MOST_EPOCHS = 100_000


@dataclass
class Wishes:
    """Choices of the user; None: chosen automatically.

    val: share of the images to keep for testing. side: of the net's input, in pixels.
    weights: a .caffemodel to start from.
    """

    net: Optional[str] = None
    weights: Optional[Path] = None
    side: Optional[int] = None
    epochs: Optional[int] = None
    val: float = 0.15
    seed: int = 1
    batch: Optional[int] = None


def make(photographs: Path, output: Path, wishes: Wishes, program: Path) -> recipes.Plan:
    """Makes the folder `output` atomically, and returns its plan.

    program: the program `caffe`. Raises InvalidArgument if the folder exists, or if the set of images
    or a choice does not fit; Error if an image cannot be stored.
    """
    if any("\ud800" <= letter <= "\udfff" or ord(letter) < 32 for letter in str(output)):
        raise InvalidArgument(f"{ascii(str(output))}: has bytes that are not UTF-8, or control characters, in its name; give another --output")
    if output.exists() or output.is_symlink():
        raise InvalidArgument(f"{output}: already exists; give another --output, or remove it")
    if not 0 < wishes.val < 1:
        raise InvalidArgument(f"--val is {100 * wishes.val:g}%; give a share above 0% and below 100%")
    if wishes.epochs is not None and not 0 < wishes.epochs <= _MOST_EPOCHS:
        raise InvalidArgument(f"--epochs is {wishes.epochs:g}; give a number above 0, up to {_MOST_EPOCHS}")
    if wishes.batch is not None and wishes.batch < 1:
        raise InvalidArgument(f"--batch is {wishes.batch}; give 1 or more images")
    if wishes.weights is not None:
        initial_weights.require_file(wishes.weights, program)
    if photographs.is_dir() and photographs.resolve() in output.resolve().parents:
        raise InvalidArgument(f"{output}: lies in {photographs}, the folder of the images, of which it would become a part; give another "
                              "--output")
    dataset = open_dataset(photographs)
    dataset.warnings += duplicates.warnings_of(dataset)
    net, side = _choice(dataset, wishes)
    try:
        with new_folder(output) as partial:
            return _fill(partial, output.name, dataset, net, side, wishes, program)
    except IoError:
        raise
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        raise IoError(f"{output}: cannot be made: {file}{error.strerror or error}; give another --output") from None


def preview(photographs: Path, folder: Path, wishes: Wishes, program: Path, count: int = 64) -> recipes.Plan:
    """Makes the same model as make(), of about `count` of the images, in the existing folder `folder`: to look at its definitions
    and at what its data layer gives. Raises as make() does."""
    whole = open_dataset(photographs)
    net, side = _choice(whole, wishes)
    images = folder / "images"
    images.mkdir()
    return _fill(folder, "preview", whole.sample(count, images), net, side, wishes, program)


def _choice(dataset: Dataset, wishes: Wishes) -> Tuple[zoo.Net, int]:
    """The net for the set, and the side of its input. Weights without a net choose their own."""
    usual = _usual_side(dataset)
    if wishes.net:
        net = zoo.net_named(wishes.net, dataset.task)
    else:
        of_weights = None if wishes.weights is None else initial_weights.net_of(wishes.weights, dataset.task)
        net = of_weights or zoo.choose(dataset.task, usual)
    return net, _side(net, usual, wishes.side)


def _fill(folder: Path, name: str, dataset: Dataset, net: zoo.Net, side: int, wishes: Wishes, program: Path) -> recipes.Plan:
    data = folder / "data"
    data.mkdir()
    stored = recipes.stored_side(dataset.task, side)
    halves = dataset.import_into(data, ImportOptions(stored, wishes.val, wishes.seed, program))
    weights = ""
    if wishes.weights is not None:
        weights = f"pretrained{wishes.weights.suffix}"
        shutil.copyfile(wishes.weights, folder / weights)
    epochs = wishes.epochs or min(200, max(5, round(net.images / halves.train_count)))
    batch = min(wishes.batch or net.batch, halves.train_count)
    mean, scale = initial_weights.pixels(net, wishes.weights, halves)
    plan = recipes.Plan(name, net, dataset, halves, side, stored, batch, epochs, wishes.seed, weights, mean, scale)
    definition = recipes.train_val(plan)
    if wishes.weights is not None:
        initial_weights.require_common_layer(wishes.weights, definition, net)
    _write(folder / "train_val.prototxt", definition, f"{net.name} for {counted(len(dataset.classes), 'class', 'classes')}.")
    _write(folder / "solver.prototxt", recipes.solver(plan), "Paths begin at this folder: caffe train FOLDER.")
    _deploy(folder, program)
    if wishes.weights is not None:
        plan = plan._replace(copied=initial_weights.copied(folder, wishes.weights, net))
    (folder / "README.md").write_text(_readme(plan, wishes.weights), encoding="utf-8")
    return plan


def _write(file: Path, message: object, comment: str) -> None:
    file.write_text(text_of(message, comment), encoding="utf-8")


def _deploy(folder: Path, program: Path) -> None:
    run(program, "deploy", "train_val.prototxt", "--output=deploy.prototxt", cwd=folder)


def _usual_side(dataset: Dataset) -> int:
    """The median of the images' shorter sides."""
    files = dataset.images()
    step = max(1, len(files) // _LOOKED_AT)
    sides = []
    for file in files[::step]:
        try:
            sides.append(min(size_of(file)))
        except InvalidArgument:
            continue  # the import will report unreadable images
    if not sides:
        raise InvalidArgument(f"{dataset.path}: none of the {len(files)} images that it names can be read")
    return int(statistics.median(sides))


def _side(net: zoo.Net, usual: int, wished: Optional[int]) -> int:
    least, normal, most = net.sides
    if wished is not None:
        if not least <= wished <= most or wished % net.multiple:
            takes = f"multiples of {net.multiple} from {least} to {most}" if least < most else f"{most} alone"
            raise InvalidArgument(f"--size is {wished}; net '{net.name}' takes {takes}")
        return wished
    return max(least, min(normal, usual) // net.multiple * net.multiple)


def _readme(plan: recipes.Plan, weights: Optional[Path]) -> str:
    dataset, halves = plan.dataset, plan.halves
    classes = dataset.classes[len(dataset.classes) - dataset.num_shown:]
    names = ", ".join(classes[:20]) + (", ..." if len(classes) > 20 else "")
    begins = f"\nTraining begins with the weights of {plan.copied[0]} of {plan.copied[1]} layers from `{weights}`." if plan.copied else ""
    name = shlex.quote(plan.name)
    ask = dict(classification="classify", detection="detect", segmentation="segment")[dataset.task]
    return f"""# {plan.name}

A net for {dataset.task}, `{plan.net.name}` ({plan.net.summary}), on images of {plan.side}x{plan.side} pixels.
Images for training: {halves.train_count}, for testing: {halves.val_count}; classes: {len(classes)} ({names}).{begins}

```sh
caffe train {name}                     # {counted(plan.epochs, 'epoch')}; if interrupted, run it again
caffe evaluate {name}                  # what it gets wrong: evaluation.html
caffe {ask} {name} IMAGE.jpg        # what an image shows
caffe export {name} --onnx             # for other programs
```

| file | what |
|---|---|
| `solver.prototxt` | how the net is trained; its paths are relative to this folder |
| `train_val.prototxt` | the net for training and testing |
| `deploy.prototxt` | the net for inference, made by `caffe deploy` from the net above |
| `data` | the images, as databases or lists |
| `snapshots` | weights; the commands above take the best ones, else the newest |
| `evaluation.html` | what `caffe evaluate` has found |
| `runs` | a folder for each training, with its curves |
"""
