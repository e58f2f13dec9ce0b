"""Bundles whose graphs take weights from where they should not; read with our own reader, written with onnx's."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from smart_caption_ros.captioning import Bundle, BundleError
from smart_caption_ros.engines.external_data import external_locations
from smart_caption_ros.files import sha256_of


def outside(location: str) -> TensorProto:
    tensor = numpy_helper.from_array(np.zeros(4, np.float32), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="offset", value="0")
    tensor.external_data.add(key="location", value=location)
    return tensor


def in_initializer(tensor: TensorProto) -> onnx.GraphProto:
    return helper.make_graph([], "g", [], [], initializer=[tensor])


def in_constant(tensor: TensorProto) -> onnx.GraphProto:
    return helper.make_graph([helper.make_node("Constant", [], ["w"], value=tensor)], "g", [], [])


def in_loop(tensor: TensorProto) -> onnx.GraphProto:
    return helper.make_graph([helper.make_node("Loop", [], [], body=in_constant(tensor))], "g", [], [])


def in_branches(tensor: TensorProto) -> onnx.GraphProto:
    node = helper.make_node("Branches", [], [], bodies=[in_initializer(tensor)], domain="elsewhere")
    return helper.make_graph([node], "g", [], [])


def in_sparse(tensor: TensorProto) -> onnx.GraphProto:
    graph = helper.make_graph([], "g", [], [])
    graph.sparse_initializer.add().values.CopyFrom(tensor)
    return graph


PLACES = [in_initializer, in_constant, in_loop, in_branches, in_sparse]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("location", ["../../../etc/passwd", "/etc/passwd", "other.weights", "manifest.json", ""])
def test_a_graph_that_reads_outside_the_bundle_is_refused(
    bundle_copy: Path, place: Callable[[TensorProto], onnx.GraphProto], location: str
) -> None:
    path = bundle_copy / "captioner.onnx"
    path.write_bytes(helper.make_model(place(outside(location))).SerializeToString())
    manifest = json.loads((bundle_copy / "manifest.json").read_text())
    manifest["files"]["captioner.onnx"] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    (bundle_copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleError) as caught:
        Bundle.load(bundle_copy)
    assert repr(location) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_functions_are_looked_into(tmp_path: Path) -> None:
    function = helper.make_function("d", "f", [], ["w"], [helper.make_node("Constant", [], ["w"], value=outside("a"))], [])  # fmt: skip  # noqa: E501
    (tmp_path / "m.onnx").write_bytes(
        helper.make_model(helper.make_graph([], "g", [], []), functions=[function]).SerializeToString()
    )
    assert external_locations(tmp_path / "m.onnx") == {"a"}


def test_a_bundles_own_weights_are_found(tiny_bundle: Path) -> None:
    assert external_locations(tiny_bundle / "captioner.onnx") == {"captioner.weights"}
    assert external_locations(tiny_bundle / "captioner_static.onnx") == {"captioner.weights"}
    assert external_locations(tiny_bundle / "vision.onnx") == set()


def test_an_unlisted_weights_file_is_named(bundle_copy: Path) -> None:
    manifest = json.loads((bundle_copy / "manifest.json").read_text())
    del manifest["files"]["captioner.weights"]
    (bundle_copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match=r"captioner\.weights"):
        Bundle.load(bundle_copy)


@given(st.binary(max_size=60))
def test_what_is_no_graph_is_a_value_error_or_names_nothing(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:  # fmt: skip  # noqa: E501
    path = tmp_path_factory.getbasetemp() / "junk.onnx"
    path.write_bytes(junk)
    try:
        external_locations(path)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017
