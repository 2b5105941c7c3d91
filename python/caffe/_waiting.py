"""How long OpenMP's threads wait for each other before they sleep."""
import contextlib
import os


@contextlib.contextmanager
def brief_waits():
    """GCC's OpenMP, if it is loaded in this context, lets threads spin as briefly as in the program `caffe`.

    By default they spin for milliseconds, which slows small nets tenfold while anything else runs on the machine. OpenMP reads
    its settings only when it is loaded. OMP_WAIT_POLICY and GOMP_SPINCOUNT of the user take precedence.
    """
    if "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "5000"
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]  # child processes have programs of their own
