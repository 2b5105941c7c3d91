"""What the editor of definitions knows."""
from caffe.studio.completion import schema, script


def test_fields_of_nested_messages():
    known = schema("NetParameter")
    assert known["caffe.NetParameter"]["layer"] == ["caffe.LayerParameter", []]
    assert known["caffe.ConvolutionParameter"]["weight_filler"] == ["caffe.FillerParameter", []]
    assert known["caffe.PoolingParameter"]["pool"][1][:2] == ["MAX", "AVE"]
    assert known["caffe.ConvolutionParameter"]["bias_term"] == ["bool", ["true", "false"]]


def test_types_of_layers():
    assert '"type":["text",["AbsVal",' in script("NetParameter")
    assert "caffe.SolverParameter" in script("SolverParameter")
