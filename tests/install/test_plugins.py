"""Layers outside the tree: the example's project, and how the program uses its plug-in."""
import shutil

import pytest

from conftest import ROOT


@pytest.fixture(scope="module", name="plugin")
def make_plugin(tree, tmp_path_factory):
    """The example's plug-in, built and tested with its CMakeLists.txt."""
    folder = tmp_path_factory.mktemp("plugin") / "source"
    shutil.copytree(ROOT / "examples" / "plugin", folder)
    tree.run("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={tree.prefix}")
    tree.run("cmake", "--build", folder / "build")
    passed = tree.run("ctest", "--test-dir", folder / "build", "--output-on-failure")
    assert "100% tests passed" in passed and "out of 2" in passed
    return folder / "build" / "softsign.so"


def test_a_net_and_a_solver_may_name_it(tree, plugin, tmp_path):
    example = ROOT / "examples" / "plugin"
    solver = (example / "solver.prototxt").read_text()
    (tmp_path / "solver.prototxt").write_text(f'plugin: "{plugin}"\n{solver}')
    log = tree.run(tree.caffe, "train", tmp_path / "solver.prototxt", cwd=tmp_path)
    assert "Loaded plug-in softsign 1.0" in log and "Optimization Done." in log
    net = f'plugin: "{plugin}"\n' + (example / "check.prototxt").read_text()
    (tmp_path / "net.prototxt").write_text(net)
    assert "softsign" in tree.run(tree.caffe, "plan", tmp_path / "net.prototxt").lower()
    for precision in ("fp32", "fp16", "bf16", "fp64"):
        tree.run(tree.caffe, "time", tmp_path / "net.prototxt", f"-precision={precision}", "-iterations=1")


def test_its_types_and_options_are_listed(tree, plugin):
    assert "softsign_param" in tree.run(tree.caffe, "layers", "-plugin", plugin)
    said = tree.run(tree.caffe, "layers", "Softsign", f"-plugin={plugin}")
    assert "width" in said and "float" in said


def test_without_it_the_type_is_unknown(tree):
    said = tree.run(tree.caffe, "plan", ROOT / "examples/plugin/check.prototxt", status=1)
    assert "check.prototxt:4:57: in layer 'y': LayerParameter has no field 'softsign_param'" in said


@pytest.mark.parametrize("options, at, message", [
    ("softsign_param { widht: 2 }", "widht", "in layer 'y': SoftsignParameter has no field 'widht'; did you mean 'width'?"),
    ("softsign_param { width: wide }", "wide }", "in layer 'y': field 'width' of SoftsignParameter takes a number, got wide"),
    ("softsign_param { width: -1 }", "layer", "layer 'y' (Softsign): softsign_param: width is -1; it must be positive"),
    ("softsing_param { width: 2 }", "softsing", "in layer 'y': LayerParameter has no field 'softsing_param'; did you mean 'softsign_param'?"),
    ("softsign_param { width: 1 } phase: NONE", "NONE", "in layer 'y': field 'phase' of LayerParameter has no value 'NONE'"),
])
def test_errors_in_its_options_have_their_place(tree, plugin, tmp_path, options, at, message):
    line = f'layer {{ name: "y" type: "Softsign" bottom: "x" top: "y" {options} }}'
    (tmp_path / "net.prototxt").write_text(
        f'layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: 2 }} }} }}\n{line}\n')
    said = tree.run(tree.caffe, "plan", "net.prototxt", f"-plugin={plugin}", status=1, cwd=tmp_path)
    assert f"net.prototxt:2:{line.index(at) + 1}: {message}" in said


def test_tabs_do_not_move_the_place(tree, plugin, tmp_path):
    """Protobuf counts a tab as the distance to the next multiple of eight columns, which changes if a name before it gets longer."""
    line = 'layer {\tname: "y"\ttype: "Softsign" bottom: "x" top: "y"\tsoftsign_param {\twidth:\t"a" } }'
    (tmp_path / "net.prototxt").write_text(f'layer {{ name: "x" type: "Input" top: "x" }}\n{line}\n')
    said = tree.run(tree.caffe, "plan", "net.prototxt", f"-plugin={plugin}", status=1, cwd=tmp_path)
    assert f"net.prototxt:2:{line.index(chr(34) + 'a') + 1}: in layer 'y': field 'width' of SoftsignParameter takes a number" in said


def test_the_net_within_a_solver_may_name_it(tree, plugin, tmp_path):
    solver = (ROOT / "examples" / "plugin" / "solver.prototxt").read_text()
    (tmp_path / "solver.prototxt").write_text(solver.replace("net_param {", f'net_param {{ plugin: "{plugin}"', 1))
    assert "Optimization Done." in tree.run(tree.caffe, "train", tmp_path / "solver.prototxt", cwd=tmp_path)


def test_an_override_reaches_its_options(tree, plugin, tmp_path):
    said = tree.run(tree.caffe, "plan", ROOT / "examples/plugin/check.prototxt", f"-plugin={plugin}",
                    "--set", "layer[y].softsign_param.width=3", cwd=tmp_path)
    assert "width 3" in said or "Override" in said


def test_a_wrong_gradient_is_found(tree, plugin, tmp_path):
    """The plug-in's formula of backward has been changed."""
    source = tmp_path / "source"
    shutil.copytree(ROOT / "examples" / "plugin", source)
    header = source / "softsign.hpp"
    header.write_text(header.read_text().replace("dy * A(width) / (sum * sum)", "dy / (sum * sum)"))
    tree.run("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={tree.prefix}")
    tree.run("cmake", "--build", source / "build")
    said = tree.run(tree.caffe, "check-layer", source / "check.prototxt", f"-plugin={source / 'build/softsign.so'}", status=1)
    assert "the gradient of 'x' is off by" in said
    assert "x" in tree.run(tree.caffe, "check-layer", source / "check.prototxt", f"-plugin={plugin}")
