"""The chart in README.md shows the numbers of the tables."""
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "speed_chart.py"


def test_it_is_up_to_date():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(name="chart")
def module_of_the_script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import speed_chart  # pylint: disable=import-outside-toplevel
    return speed_chart


def test_a_bar_is_as_long_as_its_number(chart):
    picture = chart.picture()
    widths = [int(width) for width in re.findall(r'class="bar" [^>]*width="(\d+)"', picture)]
    numbers = [float(number) for number in re.findall(r">(\d\.\d\d)</text>", picture)]
    assert len(widths) == len(numbers) >= 7 and numbers == sorted(numbers, reverse=True)
    assert widths == [round(chart.SCALE * number) for number in numbers]


def test_a_row_that_is_gone_is_an_error(chart, monkeypatch):
    monkeypatch.setattr(chart, "BARS", ((chart.ZEN5, "ResNet-1, 16", "ratio in FP32", "x"),))
    with pytest.raises(KeyError):
        chart.picture()
