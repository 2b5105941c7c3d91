#!/usr/bin/env python3
"""Makes the pictures of docs/images from real runs.

  scripts/docs_images.py [NAME...]

NAMES: plan, train, net, curve, trace, answers, evaluation, tensorboard, site, studio; default all. train, curve and tensorboard
show one training, which is kept in build/pictures-run until the folder is removed. Needs a build, the databases of
examples/mnist/create_mnist.sh and scripts/install_dependencies.sh docs; evaluation, tensorboard and site need
chromium too (Debian's package), studio what scripts/install_dependencies.sh studio installs, evaluation scikit-learn and Jinja2, and site what scripts/docs_site.sh has built. What comes from PyPI
goes into build/pictures-venv (docs/images/requirements.txt).
"""
import argparse
import contextlib
import fcntl
import functools
import http.server
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
VENV = ROOT / "build" / "pictures-venv"
REQUIREMENTS = IMAGES / "requirements.txt"
BINARIES = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve() / "bin"
LENET = "examples/mnist/lenet_train_test.prototxt"
RUN = ROOT / "build" / "pictures-run"
LIMIT = 200_000


def enter_environment():
    """Continues in the virtual environment, made where its requirements have changed."""
    if pathlib.Path(sys.prefix).resolve() == VENV.resolve():
        return
    stamp = VENV / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != REQUIREMENTS.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--system-site-packages", VENV], check=True)
        subprocess.run([VENV / "bin/pip", "install", "--quiet", "-r", REQUIREMENTS], check=True)
        shutil.copyfile(REQUIREMENTS, stamp)
    os.execv(VENV / "bin/python", [VENV / "bin/python", *sys.argv])


def save_terminal(name, command, text, columns):
    """A terminal's text as docs/images/NAME.svg."""
    import rich.console
    import rich.text

    console = rich.console.Console(record=True, width=columns, file=open(os.devnull, "w"))
    console.print(rich.text.Text(f"$ {command}", style="bold green"))
    console.print(rich.text.Text(text), overflow="ignore", no_wrap=True, crop=True)
    svg = console.export_svg(title=" ".join(command.split()[:2]), unique_id=name)
    # The viewer's own font: nothing is fetched.
    (IMAGES / f"{name}.svg").write_text(re.sub(r"@font-face {.*?}", "", svg, flags=re.DOTALL))


def plan():
    command = f"caffe plan {LENET} -phase test"
    text = subprocess.run([BINARIES / "caffe", *command.split()[1:]], cwd=ROOT, check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    save_terminal("plan", command, text.rstrip(), 120)


TRAIN = "caffe train examples/mnist/lenet_solver.prototxt -run_dir runs/lenet -histograms 500"
COLUMNS, ROWS = 120, 16


def run():
    """The log, as a terminal gets it, of the whole training of LeNet; the run folder is RUN/lenet."""
    if (RUN / "lenet.log").exists():
        return (RUN / "lenet.log").read_bytes()
    shutil.rmtree(RUN, ignore_errors=True)
    RUN.mkdir(parents=True)
    arguments = [str(BINARIES / "caffe"), *TRAIN.replace("runs/lenet", str(RUN / "lenet")).split()[1:],
                 "--set", f"snapshot_prefix={RUN}/lenet", "--set", "random_seed=1"]
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    log = bytearray()
    with subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=terminal,
                          env={**os.environ, "TERM": "xterm"}) as process:
        os.close(terminal)
        with contextlib.suppress(OSError):  # the end of the program
            while part := os.read(controller, 65536):
                log += part
    if process.returncode:
        sys.exit(f"{TRAIN} failed:\n{log.decode()[-2000:]}")
    (RUN / "lenet.log").write_bytes(log)
    return bytes(log)


def train():
    """The terminal in the middle of the training."""
    import pyte

    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    for part in re.split(rb"(?=\r\x1b)", run()):  # at each change of the live line
        stream.feed(part)
        if re.match(r"iteration 45\d\d/", screen.display[screen.cursor.y]):
            break
    save_terminal("train", TRAIN, "\n".join(row.rstrip() for row in screen.display), COLUMNS)


