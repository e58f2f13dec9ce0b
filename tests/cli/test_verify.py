"""`smart-caption bundle verify --engines`: engines that agree, and one that does not."""

import json
from dataclasses import replace

import onnx
import pytest
from onnx import numpy_helper

from smart_caption_ros.measuring.agreement import EngineAgreement
from tests.engines.small_graphs import add_static_captioner, changed_manifest
from tests.engines.stand_in import StandIn


def test_the_engines_of_this_machine_agree_on_the_tiny_bundle(run, tiny_bundle):
    result = run("bundle", "verify", "--engines", tiny_bundle, "--frames", 3, "--threads", 1, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["ok"], report["reference"]) == (True, "onnxruntime-cpu")
    on_cpu = [comparison for comparison in report["engines"] if comparison["engine"] == "onnxruntime-cpu"]
    counts = [(comparison["graph"], comparison["same_captions"], comparison["captions"]) for comparison in on_cpu]
    assert counts == [("captioner.onnx", 6, 6), ("captioner_static.onnx", 6, 6)]
    assert on_cpu[0]["largest_log_probability_difference"] == 0


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_form_that_says_something_else_is_named_and_the_exit_status_is_1(run, bundle_copy, precision):
    add_static_captioner(bundle_copy)
    with changed_manifest(bundle_copy) as manifest:
        manifest["precision"] = {"stored": "float32", "computed": precision}
    result = run("bundle", "verify", "--engines", bundle_copy, "--frames", 2, "--threads", 1)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    found = [line.split()[:3:2] for line in lines if line.split()[1] == "onnxruntime-cpu"]
    assert found == [["ok", "captioner.onnx"], ["differs", "captioner_static.onnx"]]
    assert "4 of 4 captions differ" in result.stdout
    assert lines[-1] == "tiny: the engines here do not agree"


def test_captions_that_differ_within_the_tolerance_are_told_at_the_end(run, tiny_bundle, monkeypatch):
    close = EngineAgreement("onnxruntime-cpu", "captioner_static.onnx", "", True, 14, 16, 0.05, 0.0, 0.1, "")
    same = replace(close, graph="captioner.onnx", same_captions=16)
    for comparisons, conclusion in (
        ([same, close], "the engines here agree as far as a bundle in 8 bits allows: 2 of 32 captions differ"),
        ([same], "all engines here agree"),
    ):
        monkeypatch.setattr("smart_caption_ros.measuring.agreement.compare_engines", lambda *a, made=comparisons: made)
        result = run("bundle", "verify", "--engines", tiny_bundle)
        assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, f"tiny: {conclusion}")


def test_an_engine_that_computes_something_else_in_the_vision_graph_is_found_out(run, bundle_copy, monkeypatch):
    add_static_captioner(bundle_copy)
    tensorrt = StandIn(monkeypatch)
    # What TensorRT would do with a broken kernel: the weights are off.
    spoilt = onnx.load(bundle_copy / "vision.onnx")
    weights = next(tensor for tensor in spoilt.graph.initializer if tensor.name == "to_tokens")
    weights.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights) + 1, weights.name))
    real, content = tensorrt.load, spoilt.SerializeToString()
    tensorrt.load = lambda path, given: real(path, content if path.name == "vision.onnx" else given)
    report = json.loads(
        run("bundle", "verify", "--engines", bundle_copy, "--frames", 2, "--threads", 1, "--json").stdout
    )
    (broken,) = [comparison for comparison in report["engines"] if comparison["engine"] == "tensorrt"]
    assert (broken["graph"], broken["agrees"]) == ("captioner_static.onnx", False)
    assert broken["largest_token_difference"] > 0.05
