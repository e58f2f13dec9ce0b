"""The data folder that the tests of caption sets share; they do not write to it."""

from pathlib import Path

import pytest

from tests.recipes.caption_sets.small_caption_data import make_caption_data


@pytest.fixture(scope="session")
def caption_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_caption_data(tmp_path_factory.mktemp("caption_data"))
