"""Tiny captioners, traced once and joined in many ways, and an exported bundle."""

from pathlib import Path

import onnx
import pytest

from export.storage import round_to_float16
from export.trace import TracedCaptioner, trace_captioner
from tests.export.command import VISION, export
from tests.tiny_model import tiny_smart, tiny_trained
from training.models.smart import Smart


@pytest.fixture(scope="session", params=[(5, 2), (1, 1), (10, 1)], ids=lambda p: f"beam{p[0]}-layers{p[1]}")
def traced_model(request: pytest.FixtureRequest) -> tuple[Smart, TracedCaptioner]:
    """A captioner and its graphs, with several sizes of the beam."""
    beam_size, layers = request.param
    model = tiny_smart(encoder_layers=layers, decoder_layers=layers)
    return model, trace_captioner(model, beam_size)


@pytest.fixture(scope="session")
def traced() -> TracedCaptioner:
    """Graphs of a captioner with three beams and weights that are worth halving, and lose nothing by it."""
    model = tiny_smart(vocabulary_size=200, d_model=64, d_ff=256, encoder_layers=1, decoder_layers=1)
    round_to_float16(model)
    return trace_captioner(model, 3)


@pytest.fixture(scope="session")
def vision_graph() -> onnx.ModelProto:
    """The graph of a random backbone."""
    return VISION(tiny_trained().backbone, detects=True)


@pytest.fixture(scope="session")
def exported_bundle(tiny_checkpoint: Path) -> Path:
    """The bundle that the export command makes of the tiny checkpoint."""
    folder = tiny_checkpoint.parent / "bundle"
    done = export(tiny_checkpoint, folder, "--check-images", 4)
    assert done.status == 0, done.err
    return folder
