"""The command line: python -m caffe.text."""
import argparse
import sys

from .._counted import counted
from .._output import raising_signals, run_command
from . import import_text


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="caffe.text", description="Converts texts to numbers of tokens.")
    parser.add_argument("paths", nargs="+", help="text files, then the folder to make")
    parser.add_argument("--tokenizer", default="characters")
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--share", type=float, default=0.0)
    parser.add_argument("--encoding", default="utf-8")
    options = parser.parse_args(arguments)
    return run_command("data import-text", lambda: _import(options))


def _import(options):
    *texts, folder = options.paths
    with raising_signals():
        made = import_text(texts, folder, options.tokenizer, options.vocabulary, options.share, options.encoding)
    print(f"{folder}: {counted(made['tokens'], 'token')} of {counted(made['vocabulary'], 'kind')}")
    if made["validation"]:
        print(f"{folder}_val: {counted(made['validation'], 'token')} from the end of the text")
    print(f"\nembed_param {{ input_dim: {made['vocabulary']} }} reads them, and inner_product_param {{ num_output: "
          f"{made['vocabulary']} }} predicts them")


if __name__ == "__main__":
    sys.exit(main())
