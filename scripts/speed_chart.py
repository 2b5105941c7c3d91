#!/usr/bin/env python3
"""Draws docs/images/speed.svg: training compared with PyTorch, from tables in docs/results.md and benchmarks/gpu/README.md.

  scripts/speed_chart.py [--check]

A bar is the time of a step in PyTorch, the faster of eager and torch.compile in the same run, over that in Cortado. --check changes nothing and
fails if the picture is out of date.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "speed.svg"
RESULTS, GPU = "docs/results.md", "benchmarks/gpu/README.md"
H100 = (GPU, "An H100 (", "one H100")
ZEN4 = (RESULTS, "### Zen 4 without AMX", "2 cores, Zen 4")
ZEN5 = (RESULTS, "### Zen 5 without AMX", "2 cores, Zen 5")
# File, text above the table and name of the machine; row; column with the ratio; label.
BARS = (
    (H100, "ResNet-50, bfloat16", "times it", "ResNet-50, bf16"),
    (H100, "MobileNet-v2, bfloat16", "times it", "MobileNet-v2, bf16"),
    (ZEN4, "ResNet-50, 16", "ratio in FP32", "ResNet-50, fp32"),
    (ZEN4, "VGG-16, 8", "ratio in FP32", "VGG-16, fp32"),
    (ZEN4, "VGG-16, 8", "ratio in BF16", "VGG-16, bf16"),
    (ZEN5, "AlexNet, 32", "ratio in BF16", "AlexNet, bf16"),
    (ZEN5, "MobileNet-v2, 16", "ratio in BF16", "MobileNet-v2, bf16"),
)
WIDTH, LEFT, ROW, SCALE = 760, 330, 26, 130  # pixels; SCALE: length of PyTorch's bar


def table(file, above):
    """Rows of the first table after a text, as {first cell: {column: cell}}."""
    text = (ROOT / file).read_text(encoding="utf-8")
    begin = text.index(above)
    lines = re.search(r"(?:^\|.*\n)+", text[begin:], re.M)[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(cells[0], row)) for row in cells[2:]}


def ratios():
    for (file, above, machine), row, column, label in BARS:
        yield f"{label}, {machine}", float(table(file, above)[row][column])


def picture():
    bars = sorted(ratios(), key=lambda bar: -bar[1])
    height = 54 + ROW * len(bars)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
             'font-family="sans-serif" font-size="14" role="img">',
             "<title>Speed of a training step relative to the faster of eager and compiled PyTorch in the same run</title>",
             "<style>text { fill: #24292f } .torch { stroke: #24292f; stroke-width: 2 } .bar { fill: #a0522d }"
             " @media (prefers-color-scheme: dark) { text { fill: #d0d7de } .torch { stroke: #d0d7de } .bar { fill: #d98c5f } }</style>"]
    line = LEFT + SCALE
    for number, (label, ratio) in enumerate(bars):
        y = 34 + ROW * number
        parts += [f'<text x="{LEFT - 10}" y="{y + 15}" text-anchor="end">{label}</text>',
                  f'<rect class="bar" x="{LEFT}" y="{y}" width="{SCALE * ratio:.0f}" height="{ROW - 6}"/>',
                  f'<text x="{LEFT + SCALE * ratio + 6:.0f}" y="{y + 15}">{ratio:.2f}</text>']
    parts += [f'<line class="torch" x1="{line}" y1="26" x2="{line}" y2="{height - 18}"/>',
              f'<text x="{line}" y="18" text-anchor="middle">PyTorch = 1</text>', "</svg>"]
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check, text = parser.parse_args().check, picture()
    if not check:
        PICTURE.write_text(text, encoding="utf-8")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != text:
        sys.exit("docs/images/speed.svg is out of date; run scripts/speed_chart.py")


if __name__ == "__main__":
    main()
