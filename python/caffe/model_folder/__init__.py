"""Makes a model's folder from a folder of images, for `caffe new`.

    solver.prototxt       how it is trained; paths are relative to the folder
    train_val.prototxt    the net for training and testing
    deploy.prototxt       the net for inference, made by `caffe deploy`
    data/                 the input of the data layers
    snapshots/            weights
    runs/                 one folder per training run: docs/runs.md
    README.md             a description, and the commands that use the folder

`datasets` has a module for each kind of data set, caffe.zoo the nets, and `recipes` a module for each
task.
"""
