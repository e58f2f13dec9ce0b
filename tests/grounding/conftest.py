"""The word vectors of the worked example."""

import pytest

# The worked example of docs/coverage.md.
EXAMPLE_VECTORS = """\
cup 0 1
table 0.6 0.8
sofa 1 0
couch 0.96 0.28
dining 1 0.4
laptop -0.6 0.8
"""


@pytest.fixture
def example_vectors(tmp_path, monkeypatch):
    """A text file of word vectors; its conversion goes to a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "example.txt"
    path.write_text(EXAMPLE_VECTORS)
    return path
