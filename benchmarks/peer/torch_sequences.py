"""Times steps of a net of peer_sequences.py in PyTorch: prints the median in ms.

    torch_sequences.py NAME ARGUMENTS TYPE STEPS THREADS [compiled]      ARGUMENTS as JSON
"""
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        items, rows, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(items, rows, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(items, rows, width))
        return x + self.narrow(functional.gelu(self.wide(self.norms[1](x))))


class Transformer(nn.Module):
    def __init__(self, first, rows, blocks, width, heads, causal, outputs):
        super().__init__()
        self.first, self.causal = first, causal
        self.positions = nn.Parameter(torch.zeros(rows, width))
        self.blocks = nn.Sequential(*(Block(width, heads, causal) for _ in range(blocks)))
        self.norm, self.scores = nn.LayerNorm(width), nn.Linear(width, outputs, bias=not causal)

    def forward(self, x, labels):
        x = self.first(x)
        x = x.flatten(2).transpose(1, 2) if x.dim() == 4 else x
        x = self.norm(self.blocks(x + self.positions))
        scores = self.scores(x).flatten(0, 1) if self.causal else self.scores(x.mean(1))
        return functional.cross_entropy(scores.float(), labels.flatten())


class Recurrent(nn.Module):
    def __init__(self, kind, width, layers, both):
        super().__init__()
        self.rnn = getattr(nn, kind)(width, width, layers, bidirectional=both)

    def forward(self, x):
        return self.rnn(x)[0].float().mean()


def gpt(blocks, width, heads, items, steps, characters):
    net = Transformer(nn.Embedding(characters, width), steps, blocks, width, heads, True, characters)
    return net, [torch.zeros(items, steps, dtype=torch.long)] * 2


def vit(blocks, width, heads, items, pixels, patch, classes):
    net = Transformer(nn.Conv2d(3, width, patch, patch), (pixels // patch) ** 2, blocks, width, heads, False, classes)
    return net, [torch.randn(items, 3, pixels, pixels), torch.zeros(items, dtype=torch.long)]


def recurrent(kind, steps, items, width, layers=1, both=False):
    return Recurrent(kind, width, layers, both), [torch.randn(steps, items, width, requires_grad=True)]


def main():
    name, arguments, dtype, steps, threads = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    torch.set_num_threads(threads)
    net, inputs = {"gpt": gpt, "vit": vit, "recurrent": recurrent}[name](**arguments)
    is_narrow = dtype == "bf16"
    if is_narrow and name == "recurrent":  # autocast leaves them in float
        net, inputs = net.bfloat16(), [inputs[0].detach().bfloat16().requires_grad_()]
    if sys.argv[6:]:
        net = torch.compile(net)
    times = []
    for _ in range(steps + 2):
        begin = time.perf_counter()
        net.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_narrow and name != "recurrent"):
            loss = net(*inputs)
        loss.backward()
        times.append(1e3 * (time.perf_counter() - begin))
    print(statistics.median(times[2:]))


if __name__ == "__main__":
    main()
