"""Kinds of tokenizers. Each one has a name, the number of its tokens (vocabulary), encode(text), decode(numbers), and
save(folder), which writes the file that open_tokenizer() reads. Names of kinds: KINDS."""
import hashlib
import json
import os
from pathlib import Path

import numpy as np

from .._caffe import InvalidArgument, IoError
from .._packages import need

_USER = "caffe data import-text with this tokenizer"


def _checked(numbers, vocabulary):
    """The numbers, such as those of a blob, as a list of int. Raises InvalidArgument for one that is not a token's."""
    given = np.asarray(numbers, float).ravel()
    wrong = given[(given != np.floor(given)) | (given < 0) | (given >= vocabulary)]
    if wrong.size:
        raise InvalidArgument(f"{wrong[0]:g} is the number of no token; they are from 0 to {vocabulary - 1}")
    return given.astype(int).tolist()


class Characters:
    """A token for each character of the texts it was made from."""

    file = "characters.json"

    def __init__(self, characters):
        self._characters = list(characters)
        self._points = np.array([ord(character) for character in self._characters], np.int64)  # sorted
        self.vocabulary = len(self._characters)

    @classmethod
    def learn(cls, blocks, _vocabulary):
        return cls(sorted(set().union(*map(set, blocks))))

    @classmethod
    def read(cls, path):
        try:
            characters = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise IoError(f"{path}: not what caffe data import-text writes: {error}") from None
        is_list = isinstance(characters, list) and characters and all(isinstance(one, str) and len(one) == 1 for one in characters)
        if not is_list or characters != sorted(set(characters)):
            raise IoError(f"{path}: not a sorted list of characters, as caffe data import-text writes")
        return cls(characters)

    def save(self, folder):
        (Path(folder) / self.file).write_text(json.dumps(self._characters), encoding="utf-8")

    def encode(self, text):
        """Raises InvalidArgument for a character that is not in the vocabulary."""
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
        numbers = np.searchsorted(self._points, points)
        unknown = np.flatnonzero(self._points[np.minimum(numbers, self.vocabulary - 1)] != points)
        if unknown.size:
            line = text.count("\n", 0, unknown[0]) + 1
            raise InvalidArgument(f"character {text[unknown[0]]!r} of line {line} is not among the {self.vocabulary} of the "
                                  "vocabulary; import the texts together, or take tokenizer bytes")
        return numbers

    def decode(self, numbers):
        return "".join(self._characters[number] for number in _checked(numbers, self.vocabulary))


class Bytes:
    """A token for each of 256 bytes of the text in UTF-8."""

    file = "bytes.json"
    vocabulary = 256

    @classmethod
    def learn(cls, _blocks, _vocabulary):
        return cls()

    @classmethod
    def read(cls, _path):
        return cls()

    def save(self, folder):
        (Path(folder) / self.file).write_text("256\n", encoding="utf-8")

    def encode(self, text):
        return np.frombuffer(text.encode("utf-8"), np.uint8).astype(np.int64)

    def decode(self, numbers):
        return bytes(_checked(numbers, self.vocabulary)).decode("utf-8", "replace")


class Bpe:
    """Byte-pair encoding by the package tokenizers (Sennrich et al. 2016), or any other tokenizer of a tokenizer.json."""

    file = "tokenizer.json"

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self.vocabulary = tokenizer.get_vocab_size()

    @classmethod
    def learn(cls, blocks, vocabulary):
        library = need("tokenizers", _USER)
        tokenizer = library.Tokenizer(library.models.BPE())
        tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = library.decoders.ByteLevel()
        alphabet = library.pre_tokenizers.ByteLevel.alphabet()
        trainer = library.trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False)
        tokenizer.train_from_iterator(blocks, trainer)
        return cls(tokenizer)

    @classmethod
    def read(cls, path):
        library = need("tokenizers", _USER)
        try:
            return cls(library.Tokenizer.from_file(os.fspath(path)))
        except Exception as error:  # the package raises plain Exception
            raise IoError(f"{path}: not a tokenizer of the package tokenizers: {error}") from None

    def save(self, folder):
        self._tokenizer.save(str(Path(folder) / self.file))

    def encode(self, text):
        return np.array(self._tokenizer.encode(text, add_special_tokens=False).ids, np.int64)

    def decode(self, numbers):
        return self._tokenizer.decode(_checked(numbers, self.vocabulary))


class SentencePiece:
    """A model of the package sentencepiece (Kudo and Richardson 2018)."""

    file = "tokenizer.model"

    def __init__(self, model):
        self._model = model
        self._processor = need("sentencepiece", _USER).SentencePieceProcessor(model_proto=model)
        self.vocabulary = self._processor.vocab_size()

    @classmethod
    def learn(cls, blocks, vocabulary):
        import io

        library, model = need("sentencepiece", _USER), io.BytesIO()
        lines = (line for block in blocks for line in block.splitlines() if line)
        try:
            library.SentencePieceTrainer.train(sentence_iterator=lines, model_writer=model, vocab_size=vocabulary,
                                               hard_vocab_limit=False, byte_fallback=True, minloglevel=2,
                                               normalization_rule_name="identity", remove_extra_whitespaces=False)
        except (RuntimeError, OSError) as error:
            raise InvalidArgument(f"sentencepiece cannot make {vocabulary} tokens of this text: {error}") from None
        return cls(model.getvalue())

    @classmethod
    def read(cls, path):
        try:
            return cls(Path(path).read_bytes())
        except RuntimeError as error:
            raise IoError(f"{path}: not a model of sentencepiece: {error}") from None

    def save(self, folder):
        (Path(folder) / self.file).write_bytes(self._model)

    def encode(self, text):
        return np.array(self._processor.encode(text), np.int64)

    def decode(self, numbers):
        return self._processor.decode(_checked(numbers, self.vocabulary))


KINDS = {"characters": Characters, "bytes": Bytes, "bpe": Bpe, "sentencepiece": SentencePiece}


def make_tokenizer(kind, blocks=(), vocabulary=8000):
    """A tokenizer of one of the KINDS, which learns its tokens from an iterable of texts. `vocabulary`: how many, where the
    kind leaves a choice. Raises InvalidArgument for another name."""
    if kind not in KINDS:
        raise InvalidArgument(f"tokenizer is '{kind}'; give {', '.join(KINDS)}, or the path of one that was made")
    return KINDS[kind].learn(blocks, vocabulary)


def open_tokenizer(path):
    """The tokenizer of a folder that `caffe data import-text` made, or of a file tokenizer.json, *.model, or characters.json.
    Raises IoError."""
    path = Path(path)
    found = [kind for kind in KINDS.values() if (path / kind.file).is_file()] if path.is_dir() else _kinds_of_file(path)
    if not found:
        files = ", ".join(kind.file for kind in KINDS.values())
        raise IoError(f"{path}: holds no tokenizer; wanted is one of {files}")
    return found[0].read(path / found[0].file if path.is_dir() else path)


def _kinds_of_file(path):
    if not path.is_file():
        raise IoError(f"{path}: cannot open: No such file or directory; a tokenizer is one of {', '.join(KINDS)}, or such a file")
    return [kind for kind in KINDS.values() if path.name == kind.file or path.suffix == Path(kind.file).suffix == ".model"]


def fingerprint(tokenizer, folder):
    """Text that is equal for equal tokenizers, of the file that save() wrote."""
    digest = hashlib.sha256((Path(folder) / tokenizer.file).read_bytes()).hexdigest()
    return f"{tokenizer.file} {digest[:16]}"
