"""scripts/proofs.py: the proofs that a change requires, and the files that must have one."""
import re
import shutil

import pytest

from proofs_tree import ROOT, TABLE, commit, deep, git, make_tree, run, write  # pylint: disable=unused-import

PROOFS = (deep("beside", "src/caffe/net", python=["tests/ranks/test_*.py"]) +
          deep("holds", "src/caffe/net", holds=["tests/soak/soak.py"]) +
          deep("traced", "src/caffe/net", preset="tsan") + deep("runs", "src/caffe/net", command=["tests/stranger/run.sh"]))
ALL = {"beside", "holds", "traced", "runs"}


@pytest.fixture(name="called")
def proofs_that_a_change_calls_for(tree):
    write(tree, "tests/proofs.toml", TABLE + PROOFS)
    for path in ("tests/ranks/test_ranks.py", "tests/ranks/ranks.py", "tests/ranks/test_ühr.py", "tests/soak/soak.py",
                 "tests/stranger/run.sh", "tests/stranger/steps.sh", "tests/tsan.supp", "tests/CMakeLists.txt", 
                 "CMakeLists.txt", "README.md", "src/caffe/CMakeLists.txt", "src/caffe/ops/CMakeLists.txt",
                 "src/caffe/net/solver.cpp"):
        write(tree, path, f"# {path}\n")
    write(tree, "tests/proofs.toml", TABLE + PROOFS + deep("ops", "src/caffe/ops"))
    base = commit(tree)
    write(tree, "tests/proofs.passed", "".join(f"{name} {base} 2026-01-01\n" for name in (*ALL, "ops")))

    def called():
        status, said = run(tree, "--plan")
        assert status == 0, said
        return {line.split()[1] for line in said.splitlines() if " has changed since " in line} - {"ops"}
    return called


@pytest.mark.parametrize("path, names", [
    ("tests/ranks/ranks.py", {"beside"}), ("tests/ranks/test_ranks.py", {"beside"}), ("tests/ranks/test_ühr.py", {"beside"}),
    ("tests/soak/soak.py", {"holds"}), ("tests/stranger/run.sh", {"runs"}), ("tests/stranger/steps.sh", {"runs"}),
    ("tests/tsan.supp", {"traced"}), ("CMakeLists.txt", ALL), ("tests/CMakeLists.txt", ALL),
    ("src/caffe/CMakeLists.txt", ALL), ("src/caffe/ops/CMakeLists.txt", set()), ("README.md", set())])
def test_what_a_proof_depends_on_calls_for_it(tree, called, path, names):
    (tree / path).write_text("changed\n")
    assert called() == names


def test_a_file_that_has_left_a_folder_calls_for_its_proofs(tree, called):
    git(tree, "mv", "src/caffe/net/solver.cpp", "src/caffe/ops/solver.cpp")
    assert called() == ALL


@pytest.mark.parametrize("path", [
    "tests/quick/sub/foo_test.cpp", "tests/foo_test.cpp", "tests/quick/foo_test.py", "tools/extra/test_foo.py",
    "tests/fuzz/newdir/x_fuzz.cpp", "tests/quick/sub/test_foo.py"])
def test_a_test_that_no_pattern_takes_is_an_error(tree, path):
    write(tree, "tests/proofs.toml", TABLE + deep("all", "tools/extra", cpp=["quick", "fuzz"]))
    write(tree, "tools/extra/a.py", "")
    write(tree, "tests/fuzz/a_fuzz.cpp", "")
    assert run(tree, "--plan")[0] == 0
    write(tree, path, "")
    status, said = run(tree, "--plan")
    assert status == 1 and f"{path} is run by no proof" in said


@pytest.mark.parametrize("folder", ["src/quantum", "engine", "src/caffe/quantum"])
def test_a_new_folder_of_sources_is_an_error(tree, folder):
    write(tree, f"{folder}/gate.cpp", "")
    status, said = run(tree, "--plan")
    assert status == 1 and f"a change of {folder}/ calls for no proof" in said


def test_folders_that_git_does_not_know_are_none(tree):
    write(tree, ".gitignore", (tree / ".gitignore").read_text() + ".ipynb_checkpoints\n")
    write(tree, "src/.ipynb_checkpoints/a.py", "")
    (tree / "src" / "caffe" / "left_by_a_branch").mkdir()
    assert run(tree, "--plan")[0] == 0


def test_sources_without_git_have_the_same_folders(tree):
    """The sources come from an archive."""
    shutil.rmtree(tree / ".git")
    assert run(tree, "--plan", GIT_CEILING_DIRECTORIES=str(tree.parent))[0] == 0
    write(tree, "src/quantum/gate.cpp", "")
    assert "a change of src/quantum/ calls for no proof" in run(tree, "--plan", GIT_CEILING_DIRECTORIES=str(tree.parent))[1]


def test_no_test_on_emulated_grids_is_left_out_by_its_name():
    """CMake only takes tests from cuda_on_host_test whose name contains Cuda or WindowsBeyond."""
    assert "TEST_FILTER *Cuda*:*WindowsBeyond*:" in (ROOT / "tests" / "CMakeLists.txt").read_text()
    assert left_out("TEST_F(OldTest, Adds)") == ["OldTest.Adds"] and not left_out("TEST_P(CudaTest,\n       Adds)")
    files = [path for folder in ("cuda_on_host", "gpu_training") for path in (ROOT / "tests" / folder).glob("*_test.cpp")]
    assert files and not [name for path in files for name in left_out(path.read_text(encoding="utf-8"))]


def left_out(text):
    found = re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s*(\w+)", text, re.MULTILINE)
    return [name for name in map(".".join, found) if "Cuda" not in name and "WindowsBeyond" not in name]
