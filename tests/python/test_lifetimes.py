"""Objects live at least as long as the objects that use them."""
import gc
import weakref

import caffe
import numpy as np

NET = """
layer { name: 'm' type: 'MemoryData' top: 'x' top: 'y' memory_data_param { batch_size: 2 channels: 1 height: 1 width: 1 } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' inner_product_param { num_output: 1 } }
layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'y' top: 'loss' }
"""


def test_a_solvers_nets_keep_their_input_arrays(write):
    net = write(NET)
    solver = caffe.get_solver(write(f"train_net: '{net}' test_net: '{net}' test_iter: 1 test_interval: 100 base_lr: 0.1 "
                                    "test_initialization: false lr_policy: 'fixed' random_seed: 1", "solver.prototxt"))
    kept = []
    for get in (lambda: solver.net, lambda: solver.test_nets[0]):
        assert get() is get()
        data, labels = np.ones((4, 1, 1, 1), np.float32), np.full((4, 1, 1, 1), 7, np.float32)
        get().set_input_arrays(data, labels)
        kept += [weakref.ref(data), weakref.ref(labels)]
        del data, labels
    gc.collect()
    assert all(reference() is not None for reference in kept)
    solver.step(1)
    assert (solver.net.blobs["y"].data == 7).all()
    net = solver.net
    del solver
    gc.collect()
    assert kept[0]() is not None and net.forward()
    del net
    gc.collect()
    assert kept[0]() is None
