"""Nothing that this package starts reports to anybody: no file in the home folder, no look-up of a server."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.packaging.imports import ROOT

PHOTOGRAPH = ROOT / "docs" / "images" / "demo.jpg"
ENTRANCES = {
    "the command line": ["-c", "import smart_caption_ros.cli as c; c.main()", "describe", str(PHOTOGRAPH), "--json"],
    "the workstation": ["-c", "import training, export, benchmarks, onnxruntime; onnxruntime.SessionOptions()"],
}


@pytest.mark.parametrize(
    "entrance",
    [pytest.param(name, marks=[pytest.mark.long] if name != "the command line" else []) for name in ENTRANCES],
)
def test_nothing_is_written_to_the_home_folder_and_no_server_is_looked_up(tmp_path, entrance):
    home, log = tmp_path / "home", tmp_path / "connections.log"
    home.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
    trace = ["strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=connect,sendto,sendmmsg", "-o", str(log)]
    traced = shutil.which("strace") and subprocess.run([*trace, "true"], capture_output=True).returncode == 0
    command = [*(trace if traced else []), sys.executable, *ENTRANCES[entrance]]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    written = [path.relative_to(home) for path in home.rglob("*") if path.is_file()]
    assert all(path.parts[:2] == (".cache", "smart_caption_ros") for path in written), written
    if traced:
        assert not re.findall(r".*AF_INET.*", log.read_text()), "a socket to another machine"
