"""caffe._counted: nouns of messages agree with their numbers."""
from caffe._counted import counted


def test_one_has_the_singular():
    assert [counted(count, "file") for count in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert [counted(count, "class", "classes") for count in (1, 2)] == ["1 class", "2 classes"]
