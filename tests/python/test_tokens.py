"""Texts as tokens: `caffe.text` and the layer Tokens."""
import json

import numpy as np
import pytest

import caffe
from caffe.text import import_text, open_tokenizer

TEXT = "so foul and fair a day I have not seen.\n" * 40


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "play.txt").write_text(TEXT, encoding="utf-8")


def net(order, batch=4, length=16, phase=caffe.TRAIN):
    with open("net.prototxt", "w", encoding="utf-8") as file:
        file.write(f"""
          name: "text"
          layer {{ name: "text" type: "Tokens" top: "tokens" top: "next"
                  tokens_param {{ source: "play" batch_size: {batch} length: {length} order: {order} }} }}""")
    return caffe.Net("net.prototxt", phase)


def test_a_text_comes_back():
    assert import_text(["play.txt"], "play") == {"vocabulary": len(set(TEXT)), "tokens": len(TEXT), "validation": 0}
    tokenizer = open_tokenizer("play")
    assert tokenizer.decode(tokenizer.encode("a fair day")) == "a fair day"
    made = net("IN_TURN")
    for start in (0, 64):
        made.forward()
        for row, (tokens, following) in enumerate(zip(made.blobs["tokens"].data, made.blobs["next"].data)):
            first = start + 16 * row
            assert tokenizer.decode(tokens.astype(int)) == TEXT[first:first + 16]
            assert tokenizer.decode(following.astype(int)) == TEXT[first + 1:first + 17]


def test_windows_in_random_order_are_read_once_each():
    import_text(["play.txt"], "play")
    made, tokenizer = net("RANDOM", batch=1), open_tokenizer("play")
    count = (len(TEXT) - 1) // 16 - 1
    pieces = []
    for _ in range(count):
        made.forward()
        pieces.append(tokenizer.decode(made.blobs["tokens"].data[0].astype(int)))
    skipped = next(start for start in range(len(TEXT) - 16 * count)
                   if sorted(pieces) == sorted(TEXT[start + 16 * k:start + 16 * k + 16] for k in range(count)))
    assert pieces != [TEXT[skipped + 16 * k:skipped + 16 * k + 16] for k in range(count)]


def test_the_end_is_kept_for_validation():
    made = import_text(["play.txt"], "play", share=0.25)
    assert (made["tokens"], made["validation"]) == (1200, 400)
    numbers = np.fromfile("play_val/tokens.bin", np.uint8)
    assert open_tokenizer("play_val").decode(numbers) == TEXT[1200:]


def test_a_second_text_takes_the_vocabulary_of_the_first():
    import_text(["play.txt"], "play")
    with open("other.txt", "w", encoding="utf-8") as file:
        file.write("fair is foul\n")
    import_text(["other.txt"], "other", tokenizer="play")
    first, second = (json.load(open(f"{name}/tokens.json", encoding="utf-8")) for name in ("play", "other"))
    assert first["tokenizer"] == second["tokenizer"] and second["vocabulary"] == first["vocabulary"]
    with open("other.txt", "w", encoding="utf-8") as file:
        file.write("fair is\nfoul, thane\n")
    with pytest.raises(caffe.InvalidArgument, match=r"character ',' of line 2 is not among the 19 of the vocabulary"):
        import_text(["other.txt"], "third", tokenizer="play")


def test_bytes_and_wide_characters():
    with open("play.txt", "w", encoding="utf-8") as file:
        file.write("".join(chr(0x4e00 + k) for k in range(300)) + "\r\né")
    assert import_text(["play.txt"], "wide")["vocabulary"] == 303
    assert json.load(open("wide/tokens.json", encoding="utf-8"))["bytes_per_token"] == 2
    numbers = np.fromfile("wide/tokens.bin", "<u2")
    assert open_tokenizer("wide").decode(numbers).endswith("\u4f2b\r\né")
    assert import_text(["play.txt"], "bytes", tokenizer="bytes") == {"vocabulary": 256, "tokens": 904, "validation": 0}
    tokenizer = open_tokenizer("bytes")
    assert tokenizer.decode(np.fromfile("bytes/tokens.bin", np.uint8)).endswith("\r\né")
    assert tokenizer.decode(tokenizer.encode("Hié")) == tokenizer.decode(tokenizer.encode("Hié").astype(np.float32)) == "Hié"
    for wrong in (-1, 256, 0.5):
        with pytest.raises(caffe.InvalidArgument, match=f"{wrong} is the number of no token; they are from 0 to 255"):
            tokenizer.decode([65, wrong])


