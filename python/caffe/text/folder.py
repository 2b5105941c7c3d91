"""The folder of a text: tokens.bin, tokens.json and the tokenizer's file."""
import contextlib
import json
import os

import numpy as np

from .._caffe import InvalidArgument, IoError
from .._new_folder import new_folder
from .tokenizers import KINDS, fingerprint, make_tokenizer, open_tokenizer

_BLOCK = 1 << 20  # characters that are encoded together
_FORMAT = 1


def import_text(texts, folder, tokenizer="characters", vocabulary=8000, share=0.0, encoding="utf-8"):
    """Makes `folder` of text files, one after the other. `tokenizer`: a name of KINDS, or the path of a tokenizer's file or of a
    folder with one, as for a second text of the same vocabulary. The last `share` (0 to 1) of the tokens goes to folder + "_val".
    Returns a dict: vocabulary, tokens, validation. Raises InvalidArgument, IoError; then makes no folder."""
    folder = os.fspath(folder).rstrip("/")
    folders = [folder] + ([folder + "_val"] if share > 0 else [])
    for each in folders:
        if os.path.lexists(each):
            raise InvalidArgument(f"{each}: already exists; give another name, or remove it")
    if not 0 <= share < 1:
        raise InvalidArgument(f"the share for validation is {share}; give 0 or more, and less than 1")
    made = make_tokenizer(tokenizer, _blocks(texts, encoding), vocabulary) if tokenizer in KINDS else open_tokenizer(tokenizer)
    with contextlib.ExitStack() as stack:
        partial = [stack.enter_context(new_folder(each)) for each in folders]
        width = 1 if made.vocabulary <= 1 << 8 else 2 if made.vocabulary <= 1 << 16 else 4
        count = _encode(made, _blocks(texts, encoding), partial[0] / "tokens.bin", width)
        counts = [count]
        if share > 0:
            kept = count - int(count * share)
            if not 0 < kept < count:
                raise InvalidArgument(f"{share:.3%} of {count} tokens leaves nothing for one of both parts; give another share")
            counts = [kept, count - kept]
            _move_end(partial[0] / "tokens.bin", partial[1] / "tokens.bin", kept * width)
        for place, tokens in zip(partial, counts):
            made.save(place)
            _describe(place, made, tokens, width, texts)
    return {"vocabulary": made.vocabulary, "tokens": counts[0], "validation": counts[1] if share > 0 else 0}


def _blocks(texts, encoding):
    """The texts in pieces that end where a line ends, if lines are not longer than a block. Newlines stay as they are."""
    encoding = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding  # which skips a byte order mark
    for path in texts:
        if os.path.exists(path) and not os.path.isfile(path):
            raise InvalidArgument(f"{path}: is not a file, and texts are read twice; write the text to one")
        try:
            with open(path, encoding=encoding, newline="") as file:
                while block := file.read(_BLOCK):
                    yield block + file.readline(_BLOCK)
        except ValueError as error:  # UnicodeError and, for names with a NUL, others
            wrong = f"{error.reason} ({error.object[error.start:error.end]!r})" if isinstance(error, UnicodeDecodeError) else str(error)
            raise IoError(f"{path}: is not text in {encoding.removesuffix('-sig')}: {wrong}; give its --encoding, such as latin-1") from None
        except LookupError:
            raise InvalidArgument(f"encoding '{encoding}' is unknown; give a name as Python knows it, such as utf-8") from None


def _encode(tokenizer, blocks, path, width):
    count = 0
    with open(path, "wb") as file:
        for block in blocks:
            numbers = tokenizer.encode(block).astype(f"<u{width}")
            numbers.tofile(file)
            count += len(numbers)
    if count == 0:
        raise InvalidArgument("the texts are empty; give files with text")
    return count


def _move_end(source, target, start):
    """Moves what follows the first `start` bytes, in pieces."""
    with open(source, "r+b") as file, open(target, "wb") as end:
        file.seek(start)
        while piece := file.read(_BLOCK):
            end.write(piece)
        file.truncate(start)


def _describe(folder, tokenizer, tokens, width, texts):
    facts = {"format": _FORMAT, "tokens": tokens, "vocabulary": tokenizer.vocabulary, "bytes_per_token": width,
             "tokenizer": fingerprint(tokenizer, folder), "texts": [os.path.basename(text) for text in texts]}
    (folder / "tokens.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def read_tokens(folder):
    """All token numbers of a folder, mapped read-only. Raises IoError."""
    try:
        with open(os.path.join(folder, "tokens.json"), encoding="utf-8") as file:
            facts = json.load(file)
        return np.memmap(os.path.join(folder, "tokens.bin"), f"<u{int(facts['bytes_per_token'])}", "r")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IoError(f"{folder}: is not a folder of tokens: {error}") from None
