"""Engines are tried, not guessed, and say what is wrong."""

from pathlib import Path

import numpy as np
import pytest

from smart_caption_ros.captioning import Captioner, EngineError
from smart_caption_ros.captioning.engines import ENGINE_NAMES, available_engines, create_engine


def test_auto_picks_an_engine_and_says_what_really_runs() -> None:
    assert "ExecutionProvider" in create_engine("auto").description


def test_every_engine_is_reported_with_a_remedy_where_it_does_not_work() -> None:
    reports = available_engines()
    assert ("auto", *(report.name for report in reports)) == ENGINE_NAMES
    assert any(report.available for report in reports)
    assert all(report.detail and bool(report.remedy) != report.available for report in reports)


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(EngineError, match="onnxruntime-cpu"):
        create_engine("abacus")


def test_an_engine_whose_provider_does_not_work_here_is_refused_not_silently_replaced() -> None:
    for report in available_engines():
        if not report.available:
            with pytest.raises(EngineError, match="no working"):
                create_engine(report.name)


def test_a_file_that_is_no_graph_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "graph.onnx"
    path.write_bytes(b"not a graph")
    with pytest.raises(EngineError, match=r"graph\.onnx cannot be loaded"):
        create_engine("onnxruntime-cpu").load(path)


def test_an_input_of_the_wrong_shape_is_an_engine_error_not_a_crash(tiny_bundle: Path) -> None:
    captioner = Captioner.from_bundle(tiny_bundle, engine="onnxruntime-cpu")
    with pytest.raises(EngineError, match=r"captioner\.onnx failed"):
        captioner.decode(np.zeros((1, 49, 3), np.float32))
