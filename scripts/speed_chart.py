#!/usr/bin/env python3
"""Draws docs/images/speed.svg: training compared with PyTorch, from tables in docs/results.md and benchmarks/gpu/README.md.

  scripts/speed_chart.py [--check]

A bar is Cortado's images/s divided by those of the fastest PyTorch timed in the same run. --check changes nothing and
fails if the picture is out of date.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "speed.svg"
RESULTS, GPU = "docs/results.md", "benchmarks/gpu/README.md"
# File, heading or sentence above the table, name of the machine, {row: (label, column with the ratio)}.
BARS = (
    (GPU, "An H200 (", "one H200", {"ResNet-50, bfloat16": ("ResNet-50, bf16", "times the faster one timed")}),
    (GPU, "An H100 (", "one H100", {"ResNet-50, bfloat16": ("ResNet-50, bf16", "times it"),
                                    "MobileNet-v2, bfloat16": ("MobileNet-v2, bf16", "times it")}),
    (RESULTS, "### Sapphire Rapids with AMX", "2 cores, Sapphire Rapids", {
        "ResNet-50, 16": ("ResNet-50, bf16", "ratio to PyTorch's best"), "MobileNet-v2, 16": ("MobileNet-v2, bf16", "ratio to PyTorch's best"),
        "AlexNet, 32": ("AlexNet, bf16", "ratio to PyTorch's best")}),
    (RESULTS, "### Zen 5 without AMX", "2 cores, Zen 5", {
        "ResNet-50, 16": ("ResNet-50, fp32", "ratio"), "VGG-16, 8": ("VGG-16, fp32", "ratio")}),
)
WIDTH, LEFT, ROW, SCALE = 760, 330, 26, 130  # pixels; SCALE: length of PyTorch's bar


def table(file, above):
    """Rows of the first table after a text, as {first cell: {column: cell}}."""
    text = (ROOT / file).read_text(encoding="utf-8")
    begin = text.index(above)
    lines = re.search(r"(?:^\|.*\n)+", text[begin:], re.M)[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    columns = cells[0]
    # If two columns have the same name, the first one counts.
    return {row[0]: dict(reversed(list(zip(columns, row)))) for row in cells[2:]}


def ratios():
    for file, above, machine, rows in BARS:
        found = table(file, above)
        for row, (label, column) in rows.items():
            yield f"{label}, {machine}", float(found[row][column])


def picture():
    bars = sorted(ratios(), key=lambda bar: -bar[1])
    height = 54 + ROW * len(bars)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
             'font-family="sans-serif" font-size="14" role="img">',
             "<title>Training throughput of Cortado over that of the fastest PyTorch in the same run</title>",
             "<style>text { fill: #24292f } .torch { stroke: #57606a; stroke-dasharray: 4 3 } .bar { fill: #a0522d }"
             " @media (prefers-color-scheme: dark) { text { fill: #d0d7de } .torch { stroke: #8c959f } .bar { fill: #d98c5f } }</style>"]
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
