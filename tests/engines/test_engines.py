"""Engines are tried, not guessed, and say what is wrong."""

import os

import numpy as np
import onnx
import pytest

from smart_caption_ros.captioning import Captioner, EngineError
from smart_caption_ros.engines import ENGINE_NAMES, available_engines, create_engine, load_with
from smart_caption_ros.files import cache_folder
from tests.engines.small_graphs import add_static_captioner, doubling


def test_every_engine_is_reported_with_a_remedy_where_it_does_not_work():
    reports = available_engines()
    assert ("auto", *(report.name for report in reports)) == ENGINE_NAMES
    assert any(report.available for report in reports)
    assert all(report.detail and bool(report.remedy) != report.available for report in reports)


def test_an_unknown_engine_is_refused_with_the_known_ones():
    with pytest.raises(EngineError, match="onnxruntime-cpu"):
        create_engine("abacus")


def test_an_engine_whose_provider_does_not_work_here_is_refused_not_silently_replaced():
    for report in available_engines():
        if not report.available:
            with pytest.raises(EngineError, match=r"no working|cannot be imported"):
                create_engine(report.name)


def test_a_file_that_is_no_graph_is_refused_by_name(tmp_path):
    path = tmp_path / "graph.onnx"
    path.write_bytes(b"not a graph")
    with pytest.raises(EngineError, match=r"graph\.onnx cannot be loaded"):
        create_engine("onnxruntime-cpu").load(path)


def test_an_input_of_the_wrong_shape_is_an_engine_error_not_a_crash(tiny_bundle):
    captioner = Captioner.from_bundle(tiny_bundle, engine="onnxruntime-cpu")
    with pytest.raises(EngineError, match=r"captioner\.onnx failed"):
        captioner.decode(np.zeros((1, 49, 3), np.float32))


def test_auto_goes_on_to_the_next_engine_where_one_cannot_do_what_is_wanted():
    tried = []

    def load(engine):
        tried.append(engine)
        raise EngineError("this one cannot")

    # The reason comes alone: why faster engines are not installed has nothing to do with it.
    with pytest.raises(EngineError, match=r"^this one cannot$"):
        load_with("auto", 1, load)
    assert tried


def test_the_captioner_says_which_engine_was_chosen_and_why(tiny_bundle):
    chosen = Captioner.from_bundle(tiny_bundle)
    assert chosen.engine_choice.startswith(chosen.engine)
    assert "auto took onnxruntime" in chosen.engine_choice
    asked = Captioner.from_bundle(tiny_bundle, engine="onnxruntime-cpu", threads=1)
    assert asked.engine_choice == f"{asked.engine}; onnxruntime-cpu was asked for"


def test_the_cpu_takes_the_form_that_ends_early_and_runs_the_static_one_when_told_to(bundle_copy):
    add_static_captioner(bundle_copy)
    captioner = Captioner.from_bundle(bundle_copy, engine="onnxruntime-cpu", threads=1)
    assert captioner.graph == "captioner.onnx"
    static = Captioner(captioner.bundle, create_engine("onnxruntime-cpu", 1), "captioner_static.onnx")
    frames = [np.full((30, 40, 3), shade, np.uint8) for shade in (10, 250)]
    assert static.caption_batch(frames) == [static.caption(frame).text for frame in frames] == ["w4 w5", "w4 w5"]


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_weights_beside_a_graph_may_be_links_and_change_later(link, tmp_path):
    model = onnx.load(doubling(tmp_path / "plain.onnx"))
    onnx.save(model, tmp_path / "g.onnx", save_as_external_data=True, location="g.onnx.data", size_threshold=0)
    (tmp_path / "linked").mkdir()
    for name in ("g.onnx", "g.onnx.data"):
        link(tmp_path / name, tmp_path / "linked" / name)
    graph = create_engine("onnxruntime-cpu").load(tmp_path / "linked" / "g.onnx")
    os.truncate(tmp_path / "g.onnx.data", 0)
    np.testing.assert_array_equal(graph.run({"x": np.array([[1, 2, 3]], np.uint8)})["y"], [[2, 4, 6]])


def test_the_cache_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for chosen, folder in (("", "home/.cache"), ("relative", "home/.cache"), (str(tmp_path / "x"), "x")):
        monkeypatch.setenv("XDG_CACHE_HOME", chosen)
        assert cache_folder() == tmp_path / folder / "smart_caption_ros"
