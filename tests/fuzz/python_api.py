#!/usr/bin/env python3
"""Random sequences of calls to everything public in the package caffe, with right and wrong arguments, in one process.

    python_api.py [--calls N] [--seconds N] [--seed N] [--found DIR]

An exception is a valid result. Findings are: a crash, an end of the process, a call of more than 10 s (40 s if it only waits), SystemError,
InternalError and an "unknown exception". Then the last calls are printed and stored in DIR, and --seed and --calls repeat
them. Public names are found by inspection; a new name takes part automatically.
"""
import argparse
import collections
import contextlib
import faulthandler
import gc
import inspect
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

SECONDS_PER_CALL = 10  # processor time
SECONDS_ASLEEP = 40
MOST_BYTES = 6 << 30
SHOWN_CALLS = 15
FOUND = 3  # exit status of a worker with an invalid exception
MODULES = ("io", "draw", "display", "coord_map", "summary", "net_spec", "single_layer", "pycaffe", "solver", "classifier",
           "detector")
# Their effect outlives a call, or affects other processes: the log's crash handler, ranks that wait for others.
NOT_CALLED = {"init_log", "set_solver_count", "set_solver_rank", "set_multiprocess", "NCCL", "Any", "Iterable", "Mapping"}
NET = """
name: 'small' force_backward: true
layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv' convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }
layer { name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'ip' inner_product_param { num_output: 5 } }
layer { name: 'prob' type: 'Softmax' bottom: 'ip' top: 'prob' }
"""
TRAINED = """
layer { name: 'x' type: 'DummyData' top: 'x' top: 't'
        dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 2 } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 2 } }
layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'loss' }
"""
SOLVER = "net: 'trained.prototxt' base_lr: 0.01 lr_policy: 'fixed' momentum: 0.9 max_iter: 3 snapshot_prefix: 'run' type: '%s'"


def write_files():
    """Writes files that calls can read into the current folder."""
    import caffe
    import numpy as np
    files = {"net.prototxt": NET, "trained.prototxt": TRAINED, "sgd.prototxt": SOLVER % "SGD",
             "adam.prototxt": SOLVER % "Adam", "wrong.prototxt": "layer { nothing: 1 }", "empty": "", "noise": "\x00\xff" * 99}
    for name, text in files.items():
        pathlib.Path(name).write_text(text, encoding="utf-8")
    net = caffe.Net("net.prototxt", caffe.TEST)
    net.save("net.caffemodel")
    net.save_hdf5("net.caffemodel.h5")
    solver = caffe.SGDSolver("sgd.prototxt")
    solver.step(1)
    solver.snapshot()
    np.save("mean.npy", np.zeros((3, 8, 8)))
    return sorted(path.name for path in pathlib.Path().iterdir())


