"""Photographs and runs for the tests of pages."""
import json
import zipfile

import numpy as np
from PIL import Image, ImageDraw

COLORS = {"disc": (210, 60, 40), "square": (50, 90, 200), "triangle": (60, 160, 70)}


def draw(kind, random):
    """A figure of 32 x 32 pixels on a noisy ground."""
    image = Image.fromarray(random.integers(170, 255, (32, 32, 3)).astype(np.uint8))
    x, y, size = *random.integers(4, 12, 2).tolist(), int(random.integers(12, 18))
    pen = ImageDraw.Draw(image)
    if kind == "disc":
        pen.ellipse((x, y, x + size, y + size), fill=COLORS[kind])
    elif kind == "square":
        pen.rectangle((x, y, x + size, y + size), fill=COLORS[kind])
    else:
        pen.polygon([(x, y + size), (x + size, y + size), (x + size // 2, y)], fill=COLORS[kind])
    return image


def make_root(folder):
    """A folder with an archive of photographs next to it, and two runs in it."""
    random = np.random.default_rng(1)
    with zipfile.ZipFile(folder / "figures.zip", "w") as archive:
        for kind in COLORS:
            for number in range(40):
                file = folder / "one.png"
                draw(kind, random).save(file)
                archive.write(file, f"{kind}/{number:02}.png")
    place = folder / "root"
    for name, rate in (("first", "0.1"), ("second", "0.01")):
        run = place / "runs" / name
        run.mkdir(parents=True)
        (run / "solver.prototxt").write_text(f"base_lr: {rate} max_iter: 100")
        (run / "train_net.prototxt").write_text('layer { name: "data" type: "Input" top: "data" } layer { name: "fc" type: "InnerProduct" bottom: "data" top: "fc" }')
        (run / "run.json").write_text(json.dumps({"sessions": [{"start": "2026-01-01T00:00:00Z", "reason": "finished", "stop_iteration": 100}]}))
        (run / "plan.json").write_text(json.dumps({"memory": {"activations": 4096}, "steps": [
            {"layers": "fc", "bytes": 100, "flops": 5, "operands": "1x2 float -> 1x3 float", "kernel": "gemm", "direction": "forward"}]}))
        with open(run / "metrics.jsonl", "w", encoding="utf-8") as lines:
            for step in range(0, 101, 10):
                lines.write(json.dumps({"event": "train", "time": 1e9 + step, "iteration": step, "loss": 1 / (1 + step * float(rate)), "learning_rate": float(rate)}) + "\n")
    return place


def write_run(place, *lines, **session):
    place.mkdir(parents=True)
    (place / "run.json").write_text(json.dumps({"sessions": [{"start": "2026-01-01T00:00:00Z", "reason": "finished", **session}]}))
    with open(place / "metrics.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"event": "train", "time": 1e9, "iteration": 10, "loss": 0.5, **keys}) + "\n" for keys in lines or ({},))
