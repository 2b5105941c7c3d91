"""tests/stranger/run.sh before it creates its system, with stand-ins for commands that need root."""
import os
import pathlib
import subprocess

STRANGER = pathlib.Path(__file__).resolve().parents[1] / "stranger"


def test_it_finds_itself_from_any_folder(tmp_path):
    for name, body in {"id": "echo 0", "unshare": 'while [ "${1#--}" != "$1" ]; do shift; done; test -x "$1" && echo found'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(["./run.sh"], cwd=STRANGER, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
                          text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.stdout == "found\n"
