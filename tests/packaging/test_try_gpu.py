"""`scripts/try_gpu.sh` where there is no GPU."""

import os
import signal
import subprocess
import sys
import time

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


def test_a_sampler_that_is_stopped_leaves_no_incomplete_line(tmp_path):
    """The card is asked for each line, and the sampler is stopped at any time."""
    card = tmp_path / "nvidia-smi"
    card.write_text("#!/bin/sh\ntouch asked\nsleep 2\necho 1000\n")
    card.chmod(0o755)
    script = (ROOT / "scripts" / "try_gpu.sh").read_text()
    memory = script[script.index("memory() {") : script.index("step doctor")]
    path = f"{tmp_path}:{os.environ['PATH']}"
    with (tmp_path / "samples").open("w") as samples:
        sampler = subprocess.Popen(
            ["sh", "-c", f"{memory}\nmemory"], stdout=samples, cwd=tmp_path, env={**os.environ, "PATH": path}
        )
        while not (tmp_path / "asked").exists():
            time.sleep(0.01)
        sampler.send_signal(signal.SIGTERM)
        sampler.wait(10)
    assert (tmp_path / "samples").read_text() == ""
