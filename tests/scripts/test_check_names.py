"""scripts/check_names.py on small trees."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(root):
    done = subprocess.run([sys.executable, ROOT / "scripts" / "check_names.py", root],
                          capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def check(tmp_path, first, second, folders=("data/parsers", "data/readers")):
    for folder, name, text in zip(folders, ("first.cpp", "second.cpp"), (first, second)):
        path = tmp_path / "src" / "caffe" / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"namespace caffe {{\nnamespace {{\n\n{text}\n\n}}  // namespace\n}}  // namespace caffe\n")
    (tmp_path / "tests").mkdir()
    return run(tmp_path)


def test_names_of_the_project_do_not_clash():
    assert run(ROOT) == (0, "")


@pytest.mark.parametrize("first, second", [
    ("class Numbers {\n};", "class Numbers final : public RecordReader {\n};"),
    ("struct Line {\n};", "enum class Line { kA };"),
    ("constexpr int kPause = 1;", "const std::string kPause = Text(3) +\n    Text(4);"),
    ("int Sum(int a, int b) {\n}", "int Sum(int first, int second = 0) {\n}"),
    ("std::string Text() {\n}", "static std::string Text() {\n}"),
    ("void Walk(const Net& net,\n          int depth) {\n}", "void Walk(const Net& other, int depth) {\n}"),
    ("using Kind = ops::Kind;", "enum Kind {\n};"),
])
def test_two_of_a_name_in_a_folder_clash(tmp_path, first, second):
    name = next(word for word in ("Numbers", "Line", "kPause", "Sum", "Text", "Walk", "Kind") if word in first)
    status, said = check(tmp_path, first, second)
    assert status == 1
    assert said == (f"src/caffe/data/readers/second.cpp:4: {name} is defined at src/caffe/data/parsers/first.cpp:4"
                    " too; rename one of them\n")


@pytest.mark.parametrize("first, second", [
    ("int Sum(int a, int b) {\n}", "int Sum(int a, float b) {\n}"),
    ("int Sum(const std::vector<int>& values) {\n}", "int Sum(int value) {\n}"),
    ("template <typename T>\nint Sum(T value) {\n}", "int Sum(T value) {\n}"),
    ("class Numbers {\n  int sum = 0;\n};", "int sum = 0;"),
])
def test_overloads_do_not(tmp_path, first, second):
    assert check(tmp_path, first, second) == (0, "")


def test_other_folders_are_compiled_apart(tmp_path):
    assert check(tmp_path, "class Numbers {\n};", "class Numbers {\n};", ("data", "io")) == (0, "")
