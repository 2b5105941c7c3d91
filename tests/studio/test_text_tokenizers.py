"""`caffe data import-text` with the tokenizers of packages."""
import pytest

from caffe.text import import_text, open_tokenizer

TEXT = "so foul and fair a day I have not seen.\n" * 40 + "Où est  le café?\n" * 3


@pytest.mark.parametrize("kind", ["bpe", "sentencepiece"])
def test_tokenizers_of_packages(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "play.txt").write_text(TEXT, encoding="utf-8")
    made = import_text(["play.txt"], "play", tokenizer=kind, vocabulary=320)
    tokenizer = open_tokenizer("play")
    assert made["tokens"] < len(TEXT) and made["vocabulary"] == tokenizer.vocabulary <= 320
    for text in ("a fair café", "so  foul", "名"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    import_text(["play.txt"], "again", tokenizer="play")
    assert (tmp_path / "again/tokens.bin").read_bytes() == (tmp_path / "play/tokens.bin").read_bytes()
