"""Small nets for the tests of caffe.serving."""
import caffe

CLASSES = """
name: "classes"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 4 dim: 2 dim: 3 dim: 3 } } }
layer { name: "fc" type: "InnerProduct" bottom: "data" top: "fc"
        inner_product_param { num_output: 5 weight_filler { type: "gaussian" std: 1 } } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
model_info { label: "ape" label: "bee" label: "cow" label: "dog" label: "emu" }
"""
# Two inputs, and a reshape that fixes the batch.
FIXED = """
layer { name: "a" type: "Input" top: "a" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "b" type: "Input" top: "b" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "sum" type: "Eltwise" bottom: "a" bottom: "b" top: "sum" }
layer { name: "flat" type: "Reshape" bottom: "sum" top: "flat" reshape_param { shape { dim: 6 } } }
"""


def write_net(folder, name, text):
    """Files of a net with random weights: (prototxt, caffemodel)."""
    definition, weights = folder / f"{name}.prototxt", folder / f"{name}.caffemodel"
    definition.write_text(text)
    caffe.set_random_seed(1)
    caffe.Net(str(definition), caffe.TEST).save(str(weights))
    return str(definition), str(weights)
