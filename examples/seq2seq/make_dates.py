#!/usr/bin/env python3
"""Makes dates as people write them, with the same dates as YYYY-MM-DD, for the net of this folder.

    make_dates.py [--train 20000] [--test 1000] [--seed 1]      needs NumPy and h5py

Writes dates_train.h5 and dates_test.h5 into this folder. No date of the test is among those of training in the same words.
"""
import argparse
import calendar
import datetime
import random
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
CHARACTERS = "\0 ,-./0123456789abcdefghijklmnopqrstuvwxyz"  # the first one fills up
WRITTEN, LENGTH = 28, 10  # characters of a date as it is written, and of its answer
START = len(CHARACTERS)  # what the net has written before the first character
MONTHS = [name.lower() for name in calendar.month_name]


def ordinal(day):
    return f"{day}{'th' if 10 < day < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def written(date, draw):
    """The date in one of many forms."""
    month, weekday = MONTHS[date.month], calendar.day_name[date.weekday()].lower()
    return draw.choice([
        f"{date.day} {month} {date.year}", f"{month} {date.day}, {date.year}", f"{month[:3]} {date.day} {date.year}",
        f"{ordinal(date.day)} of {month} {date.year}", f"the {ordinal(date.day)} of {month[:3]}. {date.year}",
        f"{date.day}.{date.month}.{date.year}", f"{date.day:02}/{date.month:02}/{date.year}", f"{weekday[:3]}, {date.day} {month[:3]} {date.year}",
        f"{weekday} {date.day} {month[:3]} {date.year}", f"{date.year} {month} {date.day}", f"{date.day}-{month[:3]}-{date.year % 100:02}"])


def numbers(text, length):
    """The characters as numbers, filled up with 0."""
    return np.array([CHARACTERS.index(character) for character in text.ljust(length, "\0")], np.float32)


def arrays(pairs):
    """The datasets of the net: the date as it is written, which of its places are filled, what the net has written before
    each character, and the character."""
    source = np.stack([numbers(text, WRITTEN) for text, _ in pairs])
    answer = np.stack([numbers(text, LENGTH) for _, text in pairs])
    before = np.concatenate([np.full((len(pairs), 1), START, np.float32), answer[:, :-1]], 1)
    return {"source": source, "seen": (source > 0).astype(np.float32), "before": before, "answer": answer}


def main():
    import h5py

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--train", type=int, default=20000)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw, known = random.Random(options.seed), {}
    first = datetime.date(1970, 1, 1).toordinal()
    while len(known) < options.train + options.test:
        date = datetime.date.fromordinal(first + draw.randrange(30 * 365))  # to 1999, so that two digits name a year
        known[written(date, draw)] = date.isoformat()
    pairs = list(known.items())
    for name, part in (("test", pairs[:options.test]), ("train", pairs[options.test:])):
        with h5py.File(FOLDER / f"dates_{name}.h5", "w") as file:
            for key, value in arrays(part).items():
                file[key] = value
        (FOLDER / f"dates_{name}.txt").write_text(f"dates_{name}.h5\n", encoding="utf-8")
        print(f"dates_{name}.h5: {len(part)} dates, such as '{part[0][0]}': {part[0][1]}")


if __name__ == "__main__":
    main()
