#!/usr/bin/env python3
"""Trains linreg.prototxt and prints the line that it found. Run in the root of the repository."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))  # where the layers' modules are
import caffe  # noqa: E402


def main():
    solver = caffe.get_solver("examples/python_layer/linreg_solver.prototxt")
    solver.solve()
    weights, bias = (blob.data for blob in solver.net.params["ip"])
    print("y =", " + ".join(f"{weight:.2f} x{i}" for i, weight in enumerate(weights[0])), f"+ {bias[0]:.2f}")


if __name__ == "__main__":
    main()
