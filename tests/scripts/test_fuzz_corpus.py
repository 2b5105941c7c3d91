"""scripts/fuzz.sh packs the inputs that it found into an archive, and starts with those of an archive."""
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Merges like libFuzzer, but takes everything; otherwise lists the inputs that it starts with.
LIBFUZZER = """#!/bin/sh
case "$*" in
*-merge=1*) for folder; do last=$folder into=$before before=$folder; done; cp "$last"/* "$into" ;;
*) for folder; do last=$folder into=$before before=$folder; done; ls "$into" "$last" >seen ;;
esac
"""


@pytest.fixture
def fuzz(tmp_path):
    for name in ("fuzz.sh", "common.sh"):
        (tmp_path / "scripts").mkdir(exist_ok=True)
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    for path, text in {"fake/cmake": "#!/bin/sh\n", "fake/clang++-19": "#!/bin/sh\n", "build/fuzz/bin/net_fuzz": LIBFUZZER}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
        (tmp_path / path).chmod(0o755)
    for path in ("tests/fuzz/corpus/net/seed", "build/fuzz/corpus/net/found"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()

    def run(*arguments):
        environment = {**os.environ, "PATH": f"{tmp_path / 'fake'}:{os.environ['PATH']}"}
        return subprocess.run(["bash", tmp_path / "scripts" / "fuzz.sh", *arguments], cwd=tmp_path, env=environment, text=True,
                              check=True, stdin=subprocess.DEVNULL, capture_output=True).stdout
    return run


def test_the_archive_has_the_seeds_and_what_was_found(fuzz, tmp_path):
    assert "2 inputs" in fuzz("--merge", "net")
    with tarfile.open(tmp_path / "build" / "fuzz" / "corpus.tar.gz") as archive:
        assert {"./net/seed", "./net/found"} <= set(archive.getnames())
    assert os.listdir(tmp_path / "tests" / "fuzz" / "corpus" / "net") == ["seed"]


def test_a_run_begins_with_the_inputs_of_an_archive(fuzz, tmp_path):
    fuzz("--merge", "net")
    shutil.copy(tmp_path / "build" / "fuzz" / "corpus.tar.gz", tmp_path / "kept.tar.gz")
    shutil.rmtree(tmp_path / "build" / "fuzz" / "corpus")
    fuzz("--corpus", "kept.tar.gz", "--seconds", "1", "net")
    assert {"seed", "found"} <= set((tmp_path / "seen").read_text().split())


def test_the_committed_corpora_stay_small():
    """Inputs that broke something have a descriptive name; there are at most five others for each target."""
    for corpus in (ROOT / "tests" / "fuzz" / "corpus").iterdir():
        files = list(corpus.iterdir())
        assert len(files) <= 20 and all(len(file.name) < 40 for file in files), corpus.name