class Arguments:
    """Draws values for parameters; the parameter's name often decides the right kind."""

    def __init__(self, draw, files, objects):
        import caffe
        import numpy as np
        self.draw, self.files, self.objects = draw, files, objects
        self.np, self.caffe = np, caffe
        names = ["data", "conv", "ip", "prob", "x", "y", "t", "loss", "relu"]
        self.by_name = {
            r"file|path|source|model|weights|image_?file|mean_?file": lambda: draw.choice(files),
            r"^(blobs|diffs|in_|top|bottom|name|start|end|key|layer)": lambda: draw.choice(
                [draw.choice(names), [draw.choice(names)], names[:2]]),
            r"phase": lambda: draw.choice([caffe.TEST, caffe.TRAIN]),
            r"^(n|num|iters?|step|count|index|i|id|rank|seed|level|axis|mb|arg\d)": lambda: draw.randrange(6),
            r"dims?|shape": lambda: tuple(draw.randrange(1, 9) for _ in range(draw.randrange(1, 5))),
            r"type": lambda: draw.choice(caffe.layer_type_list() + caffe.solver_type_list()),
            r"im|data|arr|labels|mean|loss|inputs|diff|value": self.array,
            r"order|swap|transpose": lambda: draw.choice([(2, 0, 1), (2, 1, 0), (0, 1, 2)]),
            r"scale|interp|lr": lambda: draw.choice([0, 1, 255.0, 0.5]),
            r"^f$|fn|callback|on_|function": lambda: draw.choice([lambda *_: None, lambda *_: 1 / 0, print]),
            r"net|solver|param|proto|spec": self.object,
        }
        self.names = names + ["Convolution", "ReLU", "convolution_param", "num_output", "kernel_size", "", "no", "é\x00"]

    def array(self):
        shape = self.draw.choice([(2, 3, 8, 8), (3, 8, 8), (8, 8, 3), (8, 8), (2,), (), (0, 3), (2, 3), (1, 1, 1, 1, 1)])
        array = self.np.zeros(shape, self.draw.choice(["f4", "f8", "u1", "i8", "?", "c16", "O", "U3", "f2", "S2"]))
        return self.draw.choice([array, array, array.T, array[::-1] if shape else array, array.tolist()])

    def object(self):
        return self.draw.choice(self.objects) if self.objects else None

    def any(self):
        draw = self.draw
        return draw.choice([
            self.array, self.object, self.object, lambda: draw.choice(self.files), lambda: draw.choice(self.names),
            lambda: draw.randrange(-3, 10), lambda: draw.choice([None, True, -1, 2 ** 63, -2 ** 63, 2 ** 64, 10 ** 30, 1 << 31]),
            lambda: draw.choice([0.5, float("nan"), float("inf"), -1e308, 1j]), lambda: draw.choice([b"bytes", "", set(), object(), int]),
            lambda: [self.any() for _ in range(draw.randrange(4))], lambda: tuple(self.any() for _ in range(draw.randrange(4))),
            lambda: {draw.choice(self.names): self.any() for _ in range(draw.randrange(3))}, lambda: lambda *_: draw.random(),
            lambda: self.caffe.proto.caffe_pb2.NetParameter(name="n"), lambda: slice(None, draw.randrange(9), 2)])()

    def named(self, name):
        if self.draw.random() < 0.75:
            for pattern, make in self.by_name.items():
                if re.search(pattern, name.lower()):
                    return make()
        return self.any()

    def of(self, function):
        """Arguments that follow the signature, sometimes too few, too many or different ones."""
        draw = self.draw
        names = parameters(function)
        if draw.random() < 0.1:
            return [self.any() for _ in range(draw.randrange(4))], {}
        wanted = [(name, is_needed) for name, is_needed in names if is_needed or draw.random() < 0.25]
        split = draw.randrange(len(wanted) + 1) if draw.random() < 0.3 else sum(is_needed for _, is_needed in wanted)
        keywords = {name: self.named(name) for name, _ in wanted[split:] if name != "self"}
        if draw.random() < 0.1:
            keywords[draw.choice(self.names)] = self.any()
        return [self.named(name) for name, _ in wanted[:split]], keywords


def parameters(function):
    """(name, whether it is required) of each parameter, from the signature, or from pybind11's docstring."""
    try:
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return [(name, parameter.default is parameter.empty) for name, parameter in inspect.signature(function).parameters.items()
                if parameter.kind not in kinds]
    except (ValueError, TypeError):
        text = re.search(r"\((.*)\)", (getattr(function, "__doc__", "") or "").split("\n")[0])
        parts = re.findall(r"(\w+): [^,=]*(=?)", text[1]) if text else []
        return [(name, not default) for name, default in parts if name != "self"]


def is_ours(value):
    return (type(value).__module__ or "").split(".")[0] in ("caffe", "_caffe") or isinstance(value, dict)


def public(thing):
    return [name for name in dir(thing) if not name.startswith("_") and name not in NOT_CALLED]


