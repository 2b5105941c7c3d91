"""Which layers compiled programs may have: the examples of docs/layers are compiled, except for those in the table of docs/runtime.md."""
import re
import sys

import numpy as np
import pytest
from programs import BINARIES, ROOT
from test_runtime import outputs_of

import caffe

# TensorRT is never there, and videos need a library.
PAGES = [page for page in sorted((ROOT / "docs" / "layers").glob("*.md")) if page.stem not in ("TRT", "VideoData")]


def refused():
    """The ops of which one is in the error, by type of layer."""
    page = (ROOT / "docs" / "runtime.md").read_text(encoding="utf-8")
    rows = page.split("| refused | layers | ops |\n")[1].split("\n\n")[0].splitlines()[1:]
    cells = [row.strip("| ").split(" | ") for row in rows]
    return {layer: re.findall("`(.*?)`", ops) for _, layers, ops in cells for layer in layers.split(", ")}


REFUSED = refused()


@pytest.fixture(scope="module", name="examples")
def module_of_examples():
    sys.path.insert(0, str(ROOT / "scripts"))
    import layer_examples  # pylint: disable=import-outside-toplevel
    with layer_examples.folder():
        yield
    sys.path.remove(str(ROOT / "scripts"))


def compiled(page, folder):
    """The net of the page's example with random inputs, and its program."""
    example = re.search(r"## Example\n+```prototxt\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL).group(1)
    (folder / "net.prototxt").write_text(example, encoding="utf-8")
    net, random = caffe.Net(str(folder / "net.prototxt"), caffe.TEST), np.random.default_rng(1)
    for name in net.inputs:
        net.blobs[name].data[...] = random.random(net.blobs[name].shape)
    net.save_program(str(folder / "net.cortado"))
    return net


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_layer_is_compiled_or_refused(page, tmp_path):
    if page.stem in REFUSED:
        with pytest.raises(caffe.Error) as error:
            compiled(page, tmp_path)
        assert any(f" runs {op}, which compiled programs do not have" in str(error.value) for op in REFUSED[page.stem]), error.value
        return
    net = compiled(page, tmp_path)
    wanted = {name: blob.copy() for name, blob in net.forward().items()}
    for name in net.inputs:
        np.float32(net.blobs[name].data).tofile(tmp_path / name)
    found = outputs_of(BINARIES / "cortado_run", tmp_path / "net.cortado", *(tmp_path / name for name in net.inputs))
    assert set(found) == set(wanted)
    for name, blob in wanted.items():
        rows = found[name].reshape(blob.shape) if found[name].size == blob.size else found[name][:, :, :blob.shape[2]]  # boxes
        np.testing.assert_allclose(rows, blob, rtol=1e-4, atol=1e-5, err_msg=name)
