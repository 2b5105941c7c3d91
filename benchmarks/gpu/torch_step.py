#!/usr/bin/env python3
"""Training steps of one of torch_nets/*.json in PyTorch; scripts/caffe-gpu-check runs it.

  benchmarks/gpu/torch_step.py NET [--batch 256] [--precision bf16] [--compile] [--inference] [--gpu 0]
                               [--iterations 50]

A step is the same as in `caffe time --noise --update`: forward, backward and an update by SGD with momentum, on Gaussian
noise in the device's memory. Uses channels-last, autocast for 16 bits, TF32 for floats, cuDNN's benchmark mode, and a fused
optimizer. With --inference times forward alone, with 16-bit weights. Prints one line of JSON; the exit status is 3 if there
is no PyTorch with a GPU.
"""
import argparse
import contextlib
import json
import math
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peer"))
BLOCK = 10  # steps launched before the host waits, as in `caffe time`
WARM_UPS = 6


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1) + 0.5)]


def make_net(torch, content):
    """The net with weights that keep activations in range. Avoids NumPy, which is not installed everywhere."""
    from torch_net import TorchNet
    generator = torch.Generator().manual_seed(1)
    weights = {}
    for step in content["steps"]:
        for i, key in enumerate(step["weights"]):
            shape = content["weights"][key]
            if step["kind"] == "batch_norm" or i == 1:
                weights[key] = torch.full(shape, 1.0 - i)
            else:
                deviation = (2 / math.prod(shape[1:])) ** 0.5
                weights[key] = deviation * torch.randn(shape, generator=generator)
    return TorchNet(content["steps"], weights)


def classes_of(content):
    products = [step for step in content["steps"] if step["kind"] in ("inner_product", "convolution")]
    return content["weights"][products[-1]["weights"][0]][0]


class Training:
    def __init__(self, torch, options, device):
        self.torch = torch
        content = json.loads((HERE / "torch_nets" / f"{options.net}.json").read_text(encoding="utf-8"))
        self.net = make_net(torch, content).to(device, memory_format=torch.channels_last).train()
        self.call = torch.compile(self.net) if options.compile else self.net
        self.images = torch.randn(options.batch, *content["image"], device=device).to(memory_format=torch.channels_last)
        self.labels = torch.randint(0, classes_of(content), (options.batch,), device=device)
        fused = {"fused": True} if device.type == "cuda" else {}
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-4, **fused)
        types = {"bf16": torch.bfloat16, "fp16": torch.float16}
        dtype = types.get(options.precision)
        self.autocast = (lambda: torch.autocast(device.type, dtype)) if dtype else contextlib.nullcontext
        self.scaler = torch.amp.GradScaler(device.type, enabled=options.precision == "fp16")

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast():
            loss = self.call(self.images, self.labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def prepare_inference(self, precision):
        """Converts weights and images to 16 bits, so that no casts occur in the net."""
        self.net.eval()
        dtype = {"bf16": self.torch.bfloat16, "fp16": self.torch.float16}.get(precision, self.torch.float32)
        self.net.to(dtype)
        self.images = self.images.to(dtype)

    def infer(self):
        with self.torch.no_grad():
            self.call(self.images, self.labels)


def measure(step, wait, iterations):
    """Milliseconds per step, for each block."""
    for _ in range(WARM_UPS):
        step()
    wait()
    times = []
    for _ in range(max(1, iterations // BLOCK)):
        begin = time.perf_counter()
        for _ in range(BLOCK):
            step()
        wait()
        times.append((time.perf_counter() - begin) * 1000 / BLOCK)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net", choices=sorted(file.stem for file in (HERE / "torch_nets").glob("*.json")))
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--precision", choices=["fp32", "bf16", "fp16"], default="bf16")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--inference", action="store_true")
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--cpu", action="store_true", help="to try the program where there is no GPU")
    options = parser.parse_args()
    begin = time.monotonic()
    try:
        import torch
    except ImportError as error:
        print(f"no PyTorch: {error}", file=sys.stderr)
        sys.exit(3)
    if not options.cpu and not torch.cuda.is_available():
        print("PyTorch sees no GPU", file=sys.stderr)
        sys.exit(3)
    device = torch.device("cpu") if options.cpu else torch.device("cuda", options.gpu)
    if not options.cpu:
        torch.cuda.set_device(device)  # the device that synchronize() waits for
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    training = Training(torch, options, device)
    if options.inference:
        training.prepare_inference(options.precision)
    times = measure(training.infer if options.inference else training.step, (lambda: None) if options.cpu else torch.cuda.synchronize, options.iterations)
    p50 = percentile(times, 0.5)
    result = {"net": options.net, "precision": options.precision, "batch": options.batch, "compile": options.compile, "inference": options.inference,
              "p10_ms": percentile(times, 0.1), "p50_ms": p50, "p90_ms": percentile(times, 0.9),
              "images_per_s": 1000 * options.batch / p50, "total_seconds": time.monotonic() - begin,
              "torch": torch.__version__}
    if not options.cpu:
        result.update(peak_bytes=torch.cuda.max_memory_reserved(device), cudnn=torch.backends.cudnn.version())
    print(json.dumps(result))


if __name__ == "__main__":
    main()
