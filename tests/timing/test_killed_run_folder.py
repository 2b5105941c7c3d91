"""Run folders (docs/runs.md) of a run that is killed."""
import json
import subprocess

from programs import wait_for_line


def lines_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_after_a_kill_lines_are_whole_and_a_resume_continues(program, run, solver, tmp_path):
    folder = tmp_path / "run"
    path = solver("killed", max_iter=100_000_000, display=1, snapshot=20)
    state = tmp_path / "killed_iter_20.solverstate"
    with subprocess.Popen([program("caffe"), "train", f"--solver={path}", f"--run_dir={folder}"], text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while not state.exists():
            wait_for_line(process, r"Iteration \d+ \(")
        process.kill()
    before = lines_of(folder)
    assert before[-1]["event"] != "end"
    session, = json.loads((folder / "run.json").read_text())["sessions"]
    assert "end" not in session
    path = solver("killed", max_iter=25, display=1, snapshot=20)
    done = run(program("caffe"), "train", f"--solver={path}", f"--run_dir={folder}", f"--snapshot={state}")
    assert done.returncode == 0, done.stderr
    added = lines_of(folder)[len(before):]
    assert added[0]["event"] == "start" and added[0]["resumed_from"] == str(state) and added[0]["iteration"] == 20
    assert [line["iteration"] for line in added if line["event"] == "train"] == [20, 21, 22, 23, 24]
    # A resumed run repeats iterations that were already done.
    losses = {line["iteration"]: line["loss"] for line in before if line["event"] == "train"}
    assert all(line["loss"] == losses[line["iteration"]] for line in added
               if line["event"] == "train" and line["iteration"] in losses)
    assert [session.get("reason") for session in json.loads((folder / "run.json").read_text())["sessions"]] == [None, "finished"]
