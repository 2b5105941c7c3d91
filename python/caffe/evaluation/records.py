"""Reads each record of a net's data exactly once."""
from __future__ import annotations

import re
import sys
from typing import Iterator, List, NamedTuple, Tuple

from .. import InvalidArgument, Net

_NUMBERED_KEY = re.compile(r"^\d{8}_(?=.)")  # keys of convert_imageset and caffe data import
_NUMBERED_LINE = re.compile(r"^\d+: ")  # keys of image lists


class Record(NamedTuple):
    """slot: index in the batch. index: in the data, from 0. name: its file, or its key."""

    slot: int
    index: int
    name: str


class Supply(NamedTuple):
    """layer: number of the data layer whose records count. count: number of its records."""

    layer: int
    count: int


def find_supply(net: Net) -> Supply:
    """The data layer of a net. Raises InvalidArgument if no layer knows the number of its records, or if
    two layers have different numbers of records."""
    found: List[Tuple[int, int]] = []
    for number in range(len(net.layers)):
        records = net._records(number)
        if records is not None and records[0] > 0:
            found.append((number, records[0]))
    if not found:
        raise InvalidArgument("the net has no data layer of phase TEST that says how many records it has; give one with a layer "
                              "Data, AnnotatedData, ImageData, ImageSegData or HDF5Data, as the net that was trained has")
    for number, count in found[1:]:
        if count != found[0][1]:
            first, other = net._layer_names[found[0][0]], net._layer_names[number]
            raise InvalidArgument(f"layer '{first}' has {found[0][1]} records and layer '{other}' {count}; both need as many, in one order")
    return Supply(*found[0])


def each_record_once(net: Net, progress: bool = False) -> Iterator[List[Record]]:
    """Runs a new net of phase TEST until each record of its data has been read. After each batch, yields the
    records read for the first time; their results are in the net's blobs.

    Records that the last batch reads again from the beginning, and records that replace a broken one
    (data_param.skip_broken), are not yielded. The net must not shuffle; open_subject ensures this.
    progress: counts records on standard error, if it is a terminal. Raises InvalidArgument if the records
    are not known, IoError for a record that cannot be read.
    """
    supply = find_supply(net)
    shows = progress and sys.stderr.isatty()
    seen, read = set(), 0
    while read < supply.count:
        batch = _next_batch(net, supply)
        if not batch:
            raise InvalidArgument(f"layer '{net._layer_names[supply.layer]}' does not say which records it has read; it must not shuffle")
        read += len(batch)
        fresh = []
        for slot, (index, name) in enumerate(batch):
            if index not in seen:
                seen.add(index)
                fresh.append(Record(slot, index, display_name(name) or f"record {index}"))
        if shows:
            print(f"\r{min(read, supply.count)} of {supply.count} records", end="", file=sys.stderr, flush=True)
        yield fresh
    if shows:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _next_batch(net: Net, supply: Supply) -> List[Tuple[int, str]]:
    """(index, key) of the records that a forward pass reads. Errors say at which record they occurred."""
    try:
        net.forward()
    except InvalidArgument as error:
        batch = net._records(supply.layer)[1]
        if not batch:
            raise
        raise InvalidArgument(f"{error}; position 0 is record {batch[0][0]}, '{display_name(batch[0][1])}'") from None
    return net._records(supply.layer)[1]


def display_name(key: str) -> str:
    """The key without the prefix that databases and lists put before a file's name; bytes that are not text
    are shown as escapes."""
    return printable(_NUMBERED_LINE.sub("", _NUMBERED_KEY.sub("", key)))


def printable(name: str) -> str:
    """A name with escapes for bytes that are not text, and for control characters, which could move the terminal's cursor."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in name)
