"""Labels and indices are never rounded to 16 bits, whatever lies between their source and what reads them."""
import numpy as np
import pytest

import caffe

CLASSES = 1000
LABELS = [997, 3, 991, 513]  # none of the odd ones above 256 is a bfloat16
BETWEEN = {  # from "l", of 4 x 1 x 1 x 1, to "label", of which every element is one of the labels
    "nothing": 'type: "Reshape" reshape_param { shape { dim: 4 } }',
    "Permute": 'type: "Permute" permute_param { order: 1 order: 0 }',
    "Tile": 'type: "Tile" tile_param { axis: 1 tiles: 1 }',
    "Reverse": 'type: "Reverse" reverse_param { axis: 1 }',
    "Pooling": 'type: "Pooling" pooling_param { pool: MAX kernel_size: 1 }',
    "Power": 'type: "Power" power_param { scale: 1 }',
    "ReLU": 'type: "ReLU"',
    "Expression": 'type: "Expression" expression_param { expr: "max(x, 0)" }',
    "Eltwise": 'type: "Eltwise" bottom: "l" eltwise_param { operation: MAX }',
    "Crop": 'type: "Crop" bottom: "l" crop_param { axis: 1 }',
    "PixelShuffle": 'type: "PixelShuffle" pixel_shuffle_param { upscale_factor: 1 }',
    "TopK": 'type: "TopK" top: "places" top_k_param { k: 1 axis: 1 }',
    "Gather": 'type: "Gather" bottom: "first" gather_param { axis: 1 }',
    "Filter": 'type: "Filter" bottom: "all"',
}


def net(write, between, types, **options):
    layers = [f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {" ".join(f"dim: {d}" for d in dims)} }} }} }}'
              for name, dims in {"l": (4, 1, 1, 1), "first": (1,), "all": (4,), "scores": (4, CLASSES)}.items()]
    layers += [f'layer {{ name: "between" bottom: "l" top: "label" {between} }}',
               'layer { name: "flat" type: "Reshape" bottom: "label" top: "flat" reshape_param { shape { dim: -1 } } }',
               'layer { name: "acc" type: "Accuracy" bottom: "scores" bottom: "flat" top: "acc" }',
               f'layer {{ name: "embed" type: "Embed" bottom: "flat" top: "rows" embed_param {{ input_dim: {CLASSES} num_output: 1 }} }}']
    text = "".join(f"default_{way}_{what}: {types}\n" for way in ("forward", "backward") for what in ("type", "math"))
    return caffe.Net(write(text + "\n".join(layers)), caffe.TEST, **options)


@pytest.mark.parametrize("keep_all", [True, False])
@pytest.mark.parametrize("types", ["BFLOAT16", "FLOAT16"])
@pytest.mark.parametrize("between", BETWEEN)
def test_labels_and_indices_are_exact(write, between, types, keep_all):
    made = net(write, BETWEEN[between], types, keep_all=keep_all)
    made.params["embed"][0].data[...] = np.arange(CLASSES).reshape(-1, 1) / 1024  # exact in both types as a row's place
    made.blobs["l"].data[...] = np.reshape(LABELS, (4, 1, 1, 1))
    made.blobs["all"].data[...] = 1
    made.blobs["scores"].data[...] = 0
    made.blobs["scores"].data[np.arange(4), LABELS] = 1
    result = made.forward()
    assert result["acc"] == 1
    assert np.ravel(result["rows"]) == pytest.approx(np.float32(LABELS) / 1024, rel=2 ** -8)


def test_tokens_that_are_transposed_are_exact(write):
    text = "".join(f"default_forward_{what}: BFLOAT16 default_backward_{what}: BFLOAT16\n" for what in ("type", "math"))
    made = caffe.Net(write(text + """
layer { name: "t" type: "Input" top: "t" input_param { shape { dim: 2 dim: 2 } } }
layer { name: "turned" type: "Permute" bottom: "t" top: "turned" permute_param { order: 1 order: 0 } }
layer { name: "embed" type: "Embed" bottom: "turned" top: "rows" embed_param { input_dim: 800 num_output: 1 bias_term: false } }"""), caffe.TEST)
    made.params["embed"][0].data[...] = 0
    made.params["embed"][0].data[793] = 1
    made.blobs["t"].data[...] = [[792, 793], [794, 795]]
    assert made.forward()["rows"].tolist() == [[[0], [0]], [[1], [0]]]


def test_what_is_made_of_rounded_products_stays_small(write):
    """The sums of a formula keep its terms, which are no labels: nothing before them would become more exact."""
    text = "".join(f"default_{way}_{what}: BFLOAT16\n" for way in ("forward", "backward") for what in ("type", "math"))
    made = caffe.Net(write(text + """
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 3 dim: 16 dim: 16 } } }
layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 32 kernel_size: 3 } }
layer { name: "p" type: "Pooling" bottom: "c" top: "p" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "r" type: "ReLU" bottom: "p" top: "p" }
layer { name: "s" type: "Slice" bottom: "p" top: "a" top: "b" }
layer { name: "loss" type: "Expression" bottom: "a" bottom: "b" top: "loss" loss_weight: 1 expression_param { expr: "mean(square(x - y))" } }"""),
                     caffe.TRAIN, keep_all=False)
    lines = str(made.plan()).splitlines()
    pools = [lines[k + 1] for k, line in enumerate(lines) if "MaxPool[" in line]
    assert pools and all("32x7x7 bfloat16" in line for line in pools)
