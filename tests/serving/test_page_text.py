"""Text on the page is made visible as on the terminal; run with Node.js: the page's own tests need a browser."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from smart_caption_ros import serving
from smart_caption_ros.text import visible

NODE = shutil.which("node")
ELEMENTS = Path(serving.__file__).parent / "page" / "elements.js"
SCRIPT = """
const { visible } = await import(process.argv[1]);
console.log(JSON.stringify(JSON.parse(process.argv[2]).map(visible)));
"""
TEXTS = [
    "a red cup",
    "  a  cup\n\ton ",
    "\x1b]0;owned\x07\x1b[31mred",
    "\u202etxt.exe",
    "two\r\n\u2028lines \x00\x9b",
    "caf\u00e9 \u4e2d\u6587 \U0001f600",
    "",
]


@pytest.mark.skipif(NODE is None, reason="needs Node.js")
def test_the_page_shows_control_characters_as_the_terminal_does(tmp_path):
    module = tmp_path / "elements.mjs"
    module.write_text(ELEMENTS.read_text())
    command = [NODE, "--input-type=module", "-e", SCRIPT, str(module), json.dumps(TEXTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [visible(text) for text in TEXTS]
