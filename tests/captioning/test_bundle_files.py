"""The files of a bundle: links, files that change while a captioner runs, and graphs that read other files."""

import os
import shutil

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from smart_caption_ros.captioning import Bundle, BundleError, Captioner
from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH, STATIC_GRAPH, VISION_GRAPH, WEIGHTS
from smart_caption_ros.engines import create_engine
from tests.engines.small_graphs import list_file
from tests.frames import blobs

ENGINE = "onnxruntime-cpu"


def hard_link(source, target):
    """Install a file as `uv pip install` does: a hard link to its cache."""
    shutil.copy(source, target)
    os.link(target, target.with_name(f"{target.name}.cached"))


@pytest.mark.parametrize("link", [hard_link, lambda source, target: target.symlink_to(source)])
@pytest.mark.parametrize("graph", [CAPTIONER_GRAPH, STATIC_GRAPH])
def test_a_bundle_of_links_captions_like_one_of_files(link, graph, tiny_bundle, tmp_path):
    for file in tiny_bundle.iterdir():
        link(file, tmp_path / file.name)
    engine = create_engine(ENGINE)
    linked, plain = (Captioner(Bundle.load(path), engine, graph) for path in (tmp_path, tiny_bundle))
    assert linked.caption(blobs(1)).words == plain.caption(blobs(1)).words


@pytest.mark.parametrize("change", ["truncated", "overwritten", "removed"])
def test_a_bundle_that_changes_under_a_captioner_changes_nothing(change, bundle_copy):
    captioner = Captioner.from_bundle(bundle_copy, engine=ENGINE)
    before = captioner.caption(blobs(1))
    for file in bundle_copy.iterdir():
        if change == "truncated":
            os.truncate(file, 0)
        elif change == "overwritten":
            with file.open("r+b") as stream:
                stream.write(bytes(file.stat().st_size))
        else:
            file.unlink()
    after = captioner.caption(blobs(1))
    assert (after.words, after.score) == (before.words, before.score)


@pytest.mark.parametrize("name", [VISION_GRAPH, CAPTIONER_GRAPH, WEIGHTS])
def test_a_file_that_changes_between_checking_and_loading_is_refused(name, bundle_copy):
    bundle = Bundle.load(bundle_copy)
    (bundle_copy / name).write_bytes((bundle_copy / name).read_bytes()[::-1])
    with pytest.raises(BundleError, match=f"{name} was changed after the bundle was opened"):
        Captioner(bundle, create_engine(ENGINE))


def outside(location):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="offset", value="0")
    tensor.external_data.add(key="location", value=location)
    return tensor


def in_initializer(tensor):
    return helper.make_graph([], "g", [], [], initializer=[tensor])


def in_loop(tensor):
    body = helper.make_graph([helper.make_node("Constant", [], ["w"], value=tensor)], "g", [], [])
    return helper.make_graph([helper.make_node("Loop", [], [], body=body)], "g", [], [])


def in_sparse(tensor):
    graph = helper.make_graph([], "g", [], [])
    graph.sparse_initializer.add().values.CopyFrom(tensor)
    return graph


@pytest.mark.parametrize("place", [in_initializer, in_loop, in_sparse])
@pytest.mark.parametrize("location", ["../../../etc/passwd", "/etc/passwd", "captioner.weights", ""])
@pytest.mark.parametrize("length", [b"\x08", b"\x88\x00"])  # 8, as protocol buffers may write it
@pytest.mark.parametrize("name", [CAPTIONER_GRAPH, WEIGHTS])
def test_a_graph_that_reads_another_file_is_refused(place, location, length, name, bundle_copy):
    model = helper.make_model(place(outside(location))).SerializeToString()
    (bundle_copy / name).write_bytes(model.replace(b"\x08location", length + b"location"))
    list_file(bundle_copy, name)
    with pytest.raises(BundleError, match=rf"{name} takes weights from another file") as caught:
        Bundle.load(bundle_copy)
    assert "\n" not in str(caught.value)


def test_both_forms_take_their_weights_from_one_file(tiny_bundle):
    bundle = Bundle.load(tiny_bundle)
    for name in (CAPTIONER_GRAPH, STATIC_GRAPH):
        whole = onnx.load_model_from_string(bundle.read_graph(name))
        onnx.checker.check_model(whole)
        assert (tiny_bundle / name).stat().st_size < len(bundle.read_graph(name))
    assert np.isfinite(Captioner.from_bundle(tiny_bundle, engine=ENGINE).caption(blobs(0)).score)
