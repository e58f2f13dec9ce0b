"""A bundle that fails its check never takes the place of a good one."""

import shutil
from pathlib import Path

import onnx
import pytest

from export.bundle import ExportError, write_bundle
from smart_caption_ros.captioning import Bundle


def write_again(source, folder, **options):
    """The bundle of ``source``, written to ``folder`` under another name."""
    bundle = Bundle.load(source)
    facts = {**{key: value for key, value in bundle.manifest.items() if key != "files"}, "name": "newer"}
    graphs = {name: onnx.load_model_from_string(bundle.read_graph(name)) for name in ("vision.onnx", "captioner.onnx")}
    return write_bundle(folder, graphs, bundle.vocabulary, facts, **options)


def refuse(bundle):
    raise ExportError(f"{bundle.name} says something else than torch")


def test_a_bundle_that_fails_its_check_leaves_the_one_that_it_would_have_replaced(tiny_bundle, tmp_path):
    folder = Path(shutil.copytree(tiny_bundle, tmp_path / "bundle"))
    with pytest.raises(ExportError, match="newer says something else"):
        write_again(tiny_bundle, folder, replace=True, check=refuse)
    assert Bundle.load(folder).name == "tiny"
    assert list(tmp_path.iterdir()) == [folder]


def test_weights_that_no_file_can_hold_are_refused(tiny_bundle, tmp_path, monkeypatch):
    monkeypatch.setattr("export.bundle.MOST_STORED", 10_000)
    with pytest.raises(ExportError, match=r"captioner\.weights take 0\.\d GB as .* --storage float16"):
        write_again(tiny_bundle, tmp_path / "bundle", check=lambda bundle: None)
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_that_passes_its_check_replaces_the_old_one_and_leaves_nothing_else(tiny_bundle, tmp_path):
    folder = Path(shutil.copytree(tiny_bundle, tmp_path / "bundle"))
    written = write_again(tiny_bundle, folder, replace=True, check=lambda bundle: None)
    assert (written.path, written.name) == (folder, "newer")
    assert Bundle.load(folder).name == "newer"
    assert list(tmp_path.iterdir()) == [folder]
