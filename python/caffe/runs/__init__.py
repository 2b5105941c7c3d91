"""Reads run folders (docs/runs.md), also while their training writes them.

    run = caffe.runs.Run("runs/first")
    run.refresh()                                  # reads what was added since the last call
    steps, values = run.series["test/accuracy"]    # arrays
    run.state                                      # "running", "finished", "stopped", "early stopping", "failed", "killed" or "unknown"
"""
from .folder import find_runs
from .run import Run
from .series import Series
from .summary import Summary, summarize

__all__ = ["Run", "Series", "Summary", "find_runs", "summarize"]
