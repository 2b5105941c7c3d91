#!/usr/bin/env python3
"""Makes spoken digits by a small formant synthesizer, with the digits that are said, for the net of this folder.

    make_digits.py [--train 6000] [--test 1000] [--seed 1]      needs NumPy and h5py
    make_digits.py --say 2718 [--seed 1] said.wav               one recording, to listen to

Writes digits_train.h5 and digits_test.h5 into this folder: 3 to 6 digits each. Every recording has a speaker of its own.
"""
import argparse
import wave
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
RATE, HOP, WINDOW, BANDS = 8000, 120, 256, 24  # samples: frames of 32 ms, one every 15 ms
STRIDE = 64  # samples from one frame of the synthesizer to the next
STEPS, DIGITS = 100, 6  # of the longest recording; a step of the net is two frames
# A phone: the formants where it begins and ends in Hz, the shares of voice and of noise, and its length in seconds.
PHONES = {
    "w": ((300, 650, 2200), (500, 1000, 2300), 0.6, 0, 0.06), "a": ((700, 1200, 2500), (650, 1200, 2500), 1, 0, 0.11),
    "n": ((280, 1500, 2500), (280, 1500, 2500), 0.35, 0, 0.07), "t": ((400, 2000, 3200), (400, 2000, 3200), 0, 0.5, 0.03),
    "u": ((330, 1100, 2200), (310, 900, 2200), 0.9, 0, 0.14), "th": ((500, 1400, 3000), (500, 1400, 3000), 0, 0.12, 0.07),
    "r": ((420, 1200, 1600), (400, 1500, 1900), 0.6, 0, 0.06), "i": ((300, 2200, 2900), (280, 2300, 3000), 0.9, 0, 0.13),
    "f": ((700, 1500, 3500), (700, 1500, 3500), 0, 0.15, 0.09), "o": ((480, 850, 2400), (550, 900, 2300), 1, 0, 0.13),
    "ai": ((730, 1150, 2450), (350, 2100, 2800), 1, 0, 0.18), "v": ((350, 1200, 2400), (350, 1200, 2400), 0.3, 0.06, 0.06),
    "s": ((1500, 3200, 3800), (1500, 3200, 3800), 0, 0.45, 0.10), "ih": ((400, 1950, 2550), (400, 1900, 2550), 0.9, 0, 0.08),
    "k": ((500, 1600, 2400), (500, 1600, 2400), 0, 0.35, 0.03), "e": ((550, 1800, 2500), (550, 1750, 2500), 1, 0, 0.09),
    "ei": ((500, 1900, 2500), (330, 2200, 2800), 1, 0, 0.16), "z": ((300, 1700, 3600), (300, 1700, 3600), 0.3, 0.3, 0.08),
    "-": ((500, 1500, 2500), (500, 1500, 2500), 0, 0, 0.03)}
WORDS = ["z ih r o", "w a n", "- t u", "th r i", "f o r", "f ai v", "s ih - k s", "s e v a n", "ei - t", "n ai n"]


def contours(digits, draw):
    """Formants (3), voice and noise of each frame of the synthesizer, frames x 5."""
    tract, speed = draw.uniform(0.8, 1.25), draw.uniform(0.75, 1.3)
    pieces = []

    def add(phone, voiced=1, seconds=None):
        begin, end, voice, noise, length = PHONES[phone]
        shift = np.array([*tract * draw.normal(1, 0.06, 3), voiced, voiced])
        count = max(1, round((seconds or length * speed * draw.uniform(0.7, 1.3)) * RATE / STRIDE))
        pieces.append(np.linspace((*begin, voice, noise), (*end, voice, noise), count) * shift)

    add("-", seconds=draw.uniform(0.03, 0.15))
    for digit in digits:
        loud = draw.uniform(0.4, 1.1)
        for phone in WORDS[digit].split():
            add(phone, loud * draw.uniform(0.6, 1.2))
        if draw.random() < 0.5:  # otherwise two digits flow into each other
            add("-", seconds=draw.uniform(0.01, 0.1))
    add("-", seconds=draw.uniform(0.03, 0.1))
    tracks = np.concatenate(pieces)
    smooth = np.array([0.15, 0.2, 0.3, 0.2, 0.15])  # neither loudness nor formants jump
    padded = np.pad(tracks, ((2, 2), (0, 0)), "edge")
    return np.column_stack([np.convolve(column, smooth, "valid") for column in padded.T])