def test_a_byte_order_mark_is_no_token():
    for name in ("first", "second"):
        with open(f"{name}.txt", "w", encoding="utf-8-sig") as file:
            file.write(name)
    import_text(["first.txt", "second.txt"], "both")
    assert open_tokenizer("both").decode(np.fromfile("both/tokens.bin", np.uint8)) == "firstsecond"


@pytest.mark.parametrize("make, error", [
    (lambda: import_text(["none.txt"], "x"), "none.txt"),
    (lambda: import_text(["empty.txt"], "x"), "the texts are empty"),
    (lambda: import_text(["latin.txt"], "x"), r"latin.txt: is not text in utf-8: .*b'\\xe9'.*--encoding"),
    (lambda: import_text(["play.txt"], "x", encoding="utf-16"), "play.txt: is not text in utf-16: UTF-16 stream does not start with BOM; give"),
    (lambda: import_text(["taken"], "x"), "taken: is not a file, and texts are read twice; write the text to one"),
    (lambda: import_text(["play.txt"], "x", encoding="klingon"), "encoding 'klingon' is unknown"),
    (lambda: import_text(["play.txt"], "taken"), "taken: already exists"),
    (lambda: import_text(["play.txt"], "x", share=1e-9), "leaves nothing for one of both parts"),
    (lambda: import_text(["play.txt"], "x", tokenizer="taken"), "taken: holds no tokenizer"),
    (lambda: import_text(["play.txt"], "x", tokenizer="words"), "words: cannot open: .*; a tokenizer is one of characters, bytes, bpe, sentencepiece, or such a file"),
])
def test_what_cannot_be_imported(make, error, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 " * 9)
    with pytest.raises((caffe.Error, OSError), match=error):
        make()
    assert not (tmp_path / "x").exists() and not list(tmp_path.glob(".x*"))


def test_a_net_of_another_vocabulary_is_refused():
    import_text(["play.txt"], "play")
    with open("net.prototxt", "w", encoding="utf-8") as file:
        file.write("""
          layer { name: "text" type: "Tokens" top: "tokens" tokens_param { source: "play" batch_size: 2 length: 400 } }
          layer { name: "embed" type: "Embed" bottom: "tokens" top: "x" embed_param { input_dim: 9 num_output: 3 bias_term: false } }
        """)
    with pytest.raises(caffe.Error, match="embed"):
        caffe.Net("net.prototxt", caffe.TRAIN).forward()


@pytest.mark.parametrize("options, error", [
    ('source: "none" batch_size: 1 length: 2', "none/tokens.json: cannot open"),
    ("batch_size: 1 length: 2", "source } is missing"),
    ('source: "play" length: 2', "batch_size } is 0"),
    ('source: "play" batch_size: 1', "length } is 0"),
    ('source: "play" batch_size: 1 length: 1600', "has 1600 tokens; a sequence of length 1600 needs 1601"),
])
def test_options_that_do_not_fit(options, error):
    import_text(["play.txt"], "play")
    with open("net.prototxt", "w", encoding="utf-8") as file:
        file.write(f'layer {{ name: "text" type: "Tokens" top: "tokens" tokens_param {{ {options} }} }}')
    with pytest.raises(caffe.Error, match=error):
        caffe.Net("net.prototxt", caffe.TRAIN)


def test_a_resumed_run_reads_on(tmp_path):
    import_text(["play.txt"], "play")
    with open("solver.prototxt", "w", encoding="utf-8") as file:
        file.write("""base_lr: 0.1 lr_policy: "fixed" max_iter: 200 random_seed: 3 snapshot_prefix: "s" net_param {
          layer { name: "text" type: "Tokens" top: "tokens" top: "next" tokens_param { source: "play" batch_size: 2 length: 9 } }
          layer { name: "embed" type: "Embed" bottom: "tokens" top: "x"
                  embed_param { input_dim: 19 num_output: 19 bias_term: false weight_filler { type: "gaussian" } } }
          layer { name: "loss" type: "SoftmaxWithLoss" bottom: "x" bottom: "next" top: "loss" softmax_param { axis: 2 } } }""")
    whole = caffe.get_solver("solver.prototxt")
    whole.step(130)  # beyond an epoch of 176 sequences
    state = whole.snapshot()
    whole.step(60)
    resumed = caffe.get_solver("solver.prototxt")
    resumed.restore(state if isinstance(state, str) else "s_iter_130.solverstate")
    resumed.step(60)
    np.testing.assert_array_equal(resumed.net.params["embed"][0].data, whole.net.params["embed"][0].data)
    np.testing.assert_array_equal(resumed.net.blobs["tokens"].data, whole.net.blobs["tokens"].data)
