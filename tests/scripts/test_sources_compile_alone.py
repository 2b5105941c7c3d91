"""Each source includes what it uses, although presets compile several at a time."""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.skipif("CAFFE_SLOW_TESTS" not in os.environ,
                    reason="slow: runs with CAFFE_SLOW_TESTS=1 (scripts/test.sh --all)")
def test_sources_compile_alone(tmp_path):
    def run(*command):
        done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    run("cmake", "--preset", "cpu-release", "-B", tmp_path, "-DCMAKE_UNITY_BUILD=OFF",
        "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON")
    targets = subprocess.run(["ninja", "-C", tmp_path, "-t", "targets", "all"], text=True, capture_output=True, check=True)
    generated = [line.split(":")[0] for line in targets.stdout.splitlines()
                 if line.split(":")[0].endswith((".pb.h", "_pb2.py"))]
    run("ninja", "-C", tmp_path, *generated)

    def complaint(entry):
        if not pathlib.Path(entry["file"]).is_relative_to(ROOT):
            return ""
        words = shlex.split(entry["command"])
        words = words[next(i for i, word in enumerate(words) if word.startswith("-")) - 1:]  # without ccache
        place = words.index("-o")
        del words[place:place + 2]
        done = subprocess.run([*words, "-fsyntax-only"], cwd=entry["directory"], text=True, capture_output=True,
                              check=False)
        return done.stderr if done.returncode else ""

    commands = json.loads((tmp_path / "compile_commands.json").read_text())
    assert len(commands) > 500
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [text for text in pool.map(complaint, commands) if text]
    assert not complaints, "\n".join(complaints)
