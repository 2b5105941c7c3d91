"""Tests of caffe.serving. They need FastAPI and more: scripts/install_dependencies.sh studio."""
import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

for package in ("fastapi", "uvicorn", "orjson", "prometheus_client", "httpx", "tritonclient.http"):
    pytest.importorskip(package)

from caffe.serving import Batcher, Model  # noqa: E402
from serving_nets import CLASSES, FIXED, write_net  # noqa: E402

@pytest.fixture(scope="session")
def files(tmp_path_factory):
    return write_net(tmp_path_factory.mktemp("classes"), "classes", CLASSES)


@pytest.fixture(scope="session")
def classes(files):
    return Model("classes", *files, max_batch=8)


@pytest.fixture(scope="session")
def fixed(tmp_path_factory):
    return Model("fixed", *write_net(tmp_path_factory.mktemp("fixed"), "fixed", FIXED))


@pytest.fixture(scope="session")
def images():
    return np.random.default_rng(1).normal(size=(40, 2, 3, 3)).astype(np.float32)


@pytest.fixture
def closing():
    """Batchers that are closed after the test."""
    batchers = []

    def make(*args, **kwargs):
        batchers.append(Batcher(*args, **kwargs))
        return batchers[-1]

    yield make
    for batcher in batchers:
        batcher.close()