def say(digits, draw):
    """A recording of the digits, between -1 and 1: pulses of the voice and noise, through the formants of each frame."""
    tracks = contours(digits, draw)
    at = np.arange(len(tracks) * STRIDE + WINDOW) / RATE
    melody = 1 - 0.08 * at + 0.06 * np.sin(2 * np.pi * draw.uniform(0.5, 2) * at + draw.uniform(0, 6))
    phase = np.cumsum(draw.uniform(85, 240) * melody) / RATE
    pulses = 5 * np.diff(np.floor(phase), prepend=0) + 0.05 * draw.normal(0, 1, len(at))
    places = np.arange(len(tracks))[:, None] * STRIDE + np.arange(WINDOW)
    taper = np.hanning(WINDOW)
    voice, hiss = (np.fft.rfft(source[places] * taper) for source in (pulses, draw.normal(0, 1, len(at))))
    frequency = np.fft.rfftfreq(WINDOW, 1 / RATE)
    distance = (frequency[:, None] - tracks[:, None, :3]) / np.array([90, 130, 200])  # in widths of the formants
    passed = (np.array([1, 0.6, 0.35]) / (1 + distance ** 2)).sum(2)
    spectrum = passed * (tracks[:, 3:4] * voice / (1 + frequency / 500) ** 0.7 + tracks[:, 4:5] * hiss)
    sound = np.zeros(len(at))
    np.add.at(sound, places, np.fft.irfft(spectrum) * taper)
    sound /= np.abs(sound).max()
    sound += draw.normal(0, 10 ** draw.uniform(-2.3, -0.8), len(sound))  # the room
    return 0.9 * sound / np.abs(sound).max()


def filters():
    """Triangles that are equally wide in mel: BANDS x frequencies."""
    mel = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), BANDS + 2)
    edges = (700 * (10 ** (mel / 2595) - 1))[:, None]
    at = np.fft.rfftfreq(WINDOW, 1 / RATE)
    rise, fall = (at - edges[:-2]) / (edges[1:-1] - edges[:-2]), (edges[2:] - at) / (edges[2:] - edges[1:-1])
    return np.clip(np.minimum(rise, fall), 0, None)


def features(sound):
    """Logarithms of the energies in the bands, steps x (2 * BANDS); each band has mean 0 and deviation 1."""
    count = (1 + (len(sound) - WINDOW) // HOP) // 2 * 2
    frames = sound[np.arange(count)[:, None] * HOP + np.arange(WINDOW)] * np.hamming(WINDOW)
    energy = np.log((np.abs(np.fft.rfft(frames)) ** 2) @ filters().T + 1e-3)
    return ((energy - energy.mean(0)) / (energy.std(0) + 1e-3)).astype(np.float32).reshape(-1, 2 * BANDS)


def inputs(recordings):
    """The net's inputs for the features of N recordings: N x STEPS x (2 * BANDS), and `cont`, which is 0 at the first step and
    after the last one."""
    filled, cont = np.zeros((len(recordings), STEPS, 2 * BANDS), np.float32), np.zeros((len(recordings), STEPS), np.float32)
    for row, steps in enumerate(recordings):
        filled[row, :len(steps)] = steps
        cont[row, 1:len(steps)] = 1
    return filled, cont


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--train", type=int, default=6000)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--say", metavar="DIGITS")
    parser.add_argument("file", nargs="?", help="a WAV file, with --say")
    options = parser.parse_args()
    draw = np.random.default_rng(options.seed)
    if options.say:
        sound = say([int(digit) for digit in options.say], draw)
        with wave.open(options.file or f"{options.say}.wav", "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes((sound * 32767).astype("<i2").tobytes())
        return

    import h5py

    for name, count in (("train", options.train), ("test", options.test)):
        recordings, labels = [], np.full((count, DIGITS), -1, np.float32)
        while len(recordings) < count:
            digits = draw.integers(0, 10, draw.integers(3, DIGITS + 1))
            steps = features(say(digits, draw))
            if len(steps) <= STEPS:
                labels[len(recordings), :len(digits)] = digits
                recordings.append(steps)
        with h5py.File(FOLDER / f"digits_{name}.h5", "w") as file:
            file["features"], file["cont"] = inputs(recordings)
            file["labels"] = labels
        (FOLDER / f"digits_{name}.txt").write_text(f"digits_{name}.h5\n", encoding="utf-8")
        lengths = [len(steps) for steps in recordings]
        print(f"digits_{name}.h5: {count} recordings of {min(lengths)} to {max(lengths)} steps")


if __name__ == "__main__":
    main()
