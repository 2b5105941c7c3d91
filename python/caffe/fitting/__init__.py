"""Training and inference on NumPy arrays: caffe.fit() and the object that it returns.

`definitions` reads nets and solvers, `arrays` matches records with the inputs of a net, `passes`
feeds batches and reads results, `fitted` combines them.
"""
from .fitted import Fit, fit

__all__ = ["Fit", "fit"]
