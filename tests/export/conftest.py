"""TracedCaptioner of tiny captioners, traced once and joined in many ways, and an exported bundle."""

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from export.storage import round_to_float16
from export.trace import TracedCaptioner, trace_captioner
from export.vision import export_vision
from tests.conftest import ROOT
from tests.tiny_model import tiny_smart, tiny_trained
from training.models.smart import Smart


@pytest.fixture(scope="session", params=[(5, 2), (1, 1), (10, 1)], ids=lambda p: f"beam{p[0]}-layers{p[1]}")
def traced_model(request: pytest.FixtureRequest) -> tuple[Smart, TracedCaptioner]:
    """A model and its traced, with several sizes of the beam."""
    beam_size, layers = request.param
    model = tiny_smart(encoder_layers=layers, decoder_layers=layers)
    return model, trace_captioner(model, beam_size)


@pytest.fixture(scope="session")
def traced() -> TracedCaptioner:
    """Of a model with three beams and weights that are worth halving, and lose nothing by it."""
    model = tiny_smart(vocabulary_size=200, d_model=64, d_ff=256, encoder_layers=1, decoder_layers=1)
    round_to_float16(model)
    return trace_captioner(model, 3)


@pytest.fixture(scope="session")
def vision_graph() -> onnx.ModelProto:
    """Of a random backbone."""
    return export_vision(tiny_trained().backbone)


@pytest.fixture(scope="session")
def exported_bundle(tiny_checkpoint: Path) -> Path:
    """The bundle that the export command makes of the tiny checkpoint."""
    folder = tiny_checkpoint.parent / "bundle"
    command = [sys.executable, "-m", "export", str(tiny_checkpoint), str(folder), "--check-images", "4"]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "SMART_CAPTION_DATA": "/nowhere"})
    return folder
