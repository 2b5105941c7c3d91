"""What pages make of commands and of what they say."""
import pytest

from caffe.studio.commands import _complaint


@pytest.mark.parametrize("text, said", [
    ("W1128 10:00:00.000000 1 net.cpp:1] first\ncaffe plan: net.prototxt:3:1: no field 'num_outptu'\n  num_outptu: 3\n  ^\n",
     "net.prototxt:3:1: no field 'num_outptu'\n  num_outptu: 3\n  ^"),
    ("E1128 10:00:00.000000 1 a.cpp:1] x.png: no image\ncaffe classify: 1 of the images could not be read; see above",
     "x.png: no image\n1 of the images could not be read; see above"),
    ("Traceback\n  line\nValueError: bad", "ValueError: bad"), ("", "")])
def test_messages(text, said):
    assert _complaint(text) == said
