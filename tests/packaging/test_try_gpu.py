"""`scripts/try_gpu.sh` where there is no GPU."""

import os
import subprocess
import sys

import pytest

from smart_caption_ros.engines import available_engines
from tests.conftest import ROOT

OF_GPUS = [report for report in available_engines() if report.name != "onnxruntime-cpu"]


@pytest.mark.skipif(any(report.available for report in OF_GPUS), reason="an engine uses a GPU here")
def test_without_a_gpu_it_says_why_of_each_engine_and_writes_nothing(tmp_path):
    file = tmp_path / "gpu.json"
    command = [ROOT / "scripts" / "try_gpu.sh", file]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHON": sys.executable})
    assert done.returncode == 1
    assert done.stdout == ""
    first, *reasons = done.stderr.splitlines()
    assert first == "try_gpu.sh: no engine uses a GPU here:"
    assert reasons == [f"  {report.name}: {report.detail}" for report in OF_GPUS]
    assert not file.exists()
