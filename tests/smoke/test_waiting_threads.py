"""How `caffe` lets OpenMP's threads wait for each other: they spin briefly, then sleep."""
import re

import pytest


def settings(program, run, **environment):
    """The setting that g++'s OpenMP was last started with; another runtime has no such setting."""
    shown = run(program("caffe"), "--version", env={"OMP_DISPLAY_ENV": "verbose", **environment})
    found = re.findall(r"GOMP_SPINCOUNT = '(\d+)'", shown.stderr)
    if not found:
        pytest.skip("not g++'s OpenMP")
    return int(found[-1])


def test_threads_spin_for_as_long_as_they_usually_wait(program, run):
    assert settings(program, run) == 5000


@pytest.mark.parametrize("environment, count", [({"OMP_WAIT_POLICY": "passive"}, 0), ({"GOMP_SPINCOUNT": "7"}, 7)])
def test_what_the_user_sets_is_kept(program, run, environment, count):
    assert settings(program, run, **environment) == count