class Calls:
    """Draws calls and makes them. `tell(text)` is called before each one."""

    def __init__(self, seed, planted, tell):
        import caffe
        import numpy as np
        self.draw, self.tell, self.caffe, self.np = random.Random(seed), tell, caffe, np
        self.objects = []
        self.arguments = Arguments(self.draw, write_files(), self.objects)
        self.roots = [caffe] * 4 + [getattr(caffe, name) for name in MODULES] + [caffe.layers, caffe.params]
        self.planted, self.number = planted, 0
        self.outcomes = collections.Counter()

    def target(self):
        """(text, function) for something to call, get, set or index."""
        draw = self.draw
        if not self.objects or draw.random() < 0.35:
            root = draw.choice(self.roots)
            if root in (self.caffe.layers, self.caffe.params):
                name = draw.choice(self.caffe.layer_type_list())
            else:
                name = draw.choice(public(root))
            return f"{getattr(root, '__name__', 'params')}.{name}", getattr(root, name)
        large = [thing for thing in self.objects if isinstance(thing, (self.caffe.Net, self.caffe.Solver))]
        thing = draw.choice(large if large and draw.random() < 0.5 else self.objects)
        text, way = type(thing).__name__, draw.random()
        if way < 0.12:
            return draw.choice([(f"len({text})", lambda: len(thing)), (f"list({text})", lambda: list(zip(range(20), thing))),
                                (f"repr({text})", lambda: repr(thing)), (f"bool({text})", lambda: bool(thing)),
                                (f"array({text})", lambda: self.np.array(thing)), (f"hash({text})", lambda: hash(thing))])
        if way < 0.3:
            key = self.arguments.named(draw.choice(["key", "index"]))
            return f"{text}[{key!r:.40}]", lambda: thing[key]
        if isinstance(thing, dict):
            return f"{text}.values()", lambda: draw.choice(list(thing.values()))
        if isinstance(thing, self.np.ndarray):  # tests the memory, which may be ours, not NumPy's methods
            return f"{text}[...] =", lambda: thing.__setitem__(..., self.arguments.array())
        name = draw.choice(public(thing) or ["none"])
        if way < 0.4:
            value = self.arguments.named(name)
            return f"{text}.{name} = {value!r:.60}", lambda: setattr(thing, name, value)
        if way < 0.45 and isinstance(getattr(type(thing), name, None), property):
            return f"{text}.{name}[...] =", lambda: getattr(thing, name).__setitem__(..., self.arguments.any())
        return f"{text}.{name}", Lazy(thing, name)

    def one(self):
        self.number += 1
        if self.planted and self.number == 50:
            plant(self.planted, self.tell)
        if self.draw.random() < 0.02:
            return self.make_right()
        text, function = self.target()
        if isinstance(function, Lazy):
            self.tell(text)
            function = function.get()
        if not callable(function):
            return self.keep(function)
        positional, keywords = self.arguments.of(function)
        if merges_with_itself(function, positional):
            return None
        shown = [f"{value!r:.60}" for value in positional] + [f"{name}={value!r:.60}" for name, value in keywords.items()]
        self.tell(f"{text}({', '.join(shown)})")
        return self.keep(function(*positional, **keywords))

    def make_right(self):
        """Creates a working net or solver for later calls."""
        name, phase = self.draw.choice([("net", self.caffe.TEST), ("trained", self.caffe.TRAIN), ("sgd", None), ("adam", None)])
        self.tell(f"a right {name}")
        file = name + ".prototxt"
        self.objects.append(self.caffe.get_solver(file) if phase is None else self.caffe.Net(file, phase))

    def keep(self, result):
        if is_ours(result) or isinstance(result, self.np.ndarray) and result.nbytes < 1 << 20:
            self.objects.append(result)
        elif isinstance(result, (list, tuple)):
            self.objects += [value for value in result[:3] if is_ours(value)]
        while len(self.objects) > 40 or self.objects and self.draw.random() < 0.05:
            self.objects.pop(self.draw.randrange(len(self.objects)))
        if self.draw.random() < 0.01:
            gc.collect()

    def run(self):
        """Makes one call. Returns a description of a wrong result, or None."""
        try:
            self.one()
            self.outcomes["returned"] += 1
        except (SystemError, self.caffe.InternalError) as error:
            return f"{type(error).__name__}: {error}"
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.outcomes[type(error).__name__] += 1
            return f"unknown exception: {error}" if "unknown exception" in str(error).lower() else None
        except BaseException as error:  # pylint: disable=broad-exception-caught
            return f"{type(error).__name__}: {error}"
        return None


class Lazy:  # pylint: disable=too-few-public-methods
    """An attribute that is read after it has been reported, because a property may crash."""

    def __init__(self, thing, name):
        self.thing, self.name = thing, name

    def get(self):
        return getattr(self.thing, self.name)


def plant(kind, tell):
    """Simulates a broken binding (for tests)."""
    tell(f"planted {kind}")
    if kind == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif kind == "hang":
        while True:
            pass
    elif kind == "exit":
        os._exit(0)  # pylint: disable=protected-access
    raise SystemError("planted")


