#!/usr/bin/env python3
"""Draws one chart from logs of `caffe train`, or of Caffe.

  tools/extra/plot_training_log.py CHART PICTURE.png LOG... [--output NAME]

CHART: 0 test accuracy over iterations    1 test accuracy over seconds
       2 test loss over iterations        3 test loss over seconds
       4 learning rate over iterations    5 learning rate over seconds
       6 train loss over iterations       7 train loss over seconds

Each log is one line; a log with several test nets has one line for each. Accuracy and test loss are the first output with
"accuracy" or "loss" in its name; --output selects another. Train loss is the mean that `display` shows. Needs matplotlib.
"""
import argparse
import os
import sys

import matplotlib
from parse_log import parse_log

matplotlib.use("Agg")  # no display
import matplotlib.pyplot as plt  # noqa: E402

CHARTS = [(what, x) for what in ("Test accuracy", "Test loss", "Train learning rate", "Train loss")
          for x in ("NumIters", "Seconds")]
AXES = {"NumIters": "iterations", "Seconds": "seconds"}


def curves(path, chart, output=None):
    """(label, xs, ys) of each line that a log gives to the chart. Raises ValueError if it gives none."""
    what, x = CHARTS[chart]
    tables, found = parse_log(path), []
    if what.startswith("Train"):
        column = output or ("LearningRate" if what == "Train learning rate" else "loss")
        sources = [("", tables["train"] if output else tables["loss"], column)]
    else:
        word = what.split()[1]
        sources = []
        for net, rows in tables["test"].items():
            names = [name for row in rows for name in row]
            column = output or next((name for name in names if word in name.lower()), None)
            sources.append((f" (net {net})" if len(tables["test"]) > 1 else "", rows, column))
    for suffix, rows, column in sources:
        rows = [row for row in rows if column in row]
        if rows:
            found.append((os.path.basename(path) + suffix, [row[x] for row in rows], [row[column] for row in rows]))
    if not found:
        raise ValueError(f"{path} has nothing for chart {chart}, {what.lower()}"
                         + (f" by output {output}" if output else "; --output names an output"))
    return found


def draw(chart, picture, logs, output=None):
    """Writes the chart; returns the number of its lines."""
    lines = [curve for log in logs for curve in curves(log, chart, output)]
    what, x = CHARTS[chart]
    figure, axes = plt.subplots(figsize=(8, 5), dpi=120)
    for label, xs, ys in lines:
        axes.plot(xs, ys, marker="." if len(xs) < 100 else "", label=label)
    axes.set(xlabel=AXES[x], ylabel=output or what.lower(), title=f"{what} over {AXES[x]}")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(picture, bbox_inches="tight")
    plt.close(figure)
    return len(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chart", type=int, choices=range(len(CHARTS)))
    parser.add_argument("picture", help="its suffix names the format")
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--output", help="name of the output to draw")
    args = parser.parse_args()
    draw(args.chart, args.picture, args.logs, args.output)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"plot_training_log.py: {error}")
