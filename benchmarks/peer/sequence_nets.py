"""The nets of peer_sequences.py as prototxt."""

_WEIGHTS = "weight_filler { type: 'gaussian' std: 0.02 }"


def _input(*tops):
    """A layer without data: (name, extents) each, all zeros."""
    names = " ".join(f"top: '{name}'" for name, _ in tops)
    shapes = " ".join("shape { " + " ".join(f"dim: {extent}" for extent in extents) + " }" for _, extents in tops)
    return f"layer {{ name: 'input' type: 'Input' {names} input_param {{ {shapes} }} }}\n"


def recurrent(kind, steps, items, width, layers=1, both=False):
    """PyTorch's LSTM or GRU from `width` numbers to as many units, and the mean of its outputs as loss."""
    options = f"num_output: {width} num_layers: {layers} bidirectional: {str(both).lower()} {_WEIGHTS}"
    if kind == "GRU":
        options += " reset_after: true"
    return ("force_backward: true\n" + _input(("x", (steps, items, width)), ("cont", (steps, items)))
            + f"layer {{ name: 'rnn' type: '{kind}' bottom: 'x' bottom: 'cont' top: 'y' recurrent_param {{ {options} }} }}\n"
            + "layer { name: 'loss' type: 'Reduction' bottom: 'y' top: 'loss' loss_weight: 1 reduction_param { operation: MEAN } }\n")


def _block(number, x, width, heads, causal):
    """A block of a transformer, normalized before attention and before the two products (Xiong et al. 2020)."""
    def product(name, bottom, outputs):
        return (f"layer {{ name: '{name}' type: 'InnerProduct' bottom: '{bottom}' top: '{name}' "
                f"inner_product_param {{ num_output: {outputs} axis: 2 {_WEIGHTS} }} }}\n")

    attention = f"num_heads: {heads} causal: {str(causal).lower()} {_WEIGHTS}"
    return (f"layer {{ name: 'norm{number}a' type: 'LayerNorm' bottom: '{x}' top: 'norm{number}a' }}\n"
            f"layer {{ name: 'attention{number}' type: 'MultiHeadAttention' bottom: 'norm{number}a' top: 'attention{number}' "
            f"attention_param {{ {attention} }} }}\n"
            f"layer {{ name: 'sum{number}' type: 'Eltwise' bottom: '{x}' bottom: 'attention{number}' top: 'sum{number}' }}\n"
            f"layer {{ name: 'norm{number}b' type: 'LayerNorm' bottom: 'sum{number}' top: 'norm{number}b' }}\n"
            + product(f"wide{number}", f"norm{number}b", 4 * width)
            + f"layer {{ name: 'gelu{number}' type: 'GELU' bottom: 'wide{number}' top: 'wide{number}' }}\n"
            + product(f"narrow{number}", f"wide{number}", width)
            + f"layer {{ name: 'x{number}' type: 'Eltwise' bottom: 'sum{number}' bottom: 'narrow{number}' top: 'x{number}' }}\n")


def _positions(bottom):
    return f"layer {{ name: 'x0' type: 'Bias' bottom: '{bottom}' top: 'x0' bias_param {{ axis: 1 num_axes: 2 }} }}\n"


def gpt(blocks, width, heads, items, steps, characters):
    """A model of characters: every one from those before it."""
    text = _input(("characters", (items, steps)), ("next", (items, steps)))
    text += (f"layer {{ name: 'embed' type: 'Embed' bottom: 'characters' top: 'embed' embed_param {{ input_dim: {characters} "
             f"num_output: {width} bias_term: false {_WEIGHTS} }} }}\n" + _positions("embed"))
    for number in range(1, blocks + 1):
        text += _block(number, f"x{number - 1}", width, heads, True)
    return text + (f"layer {{ name: 'norm' type: 'LayerNorm' bottom: 'x{blocks}' top: 'norm' }}\n"
                   f"layer {{ name: 'scores' type: 'InnerProduct' bottom: 'norm' top: 'scores' inner_product_param {{ "
                   f"num_output: {characters} axis: 2 bias_term: false {_WEIGHTS} }} }}\n"
                   "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'scores' bottom: 'next' top: 'loss' "
                   "softmax_param { axis: 2 } }\n")


def vit(blocks, width, heads, items, pixels, patch, classes):
    """A vision transformer whose scores are of the mean of all patches."""
    text = _input(("data", (items, 3, pixels, pixels)), ("label", (items,)))
    text += (f"layer {{ name: 'patches' type: 'PatchEmbed' bottom: 'data' top: 'patches' patch_embed_param {{ num_output: {width} "
             f"patch_size: {patch} {_WEIGHTS} }} }}\n" + _positions("patches"))
    for number in range(1, blocks + 1):
        text += _block(number, f"x{number - 1}", width, heads, False)
    return text + (f"layer {{ name: 'norm' type: 'LayerNorm' bottom: 'x{blocks}' top: 'norm' }}\n"
                   "layer { name: 'columns' type: 'Permute' bottom: 'norm' top: 'columns' permute_param { order: [0, 2, 1] } }\n"
                   "layer { name: 'mean' type: 'Reduction' bottom: 'columns' top: 'mean' reduction_param { operation: MEAN axis: 2 } }\n"
                   f"layer {{ name: 'scores' type: 'InnerProduct' bottom: 'mean' top: 'scores' inner_product_param {{ "
                   f"num_output: {classes} {_WEIGHTS} }} }}\n"
                   "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'scores' bottom: 'label' top: 'loss' }\n")
