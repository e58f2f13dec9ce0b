"""`smart-caption benchmark` measures what runs."""

import json

import cv2
import numpy as np


def test_parts_rate_memory_and_start_are_written_as_json(run, tiny_bundle, tmp_path):
    output = tmp_path / "out.json"
    options = ["--frames", 2, "--rounds", 2, "--threads", 1, "--engine", "onnxruntime-cpu"]
    result = run("benchmark", tiny_bundle, "--json", output, *options)
    assert result.exit_code == 0, result.output
    assert "a process of its own has its first caption after" in result.stdout
    report = json.loads(output.read_text())
    assert (report["model"], report["frames"], report["threads"]) == ("tiny", 4, 1)
    assert report["engine_choice"].endswith("onnxruntime-cpu was asked for")
    milliseconds = report["milliseconds"]
    assert milliseconds.keys() == {"preprocess", "vision", "decode", "total", "cpu"}
    assert all(0 < part["p5"] <= part["median"] <= part["p95"] for part in milliseconds.values())
    assert report["frames_per_second"] > 0
    assert report["first_caption"]["seconds"] > 0
    assert report["first_caption"]["rss_mb"] > 10


def test_it_measures_on_the_users_own_frames(run, tiny_bundle, tmp_path):
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((48, 64, 3), np.uint8))
    options = ["--rounds", 1, "--source", tmp_path / "a.png", "--json", "-"]
    report = json.loads(run("benchmark", tiny_bundle, *options).stdout)
    assert (report["frame_size"], report["frames"]) == ([64, 48], 1)
