"""caffe fetch-weights with a server on this machine: complete, resumed, cut off, wrong sum, missing, offline."""
import hashlib
import http.server
import os
import pathlib
import random
import re
import socket
import subprocess
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAFFE = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve() / "bin" / "caffe"
WEIGHTS = random.Random(1).randbytes(300_000)

pytestmark = pytest.mark.skipif(not CAFFE.exists(), reason="caffe is not built")


class Server(http.server.ThreadingHTTPServer):
    """Serves WEIGHTS as /weights; `cut` ends each answer after this many bytes."""

    def __init__(self, ranges=True, cut=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges, self.cut, self.requests = ranges, cut, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/weights"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        wanted = self.headers.get("Range")
        self.server.requests.append(wanted)
        if self.path != "/weights":
            return self.send_error(404)
        first = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted and self.server.ranges else 0
        if first >= len(WEIGHTS):
            return self.send_error(416)
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(WEIGHTS) - 1}/{len(WEIGHTS)}")
        self.send_header("Content-Length", str(len(WEIGHTS) - first))
        self.end_headers()
        self.wfile.write(WEIGHTS[first:][: self.server.cut])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as running:
        yield running
        running.shutdown()


class Model:
    def __init__(self, folder, url, sha1=hashlib.sha1(WEIGHTS).hexdigest()):
        self.folder, self.sha1 = folder / "models" / "net", sha1
        self.file, self.part = self.folder / "net.caffemodel", self.folder / "net.caffemodel.part"
        self.folder.mkdir(parents=True, exist_ok=True)
        head = f"---\nname: A net\ncaffemodel: net.caffemodel\ncaffemodel_url: {url}\nsha1: {sha1}\n---\n\n# Net\n"
        (self.folder / "README.md").write_text(head, encoding="utf-8")

    def fetch(self, *arguments):
        environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        done = subprocess.run([CAFFE, "fetch-weights", *(arguments or ["net"])], cwd=self.folder.parents[1],
                              env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def expect_failure(self, *texts):
        status, output = self.fetch()
        assert status == 1, output
        for text in texts:
            assert text in output, output
        assert not self.file.exists()


def test_downloads_the_whole_file_once(tmp_path, server):
    model = Model(tmp_path, server.url)
    status, output = model.fetch()
    assert status == 0 and "models/net/net.caffemodel: downloaded, SHA-1 is right" in output
    assert model.file.read_bytes() == WEIGHTS
    assert not model.part.exists()
    status, output = model.fetch(str(model.folder))
    assert status == 0 and "already exists" in output
    assert len(server.requests) == 1


def test_goes_on_where_a_download_was_cut_off(tmp_path, server):
    model = Model(tmp_path, server.url)
    server.cut = 100_000
    model.expect_failure(f"broke off after 100000 of {len(WEIGHTS)} bytes", "run the command again to go on from there")
    assert model.part.read_bytes() == WEIGHTS[:100_000]
    server.cut = None
    assert model.fetch()[0] == 0
    assert server.requests == [None, "bytes=100000-"]
    assert model.file.read_bytes() == WEIGHTS
    assert not model.part.exists()


def test_begins_anew_where_the_server_cannot_go_on(tmp_path, server):
    model = Model(tmp_path, server.url)
    server.ranges = False
    model.part.write_bytes(WEIGHTS[:1000])
    assert model.fetch()[0] == 0
    assert model.file.read_bytes() == WEIGHTS
    model.file.unlink()
    server.ranges = True
    model.part.write_bytes(WEIGHTS + b"too long")
    assert model.fetch()[0] == 0
    assert model.file.read_bytes() == WEIGHTS


def test_a_complete_part_needs_no_request(tmp_path, server):
    model = Model(tmp_path, server.url)
    model.part.write_bytes(WEIGHTS)
    assert model.fetch()[0] == 0
    assert model.file.read_bytes() == WEIGHTS and not server.requests


def test_refuses_a_wrong_sum(tmp_path, server):
    wanted = "0" * 40
    model = Model(tmp_path, server.url, sha1=wanted)
    model.expect_failure(f"has SHA-1 {hashlib.sha1(WEIGHTS).hexdigest()} in place of {wanted}", "Run the command again")
    assert not model.part.exists()
    model.file.write_bytes(b"other weights")
    status, output = model.fetch()
    assert status == 1 and "remove the file to download it again" in output
    assert model.file.read_bytes() == b"other weights"


def test_a_git_blob_is_as_good_a_sum(tmp_path, server):
    """Repositories list files by this sum: the SHA-1 of "blob SIZE", a zero and the file."""
    model = Model(tmp_path, server.url)
    readme = model.folder / "README.md"
    blob = hashlib.sha1(b"blob 300000\0" + WEIGHTS).hexdigest()
    readme.write_text(readme.read_text(encoding="utf-8").replace(f"sha1: {model.sha1}", f"git_blob: {blob}"), encoding="utf-8")
    status, output = model.fetch()
    assert status == 0 and "downloaded, git blob is right" in output, output
    model.file.write_bytes(WEIGHTS[:-1])
    status, output = model.fetch()
    assert status == 1 and f"has {blob}; remove the file" in output, output


def test_other_addresses_are_tried_in_turn(tmp_path, server):
    model = Model(tmp_path, f"{server.url}x\ncaffemodel_url: {server.url}")
    status, output = model.fetch()
    assert status == 0 and "status 404" in output and f"trying {server.url}" in output, output
    assert model.file.read_bytes() == WEIGHTS
    model = Model(tmp_path / "other", f"{server.url}x\ncaffemodel_url: {server.url}y")
    model.expect_failure(f"{server.url}y: the server answers with status 404")


def test_the_models_here_say_what_their_input_is():
    """Each model with published weights for ImageNet has classes, preprocessing, and a right sum."""
    named = [readme for readme in (ROOT / "models").glob("*/README.md") if "labels:" in readme.read_text(encoding="utf-8")]
    assert len(named) >= 11
    for readme in named:
        labels = re.search(r"^labels: (.*)$", readme.read_text(encoding="utf-8"), re.MULTILINE)[1]
        assert len((readme.parent / labels).read_text(encoding="utf-8").splitlines()) == 1000
        assert "mean_value" in (readme.parent / "model_info.prototxt").read_text(encoding="utf-8")


def test_says_what_the_server_answers(tmp_path, server):
    model = Model(tmp_path, server.url + "x")
    model.expect_failure("the server answers with status 404", "README.md may be out of date")
    assert not model.part.exists()


def test_says_that_there_is_no_network(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        model = Model(tmp_path, f"http://127.0.0.1:{unused.getsockname()[1]}/weights")
        model.expect_failure("cannot reach the server", "is this machine offline")
    assert not model.part.exists()


def test_explains_what_a_model_lacks(tmp_path):
    model = Model(tmp_path, "http://127.0.0.1/weights", sha1="abc")
    model.expect_failure("README.md: sha1 is 'abc'; a SHA-1 has 40 hexadecimal digits")
    (model.folder / "README.md").write_text("# Net\n", encoding="utf-8")
    model.expect_failure("README.md: its head has no 'caffemodel:'")
    status, output = model.fetch("nett")
    assert status == 1 and "nett: neither a folder nor a model in models/; there are bvlc_alexnet" in output


def test_lists_the_models_with_weights(tmp_path):
    model = Model(tmp_path, "http://127.0.0.1/weights")
    status, output = model.fetch("--list")
    assert status == 0
    assert re.search(r"^net +http://127.0.0.1/weights$", output, re.MULTILINE)
    for name in ("bvlc_alexnet", "bvlc_googlenet", "bvlc_reference_caffenet", "bvlc_reference_rcnn_ilsvrc13"):
        assert re.search(rf"^{name} +http://dl.caffe.berkeleyvision.org/{name}.caffemodel$", output, re.MULTILINE)
    model.file.write_bytes(WEIGHTS)
    assert re.search(r"^net +models/net/net.caffemodel$", model.fetch("--list")[1], re.MULTILINE)
