"""The drawn data set that the tests of training share; they do not write to it."""

import pytest

from tests.training.small_flickr8k import make_data


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return make_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def _cuda(request):
    """Skip tests of a GPU where torch cannot use the one that is there."""
    if request.node.get_closest_marker("needs_gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip(f"torch {torch.__version__} has no CUDA here")
