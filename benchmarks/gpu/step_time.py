#!/usr/bin/env python3
"""Training steps on a GPU, beside PyTorch where it is installed.

  benchmarks/gpu/step_time.py [NET...] [--caffe build/cuda-release/bin/caffe] [--precision fp32 bf16] [--batch N]
                              [--rounds 3] [--iterations 30] [--output FILE]

NET is alexnet, googlenet or resnet50 (all). A step is forward and backward on constant input, without an update, in
both programs: `caffe time`, and torchvision's model of the same name with channels last, TF32 for floats, autocast for
bf16 and cuDNN's own search. Rounds alternate between the two, so that both see the same clocks. Prints JSON; run it
where nothing else uses the GPU.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NETS = ("alexnet", "googlenet", "resnet50")
STEP = re.compile(r"forward-backward time: ([\d.e+-]+) ms")


def with_batch(text, batch):
    """The net's definition with another batch size: the first extent of every shape of its input layers."""
    return re.sub(r"(shape\s*\{\s*dim:\s*)\d+", rf"\g<1>{batch}", text)


def batch_of(text):
    return int(re.search(r"shape\s*\{\s*dim:\s*(\d+)", text).group(1))


def caffe_times(options, definition, precision):
    with tempfile.NamedTemporaryFile("w", suffix=".prototxt") as model:
        model.write(definition)
        model.flush()
        done = subprocess.run(
            [options.caffe, "time", f"--model={model.name}", f"--gpu={options.gpu}", f"--precision={precision}",
             f"--iterations={options.iterations}"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    times = [float(text) for text in STEP.findall(done.stdout)]
    if done.returncode or not times:
        sys.exit(f"caffe time failed with status {done.returncode}\n{done.stdout[-2000:]}")
    return times


class TorchStep:
    """A model of torchvision, ready to be timed."""

    def __init__(self, net, batch, precision, gpu):
        import torch
        import torchvision
        self.torch = torch
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
        device = torch.device("cuda", gpu)
        arguments = {"aux_logits": True, "init_weights": False} if net == "googlenet" else {}
        self.model = getattr(torchvision.models, net)(weights=None, **arguments)
        self.model = self.model.to(device, memory_format=torch.channels_last).train()
        self.images = torch.randn(batch, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
        self.labels = torch.randint(0, 1000, (batch,), device=device)
        self.autocast = torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16")
        for _ in range(5):
            self.step()

    def step(self):
        loss_of = self.torch.nn.functional.cross_entropy
        with self.autocast:
            scores = self.model(self.images)
            if isinstance(scores, tuple):  # GoogLeNet's three classifiers
                loss = loss_of(scores[0], self.labels) + .3 * sum(loss_of(aux, self.labels) for aux in scores[1:])
            else:
                loss = loss_of(scores, self.labels)
        loss.backward()
        self.model.zero_grad(set_to_none=True)

    def times(self, iterations):
        times = []
        for _ in range(iterations):
            begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            self.step()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        return times


def summary(times, batch):
    median = statistics.median(times)
    return {"step_ms": round(median, 3), "step_ms_best": round(min(times), 3), "images_per_s": round(1000 * batch / median, 1)}


def compare(net, precision, options, has_torch):
    definition = (ROOT / "benchmarks" / "nets" / f"{net}.prototxt").read_text()
    if options.batch:
        definition = with_batch(definition, options.batch)
    batch = batch_of(definition)
    torch_step = TorchStep(net, batch, precision, options.gpu) if has_torch else None
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours += caffe_times(options, definition, precision)
        if torch_step:
            theirs += torch_step.times(options.iterations)
    result = {"net": net, "precision": precision, "batch": batch, "caffe": summary(ours, batch)}
    if torch_step:
        result["torch"] = summary(theirs, batch)
        result["caffe_over_torch"] = round(result["caffe"]["images_per_s"] / result["torch"]["images_per_s"], 3)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", default=NETS, metavar="NET")
    parser.add_argument("--caffe", default=str(ROOT / "build" / "cuda-release" / "bin" / "caffe"))
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--precision", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"])
    parser.add_argument("--batch", type=int, help="instead of the definitions' own")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    try:
        import torch
        import torchvision
        has_torch = torch.cuda.is_available()
        versions = {"torch": torch.__version__, "torchvision": torchvision.__version__}
    except ImportError:
        has_torch, versions = False, {}
    steps = [compare(net, precision, options, has_torch) for net in options.nets for precision in options.precision]
    text = json.dumps({"versions": versions, "steps": steps}, indent=1) + "\n"
    sys.stdout.write(text)
    if options.output:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
