"""A model is a folder: what `caffe new` makes of a folder of images.

    solver.prototxt       how it is trained; paths in it begin at the folder
    train_val.prototxt    the net for training and testing
    deploy.prototxt       the net for use, of `caffe deploy`
    data/                 what the data layers read
    snapshots/            weights
    runs/                 a folder for each training: docs/runs.md
    README.md             what it is, and the commands that take it

Datasets are in `datasets`, a module for each kind; nets in caffe.zoo; what is written for a task in
`recipes`.
"""
