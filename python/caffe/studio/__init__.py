"""A page in the browser for data sets, models, runs and jobs, for `caffe studio`.

`workspace` is the folder that is shown, `jobs` the queue of commands, `guard` admits browsers, `pages` has a module for each
page. The studio reads run folders and starts programs; it computes nothing itself, so that a net that is wrong, or memory that
is short, does not end it.
"""
