"""scripts/check_names.py on the project's build and on small ones."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve()
sys.path.insert(0, str(ROOT / "scripts"))
import check_names  # noqa: E402


def check(tmp_path, first, second, targets=("caffe_data", "caffe_data")):
    for folder, name, text, target in zip(("parsers", "readers"), ("first", "second"), (first, second), targets):
        path = tmp_path / folder / f"{name}.cpp"
        path.parent.mkdir()
        path.write_text(f"namespace caffe {{\nnamespace {{\n\n{text}\n\n}}  // namespace\n}}  // namespace caffe\n")
        joined = tmp_path / "build" / "unity" / f"{target}_{0 if name == 'first' else 1}.cpp"
        joined.parent.mkdir(parents=True, exist_ok=True)
        joined.write_text(f'#include "{folder}/{name}.cpp"\n')
    return list(check_names.check(tmp_path / "build", tmp_path))


@pytest.mark.skipif(not (BINARIES / "src").is_dir(), reason="nothing is built")
def test_names_of_the_project_do_not_clash():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "check_names.py", BINARIES],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("first, second", [
    ("class Numbers {\n};", "class Numbers final : public RecordReader {\n};"),
    ("struct Line {\n};", "enum class Line { kA };"),
    ("constexpr int kPause = 1;", "const std::string kPause = Text(3) +\n    Text(4);"),
    ("int Sum(int a, int b) {\n}", "int Sum(int first, int second = 0) {\n}"),
    ("std::string Text() {\n}", "static std::string Text() {\n}"),
    ("void Walk(const Net& net,\n          int depth) {\n}", "void Walk(const Net& other, int depth) {\n}"),
    ("using Kind = ops::Kind;", "enum Kind {\n};"),
])
def test_two_of_a_name_in_a_target_clash(tmp_path, first, second):
    name = next(word for word in ("Numbers", "Line", "kPause", "Sum", "Text", "Walk", "Kind") if word in first)
    assert check(tmp_path, first, second) == [
        f"readers/second.cpp:4: {name} is defined at parsers/first.cpp:4 too; rename one of them"]


@pytest.mark.parametrize("first, second", [
    ("int Sum(int a, int b) {\n}", "int Sum(int a, float b) {\n}"),
    ("int Sum(const std::vector<int>& values) {\n}", "int Sum(int value) {\n}"),
    ("template <typename T>\nint Sum(T value) {\n}", "int Sum(T value) {\n}"),
    ("class Numbers {\n  int sum = 0;\n};", "int sum = 0;"),
])
def test_overloads_do_not(tmp_path, first, second):
    assert check(tmp_path, first, second) == []


@pytest.mark.parametrize("targets", [("caffe_data", "caffe_io"), ("caffe_cpu", "caffe_cpu")])
def test_others_are_compiled_apart(tmp_path, targets):
    assert check(tmp_path, "class Numbers {\n};", "class Numbers {\n};", targets) == []


def test_a_folder_where_nothing_is_joined_is_an_error(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "scripts" / "check_names.py", tmp_path],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "was configured" in done.stderr
