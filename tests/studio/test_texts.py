"""Files that users edit are written as they were, and never over the changes of others."""
import threading

import pytest

import caffe
from caffe.studio.texts import EditedText


@pytest.mark.parametrize("content", ["a\nb\n", "a\r\nb\r\n", "no line's end", "", "r\u00e9seau \u732b\r\n"])
def test_what_is_not_changed_stays(tmp_path, content):
    file = tmp_path / "net.prototxt"
    file.write_bytes(content.encode())
    edited = EditedText(file)
    assert "\r" not in edited.text
    edited.save(edited.text, str(tmp_path / "lock"))
    assert file.read_bytes() == content.encode()


def test_new_lines_end_as_the_others(tmp_path):
    file = tmp_path / "net.prototxt"
    file.write_bytes(b"a\r\nb\r\n")
    edited = EditedText(file)
    edited.save(edited.text + "c\n", str(tmp_path / "lock"))
    assert file.read_bytes() == b"a\r\nb\r\nc\r\n"
    edited.save("d\n", str(tmp_path / "lock"))  # what was saved here is not a change of others
    assert file.read_bytes() == b"d\r\n"


@pytest.mark.parametrize("content, why", [
    (b"# first\n# r\xe9seau\n", "net.prototxt:2: the byte 0xe9 is not UTF-8"), (b"a\r\nb\n", "1 of its lines end with CR LF, 1 with LF and 0 with CR"),
    (b"a\rb\r", "0 of its lines end with CR LF, 0 with LF and 2 with CR")])
def test_what_cannot_be_written_back(tmp_path, content, why):
    file = tmp_path / "net.prototxt"
    file.write_bytes(content)
    with pytest.raises(caffe.InvalidArgument, match=f"{why}.*cannot be edited here"):
        EditedText(file)


def test_two_pages_that_save_together(tmp_path):
    """Both have found that the file is as they know it; one of them is refused."""
    file = tmp_path / "net.prototxt"
    file.write_text("a\n")
    pages = [EditedText(file) for _ in range(4)]
    ready, outcomes = threading.Barrier(len(pages)), []

    def save(number):
        pages[number].require_same()
        ready.wait()
        try:
            pages[number].save(f"page {number}\n", str(tmp_path / "lock"))
            outcomes.append(number)
        except caffe.InvalidArgument as error:
            assert "has changed on the disk since you opened it" in str(error)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(len(pages))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 1 and file.read_text() == f"page {outcomes[0]}\n"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["lock", "net.prototxt"]
