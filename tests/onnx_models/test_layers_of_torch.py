"""Weights of PyTorch's modules give the same results in the layers that say so; skipped without PyTorch."""
import nets
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="no PyTorch: pip install torch")

CASES = {  # module, layer, shape of the input
    "GroupNorm": (lambda: torch.nn.GroupNorm(2, 6), "type: 'GroupNorm' group_norm_param { num_groups: 2 }", (2, 6, 4, 5)),
    "InstanceNorm": (lambda: torch.nn.InstanceNorm2d(6), "type: 'InstanceNorm' group_norm_param { affine: false }", (2, 6, 4, 5)),
    "InstanceNorm with scale": (lambda: torch.nn.InstanceNorm2d(6, affine=True), "type: 'InstanceNorm'", (2, 6, 4, 5)),
    "PixelShuffle": (lambda: torch.nn.PixelShuffle(3), "type: 'PixelShuffle' pixel_shuffle_param { upscale_factor: 3 }", (2, 18, 2, 3)),
    "LogSoftmax": (lambda: torch.nn.LogSoftmax(1), "type: 'LogSoftmax'", (2, 6, 3)),
    "Softplus": (torch.nn.Softplus, "type: 'Softplus'", (2, 6)),
}


def layer_like(module, layer, shape):
    """A net with one layer that has the module's weights, in their order; random, so that none is 0 or 1."""
    net = nets.net_with(shape if isinstance(shape, list) else [shape], f"layer {{ name: 'l' {layer} top: 'y' }}")
    with torch.no_grad():
        for weights in module.parameters():
            weights.uniform_(-1, 1)
    for blob, weights in zip(net.params["l"] if list(module.parameters()) else (), module.parameters(), strict=True):
        assert blob.shape == tuple(weights.shape)
        blob.data[...] = weights.detach().numpy()
    return net


def close(net, x, wanted):
    return net.forward(**x)["y"] == pytest.approx(wanted.detach().numpy(), abs=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_a_module(case):
    torch.manual_seed(1)
    make, layer, shape = CASES[case]
    module, x = make().eval(), np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    assert close(layer_like(module, f"bottom: 'x0' {layer}", shape), {"x0": x}, module(torch.from_numpy(x)))


def test_multi_head_attention():
    torch.manual_seed(1)
    module = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    generator = np.random.default_rng(2)
    x, mask = generator.standard_normal((2, 5, 8)).astype(np.float32), (generator.random((2, 5)) < 0.7).astype(np.float32)
    tensor = torch.from_numpy(x)
    net = layer_like(module, "bottom: 'x0' type: 'MultiHeadAttention' attention_param { num_heads: 2 }", (2, 5, 8))
    assert close(net, {"x0": x}, module(tensor, tensor, tensor)[0])
    net = layer_like(module, "bottom: 'x0' bottom: 'x1' type: 'MultiHeadAttention' attention_param { num_heads: 2 }", [(2, 5, 8), (2, 5)])
    hidden = torch.from_numpy(mask == 0)
    assert close(net, {"x0": x, "x1": mask}, module(tensor, tensor, tensor, key_padding_mask=hidden)[0])
