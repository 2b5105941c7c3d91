"""Numbers with nouns, for messages."""


def counted(count, noun, plural=None):
    """"1 file", "2 files"; plural: for nouns whose plural is not noun + "s", as in "2 classes"."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
