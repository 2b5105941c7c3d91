"""Training and inference on NumPy arrays: caffe.fit() and the object that it returns.

`definitions` reads nets and solvers, `arrays` checks records beside the inputs of a net, `passes`
feeds batches and reads results, `fitted` puts them together.
"""
from .fitted import Fit, fit

__all__ = ["Fit", "fit"]
