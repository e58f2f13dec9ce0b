"""Every way in which a bundle can be wrong is refused with one sentence that names the place."""

import codecs
from pathlib import Path

import pytest

from smart_caption_ros.captioning import Bundle, BundleError, default_bundle_path
from smart_caption_ros.captioning.bundle import FORMAT_VERSION
from tests.engines.small_graphs import changed_manifest, list_file


def change_manifest(bundle, change):
    with changed_manifest(bundle) as manifest:
        change(manifest)


def refusal(bundle):
    with pytest.raises(BundleError) as caught:
        Bundle.load(bundle)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def test_what_is_no_folder_with_a_manifest_is_no_bundle(tmp_path, tiny_bundle):
    assert "no such bundle" in refusal(tmp_path / "absent")
    assert "is a file" in refusal(tiny_bundle / "vision.onnx")
    assert "has no manifest.json" in refusal(tmp_path)
    assert "File name too long" in refusal(Path("x" * 300))


@pytest.mark.parametrize(
    "content", [b"{", b"", b"\x00", b"[1, 2]", b'"bundle"', b"\xff\xfe{\x00", b"[" * 100_000, b"9" * 5000]
)
def test_a_manifest_that_is_no_json_object_is_refused(bundle_copy, content):
    (bundle_copy / "manifest.json").write_bytes(content)
    assert "manifest.json" in refusal(bundle_copy)


def test_a_byte_order_mark_before_the_manifest_is_left_out(bundle_copy):
    path = bundle_copy / "manifest.json"
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    assert Bundle.load(bundle_copy).name == "tiny"


@pytest.mark.parametrize(("version", "remedy"), [(FORMAT_VERSION + 1, "is newer: update"), (5, "is older: export")])
def test_another_format_is_refused_with_what_to_do(bundle_copy, version, remedy):
    change_manifest(bundle_copy, lambda manifest: manifest.update(format_version=version))
    assert f"format {version} {remedy}" in refusal(bundle_copy)


REQUIRED = (
    "format_version", "name", "preprocessing.width", "preprocessing.interpolation", "tokens.rows", "tokens.before_grid",
    "decoding.beam_size", "decoding.forbidden", "vocabulary.continuation", "captioner_inputs", "min_detail",
    "class_names", "precision.computed", "architecture.parameters", "files",
)  # fmt: skip


@pytest.mark.parametrize("key", REQUIRED)
@pytest.mark.parametrize("value", ["absent", None, -1, [1.5]])
def test_a_missing_or_wrong_value_is_named(bundle_copy, key, value):
    def spoil(manifest):
        *parents, last = key.split(".")
        for parent in parents:
            manifest = manifest[parent]
        manifest[last] = value
        if value == "absent":
            del manifest[last]

    change_manifest(bundle_copy, spoil)
    assert key.replace("decoding.", "decoding: " if value != "absent" else "decoding.") in refusal(bundle_copy)


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["vision.onnx", "captioner.onnx", "captioner.weights", "vocabulary.txt"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Path.unlink, "{} is missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-10]), "{} has "),
        (flip_a_bit, "{} was changed after export (its sha256 differs)"),
    ],
)
def test_a_damaged_file_is_named(bundle_copy, name, change, words):
    change(bundle_copy / name)
    assert words.format(name) in refusal(bundle_copy)


@pytest.mark.parametrize("name", ["vision.onnx", "captioner.weights", "vocabulary.txt"])
def test_a_file_that_the_manifest_does_not_list_is_not_trusted(bundle_copy, name):
    change_manifest(bundle_copy, lambda manifest: manifest["files"].pop(name))
    assert f"does not list {name}" in refusal(bundle_copy)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/b", "..", "manifest.json"])
def test_a_manifest_cannot_point_outside_its_folder(bundle_copy, name):
    change_manifest(bundle_copy, lambda manifest: manifest["files"].update({name: {"bytes": 1, "sha256": ""}}))
    assert "no plain file name" in refusal(bundle_copy)


def test_a_file_name_that_no_file_system_takes_is_refused(bundle_copy):
    change_manifest(bundle_copy, lambda manifest: manifest["files"].update({"x" * 300: {"bytes": 1, "sha256": ""}}))
    assert "File name too long" in refusal(bundle_copy)


def test_a_malformed_vocabulary_is_refused(bundle_copy):
    (bundle_copy / "vocabulary.txt").write_text("a\nb\n")
    list_file(bundle_copy, "vocabulary.txt")
    assert "vocabulary.txt is malformed" in refusal(bundle_copy)


def test_the_default_bundle_is_complete_and_states_its_training_data_and_scores():
    bundle = Bundle.load()
    assert bundle.path == default_bundle_path()
    assert all(source["terms"] for source in bundle.manifest["trained_on"])
    assert bundle.manifest["scores"]
    assert bundle.can_be_guided


def test_a_bundle_may_carry_a_detector(bundle_with_detector, tiny_bundle):
    bundle = Bundle.load(bundle_with_detector)
    assert (bundle.detector.layout, bundle.detector.minimum_score) == ("yolox", 0.75)
    assert bundle.class_names[16] == "dog"
    assert Bundle.load(tiny_bundle).detector is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda manifest: manifest.pop("detector"), "lacks detector.layout"),
        (lambda manifest: manifest["detector"].pop("minimum_score"), "lacks detector.minimum_score"),
        (
            lambda manifest: manifest["detector"].update(layout="abacus"),
            "detector.layout must be one of yolox, boxes-scores-labels",
        ),
        (
            lambda manifest: manifest["detector"].update(minimum_score=1.5),
            "detector.minimum_score must be a number from 0 to 1",
        ),
        (
            lambda manifest: manifest.update(calibrated_confidence={"bias": 1.0, "weights": {"mood": 2.0}}),
            "calibrated_confidence weighs mood; the known features are confidence, supported, contradicted, detail",
        ),
        (
            lambda manifest: manifest.update(calibrated_confidence={"bias": 1.0, "weights": {"detail": True}}),
            "calibrated_confidence must have a number bias and an object of numbers weights",
        ),
        (
            lambda manifest: manifest.update(calibrated_confidence={"bias": 10**400, "weights": {}}),
            "calibrated_confidence must have a number bias and an object of numbers weights",
        ),
        (lambda manifest: manifest.update(class_names=[]), "class_names must be the names of the detector's classes"),
        (
            lambda manifest: manifest["files"].pop("detector.onnx"),
            "describes a detector, but does not list detector.onnx",
        ),
    ],
)
def test_a_manifest_that_describes_its_detector_wrongly_is_refused(bundle_with_detector, change, words):
    change_manifest(bundle_with_detector, change)
    assert words in refusal(bundle_with_detector)
