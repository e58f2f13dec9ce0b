"""Tiny captioners, traced once and joined in many ways, and an exported bundle."""

import pytest

from export.storage import round_to_float16
from export.trace import trace_captioner
from smart_caption_ros.captioning.search import Search
from tests.export.command import VISION, export
from tests.tiny_model import tiny_smart, tiny_trained


@pytest.fixture(scope="session")
def traced():
    """Graphs of a captioner with three beams and weights that are worth halving, and lose nothing by it."""
    model = tiny_smart(vocabulary_size=200, d_model=64, d_ff=256, encoder_layers=1, decoder_layers=1)
    round_to_float16(model)
    return trace_captioner(model, Search(3))


@pytest.fixture(scope="session")
def backbone():
    """The random backbone of the exported bundle, with weights that 16 bits hold; it must not be changed."""
    backbone = tiny_trained().backbone
    round_to_float16(backbone)
    return backbone


@pytest.fixture(scope="session")
def vision_graph(backbone):
    """The graph of the backbone; it must not be changed."""
    return VISION(backbone, detects=False)


@pytest.fixture(scope="session")
def exported_bundle(tiny_checkpoint):
    """The bundle that the export command makes of the tiny checkpoint."""
    folder = tiny_checkpoint.parent / "bundle"
    done = export(tiny_checkpoint, folder, "--check-images", 4)
    assert done.status == 0, done.err
    return folder
