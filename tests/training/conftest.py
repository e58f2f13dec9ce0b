"""The drawn data set that the tests of training share; they do not write to it."""

from pathlib import Path

import pytest

from tests.training.small_flickr8k import make_data


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("data"))
