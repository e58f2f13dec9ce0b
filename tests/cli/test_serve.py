"""`smart-caption serve`: what it refuses, and that the command serves captions and ends at a signal."""

import http.client
import json
import re
import signal
import subprocess
import sys
import time

import cv2
import pytest

from smart_caption_ros.caption_log import CaptionLog
from tests.caption_log.rows import caption

pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("uvicorn", reason="needs the extra serve")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--token", "short"], "the token must have at least 16 characters"),
        (["--host", "no.such.host.invalid"], "there is no address no.such.host.invalid to listen on"),
        (["--host", "203.0.113.7"], "203.0.113.7 is no address of this machine"),
    ],
)
def test_an_address_or_a_token_that_is_no_good_is_wrong_usage_in_a_sentence(run, arguments, sentence):
    result = run("serve", "--port", 0, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"smart-caption: {sentence}")
    assert result.stderr.count("\n") == 1


def test_a_token_of_a_file_is_taken_without_its_line_end_and_a_missing_file_is_named(run, tmp_path):
    file = tmp_path / "token"
    file.write_text("\ufeffshort\n")
    assert run("serve", "--port", 0, "--token-file", file).exit_code == 2
    file.write_text("a-token-of-enough-characters\n")
    result = run("serve", "--port", 0, "--token-file", file, "--source", "nowhere.jpg")
    assert result.stderr == "smart-caption: there is no file or folder nowhere.jpg\n", "the token is good"
    missing = run("serve", "--port", 0, "--token-file", tmp_path / "missing")
    assert (missing.exit_code, missing.stderr.count("\n")) == (1, 1)
    assert str(tmp_path / "missing") in missing.stderr
    assert run("serve", "--port", 0, "--token-file", file, "--token", "another-good-token").exit_code == 2
    assert run("serve", "--port", 0, "--key", file).exit_code == 2


def test_wrong_options_are_reported_before_a_model_is_loaded(run):
    assert run("serve", "--port", 70000).exit_code == 2
    assert run("serve", "--engine", "steam").exit_code == 2
    assert run("serve", "--port", 0, "--source", "bag", "--topic", "a", "--topic", "b").exit_code == 2
    result = run("serve", "--port", 0, "--source", "nowhere.jpg")
    assert (result.exit_code, result.stderr) == (1, "smart-caption: there is no file or folder nowhere.jpg\n")


@pytest.mark.parametrize("name", ["notes.txt", "."])
def test_what_is_no_caption_log_is_refused_before_anything_starts(run, tmp_path, name):
    (tmp_path / "notes.txt").write_text("root:x:0:0:root:/root:/bin/bash\n" * 50)
    result = run("serve", "--log", tmp_path / name, "--source", "0", "--port", "0")
    assert result.exit_code == 1
    assert "caption log" in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_command_serves_captions_behind_a_token_and_ends_at_sigterm_with_open_streams(tiny_bundle, tmp_path):
    from smart_caption_ros.measuring.agreement import golden_frames

    (picture,) = golden_frames(1, 64, 48)
    cv2.imwrite(str(tmp_path / "room.png"), picture)
    arguments = ["--host", "0.0.0.0", "--port", "0", "--source", tmp_path / "room.png", "--bundle", tiny_bundle]
    with CaptionLog(tmp_path / "captions.db") as log:
        log.append(caption("a red cup"))
    arguments += ["--log", log.path]
    command = [sys.executable, "-c", "from smart_caption_ros.cli import main; main()", "serve", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = process.stdout.readline()
            match = re.match(r"Open http://127\.0\.0\.1:(\d+)/\?token=([\w-]{32,}) here, or with ", said)
            assert match, said or process.communicate()
            connection = http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=60)
            connection.request("GET", "/captions.json")
            refused = connection.getresponse()
            assert refused.status == 401
            refused.read()
            bearer = {"Authorization": f"Bearer {match[2]}"}
            captions = {}
            end_s = time.monotonic() + 60
            while not captions:
                assert time.monotonic() < end_s
                connection.request("GET", "/captions.json", headers=bearer)
                captions = json.loads(connection.getresponse().read())["captions"]
            assert captions["room"]["image_size"] == [64, 48]
            connection.request("GET", f"/{captions['room']['picture']}", headers=bearer)
            assert connection.getresponse().read().startswith(b"\xff\xd8\xff")
            connection.request("GET", "/log/captions.json?words=cup", headers=bearer)
            (found,) = json.loads(connection.getresponse().read())["captions"]
            assert found["text"] == [["a red ", False], ["cup", True]]
            connection.request("GET", "/events", headers=bearer)
            stream = connection.getresponse()
            assert stream.readline() == b"event: hello\n"
            process.send_signal(signal.SIGTERM)
            assert stream.read().count(b"event: ") > 0, "the stream was ended, not cut off"
            assert process.wait(30) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()
