"""With --json, stdout is JSON alone, whatever libraries write to the process's standard output."""

import json
import os
import subprocess
import sys

import cv2
import pytest

from tests.frames import blobs

# A library that writes to file descriptor 1, as Fast DDS does, at the begin and end of a command and of the process,
# and one that prints. Each command runs in a process of its own, which has imported what all of them need.
NOISY = r"""
import contextlib, json, os, sys
import cv2, numpy, onnxruntime, spacy
from smart_caption_ros.cli import app, main, terminal

checked = terminal.errors_in_a_sentence

@contextlib.contextmanager
def noisy():
    os.write(1, b"RTPS_TRANSPORT_SHM Error\n")
    print("a library that prints")
    try:
        with checked():
            yield
    finally:
        os.write(1, b"RTPS_TRANSPORT_SHM Error\n")

for name, module in list(sys.modules.items()):
    if name.startswith("smart_caption_ros.cli.") and hasattr(module, "errors_in_a_sentence"):
        module.errors_in_a_sentence = noisy

for number, arguments in enumerate(json.loads(sys.argv[1])):
    if not os.fork():
        stdout = os.open(f"{sys.argv[2]}/{number}", os.O_WRONLY | os.O_CREAT)
        os.dup2(stdout, 1)
        sys.argv = ["smart-caption", *arguments]
        status = 0
        try:
            main()
        except SystemExit as end:
            status = end.code
        os.write(1, b"RTPS_TRANSPORT_SHM Error\n")
        os._exit(status or 0)
    os.wait()
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory, tiny_bundle):
    """Standard output of commands with --json and with --json FILE; one decorator serves them all."""
    folder = tmp_path_factory.mktemp("json")
    cv2.imwrite(str(folder / "room.png"), blobs(1, 48, 64))
    picture, bundle = str(folder / "room.png"), str(tiny_bundle)
    commands = [
        ["describe", picture, str(folder / "missing.png"), "--bundle", bundle, "--json"],
        ["watch", "--source", picture, "--bundle", bundle, "--json"],
        ["benchmark", bundle, "--frames", "1", "--rounds", "1", "--threads", "1", "--json", "-"],
        ["bundle", "inspect", bundle, "--json"],
    ]
    stdout = tmp_path_factory.mktemp("stdout")
    done = subprocess.run(
        [sys.executable, "-c", NOISY, json.dumps(commands), str(stdout)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.stderr.count("RTPS_TRANSPORT_SHM Error") == 3 * len(commands), "it is on standard error instead"
    assert done.stderr.count("a library that prints") == len(commands)
    return {words[0]: (stdout / str(number)).read_text() for number, words in enumerate(commands)}


@pytest.mark.parametrize("command", ["benchmark", "bundle"])
def test_a_command_prints_one_json_value_and_nothing_else(outputs, command):
    assert json.loads(outputs[command])


def test_records_of_captions_have_named_fields_and_a_format(outputs):
    described, missing = map(json.loads, outputs["describe"].splitlines())
    (watched,) = map(json.loads, outputs["watch"].splitlines())
    assert described["format"] == missing["format"] == watched["format"] == 3
    assert "no file or folder" in missing["status_message"]
    for record in (described, watched):
        for word in record["words"]:
            assert word.keys() == {"text", "log_probability", "box_xyxy"}
            assert len(word["box_xyxy"]) == 4