def net():
    import find_caffe  # noqa: F401  # pylint: disable=unused-import
    import caffe
    from caffe import display

    (IMAGES / "net.svg").write_text(display.net_svg(caffe.Net(str(ROOT / "examples/mnist/lenet.prototxt"), caffe.TEST)))


def curve():
    run()
    subprocess.run([sys.executable, ROOT / "tools/extra/plot_training_log.py", "0", IMAGES / "curve.png", RUN / "lenet.log"],
                   check=True)
    shrink("curve")


def trace():
    """Three iterations of LeNet with two workers, drawn from the timeline that -trace writes: a row per thread."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "trace.json")
        subprocess.run([BINARIES / "caffe", "train", "examples/mnist/lenet_solver.prototxt", "-workers", "2", "-trace", file,
                        "--set", "max_iter=200", "--set", "snapshot_after_train=false", "--set", "test_initialization=false"],
                       cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
        events = json.loads(file.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    spans = [event for event in events if event["ph"] == "X" and event["name"] not in ("forward", "backward")]
    begins = sorted(event["ts"] for event in events if event["name"] == "forward" and event["tid"] == 0)
    begin, end = min(zip(begins, begins[3:]), key=lambda window: window[1] - window[0])  # the least disturbed
    rows = sorted({(event["pid"], event["tid"]) for event in spans}, reverse=True)
    names = list(dict.fromkeys(event["name"].split(" (")[0] for event in spans))
    figure, axes = plt.subplots(figsize=(11, 3.2), dpi=100)
    for color, name in enumerate(names):
        for row, place in enumerate(rows):
            bars = [((event["ts"] - begin) / 1e3, event["dur"] / 1e3) for event in spans if place == (event["pid"], event["tid"])
                    and event["name"].split(" (")[0] == name and begin <= event["ts"] < end]
            axes.broken_barh(bars, (row - 0.4, 0.8), color=plt.get_cmap("tab20")(color), label=name if row == 0 else None)
    axes.set(xlabel="ms", yticks=range(len(rows)), yticklabels=[f"rank {rank} {threads[thread]}" for rank, thread in rows],
             xlim=(0, (end - begin) / 1e3))
    axes.legend(ncol=7, loc="lower center", bbox_to_anchor=(0.5, 1), fontsize="small", frameon=False)
    figure.savefig(IMAGES / "trace.png", bbox_inches="tight")
    shrink("trace")


def shrink(name):
    """Fewer colours."""
    from PIL import Image

    path = IMAGES / f"{name}.png"
    Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)


def screenshot(name, url, wait_for, width=1400):
    """The page, once a selector of it is there."""
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium")
    if not browser:
        sys.exit(f"{name}: no chromium; on Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        program = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--enable-unsafe-swiftshader"])
        page = program.new_page(viewport={"width": width, "height": 800})
        page.goto(url)
        page.wait_for_selector(wait_for, timeout=60_000)
        page.wait_for_timeout(3000)  # for what moves
        page.screenshot(path=IMAGES / f"{name}.png")
        program.close()
    shrink(name)


# Scenes that the models of examples/recipes have not seen.
def scenes(folder, images, side):
    subprocess.run([sys.executable, ROOT / "scripts/make_scenes.py", folder / "scenes", f"--images={images}", f"--side={side}", "--seed=7"],
                   check=True, stdout=subprocess.DEVNULL)


def answers():
    """Four scenes with the boxes, and below with the masks, that the models of examples/recipes find."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenes(folder, 6, 128)
        rows = []
        for command, recipe, files in (("detect", "boxes", "boxes"), ("segment", "masks", "masks/images")):
            files = sorted((folder / "scenes" / files).glob("*.png"))[1:5]
            for file in files:  # larger, so that the names fit
                Image.open(file).resize((256, 256), Image.BICUBIC).save(file)
            subprocess.run([BINARIES / "caffe", command, ROOT / "examples/recipes" / recipe, *files, f"--draw={folder / recipe}"],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            rows.append([Image.open(folder / recipe / file.name) for file in files])
        side, gap = rows[0][0].width, 6
        sheet = Image.new("RGB", (4 * (side + gap) - gap, 2 * (side + gap) - gap), "white")
        for y, row in enumerate(rows):
            for x, image in enumerate(row):
                sheet.paste(image.resize((side, side)), (x * (side + gap), y * (side + gap)))
    sheet.save(IMAGES / "answers.png")
    shrink("answers")


def evaluation():
    """The page of `caffe evaluate` for the detector of examples/recipes/boxes."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenes(folder, 120, 128)
        shutil.copy(ROOT / "examples/recipes/boxes/snapshots/boxes_best.caffemodel", folder)
        for words in (["new", "scenes/boxes", "--output=finder", "--val=90%"],
                      ["evaluate", "finder", "--weights=boxes_best.caffemodel"]):
            subprocess.run([BINARIES / "caffe", *words], cwd=folder, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        file = folder / "finder/evaluation.html"
        file.write_text(file.read_text().replace(f"{folder}/", "").replace("../", ""))
        screenshot("evaluation", file.as_uri(), "main", width=1100)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def tensorboard():
    run()
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with subprocess.Popen([VENV / "bin/tensorboard", "--logdir", RUN, "--host", "127.0.0.1", "--port", str(port)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(120):
                time.sleep(1)
                with contextlib.suppress(OSError):
                    if b"train/loss" in urllib.request.urlopen(f"{address}/data/plugin/scalars/tags").read():
                        break
            screenshot("tensorboard", f"{address}/?tagFilter=accuracy%7Closs%7Crate#timeseries", "scalar-card")
        finally:
            server.send_signal(signal.SIGTERM)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def site():
    handler = functools.partial(Quiet, directory=ROOT / "build" / "site")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        screenshot("site_home", f"{address}/index.html?q=confusion", ".md-search-result__item")
        screenshot("site_layers", f"{address}/docs/layers.html", "table")
        server.shutdown()


def studio():
    """Pages of the studio, as its browser test sees them."""
    from PIL import Image

    python = ROOT / "build" / "studio-venv" / "bin" / "python"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([python, "-m", "pytest", "-q", "-c", ROOT / "pyproject.toml", f"--rootdir={ROOT}", "-p", "no:cacheprovider",
                        ROOT / "tests/studio/test_pages.py", "-k", "compared or photographs"],
                       check=True, env={**os.environ, "CAFFE_STUDIO_SHOTS": name}, stdout=subprocess.DEVNULL)
        shots = {file.stem[3:]: Image.open(file).convert("RGB") for file in folder.glob("*.png")}
        shots["compare"].save(IMAGES / "studio_runs.png")
        shots["try"].crop((0, 0, 1280, 560)).save(IMAGES / "studio_answer.png")
        width, height, gap = 480, 322, 8
        strip = Image.new("RGB", (3 * (width + gap) - gap, 2 * (height + gap) - gap), (138, 138, 138))
        for place, shot in enumerate(("data", "jobs", "trained", "try", "evaluation", "activations")):
            small = shots[shot].resize((width, height), Image.LANCZOS)
            strip.paste(small, (place % 3 * (width + gap), place // 3 * (height + gap)))
        strip.save(IMAGES / "studio_strip.png")
    for picture in ("studio_runs", "studio_answer", "studio_strip"):
        shrink(picture)


PICTURES = {make.__name__: make for make in (plan, train, net, curve, trace, answers, evaluation, tensorboard, site,
                                             studio)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PICTURES))
    names = parser.parse_args().names or list(PICTURES)
    unknown = set(names) - set(PICTURES)
    if unknown:
        parser.error(f"unknown {', '.join(sorted(unknown))}; there are {', '.join(PICTURES)}")
    enter_environment()
    sys.path.insert(0, str(ROOT / "python"))
    for name in names:
        PICTURES[name]()
    for path in [*IMAGES.glob("*.svg"), *IMAGES.glob("*.png")]:
        if path.stat().st_size > LIMIT:
            sys.exit(f"{path.relative_to(ROOT)} has {path.stat().st_size} bytes; at most {LIMIT}")


if __name__ == "__main__":
    main()
