"""Trains a solver with many settings, for `caffe sweep`.

`space` reads what varies, `study` is the folder of a sweep with Optuna's journal, `trial` runs one training, `pruning`
ends those that are worse than others, `report` and `page` show the results. Every trial is a `caffe train` of its own with a run
folder, so it can be watched and resumed like any other.
"""