def work(options, output):
    """The process that makes the calls. Each call is written to `output` as a line before it begins."""
    faulthandler.enable(file=sys.stdout)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def tell(text):
        output.write(text.replace("\n", " ") + "\n")
        output.flush()

    tell("makes its files")
    calls = Calls(options.seed, options.plant, tell)
    stops = []
    signal.signal(signal.SIGTERM, lambda number, _: stops.append(number))
    end = time.monotonic() + options.seconds if options.seconds else float("inf")
    while calls.number < options.calls and time.monotonic() < end and not stops:
        with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
            wrong = calls.run()
        if not pathlib.Path("/proc/self/fd/1").exists():
            wrong = "closed the standard output"
        if wrong:
            tell(wrong)
            os._exit(FOUND)  # pylint: disable=protected-access
    print(f"python_api: {calls.number} calls, seed {options.seed}: " +
          ", ".join(f"{count} {name}" for name, count in calls.outcomes.most_common(12)), flush=True)
    tell("end")
    os._exit(0)  # skips destroying objects in an order that no program has


def merges_with_itself(function, positional):
    """True if protobuf (not our code) would end the process, because a message is merged with itself."""
    objects = [getattr(function, "__self__", None), *positional]
    return getattr(function, "__name__", "") == "MergeFrom" and any(
        one is other for i, one in enumerate(objects) for other in objects[:i])


def state_of(process):
    """The process's state (R: runs or waits for the processor) and the processor seconds that it has used."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(process, lines):
    """Returns a worker's last calls, and whether it hangs. Waiting for the processor on a busy machine does not count."""
    last = collections.deque(maxlen=SHOWN_CALLS)
    os.set_blocking(lines.fileno(), False)
    asleep_since, began, rest = time.monotonic(), 0, b""
    while True:
        chunk = lines.read(1 << 16)
        if chunk == b"":
            return last, False
        if chunk:
            *whole, rest = (rest + chunk).split(b"\n")
            last.extend(line.decode(errors="replace") for line in whole)
            asleep_since, began = time.monotonic(), state_of(process)[1]
            continue
        state, seconds = state_of(process)
        if state == "R":
            asleep_since = time.monotonic()
        if seconds - began > SECONDS_PER_CALL or time.monotonic() - asleep_since > SECONDS_ASLEEP:
            process.kill()
            return last, True
        time.sleep(0.02)


def parse(doc, plants=()):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1 << 62)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--found", type=lambda path: pathlib.Path(path).resolve(), help="where the last calls of a finding are kept")
    parser.add_argument("--plant", choices=plants, help=argparse.SUPPRESS)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.calls == 1 << 62 and not options.seconds:
        options.calls = 10000
    return options


def told(options):
    """The stream to which a worker writes each call."""
    return os.fdopen(options.worker, "w", encoding="utf-8", errors="backslashreplace")


def supervise(options, script):
    """Runs a script as the worker, and prints the results of its calls. Returns the exit status."""
    name = pathlib.Path(script).stem
    read, write = os.pipe()
    environment = {**os.environ, "GLOG_minloglevel": "3", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([sys.executable, os.path.abspath(script), *sys.argv[1:], f"--calls={options.calls}", f"--worker={write}"],
                                   cwd=folder, pass_fds=[write], env=environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace")
        os.close(write)
        signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))  # it then prints the number of calls
        with os.fdopen(read, "rb", buffering=0) as lines:
            last, hangs = watch(process, lines)
        output = process.communicate()[0]
    sys.stdout.write(output)
    if process.returncode == 0 and last and last[-1] == "end" and output:
        return 0
    what = f"takes more than {SECONDS_PER_CALL} s" if hangs else f"status {process.returncode}"
    report = f"{name}: seed {options.seed}: {what}, in the last of\n" + "".join(f"  {call}\n" for call in last)
    print(report)
    if options.found:
        options.found.mkdir(parents=True, exist_ok=True)
        (options.found / "calls").write_text(report + output, encoding="utf-8")
    return 1


def main():
    options = parse(__doc__, ["crash", "hang", "exit", "system_error"])
    if options.worker is not None:
        work(options, told(options))
    return supervise(options, __file__)


if __name__ == "__main__":
    sys.exit(main())
