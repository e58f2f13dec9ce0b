"""The systemd unit fits the node: its notifications, its times and its variables."""

import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "config" / "systemd" / "smart-caption.service"
ENVIRONMENT = ROOT / "config" / "systemd" / "environment"


def service():
    parser = ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",), strict=True)
    parser.optionxform = str
    parser.read_string(UNIT.read_text(encoding="utf-8"))
    return dict(parser["Service"])


SERVICE = service()


def test_the_example_of_the_environment_sets_every_variable_of_the_command():
    names = re.findall(r"^(\w+)=", ENVIRONMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"\$\$\{(\w+)\}", SERVICE["ExecStart"])) <= set(names)
    assert SERVICE["EnvironmentFile"].endswith(f"/{ENVIRONMENT.name}")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_finds_no_fault():
    verified = subprocess.run(["systemd-analyze", "verify", UNIT], capture_output=True, text=True, timeout=60)
    assert (verified.returncode, verified.stderr) == (0, "")
