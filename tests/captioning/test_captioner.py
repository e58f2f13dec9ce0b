"""The public interface of the Captioner, on the tiny bundle."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_caption_ros.captioning import BundleError, Captioner, EngineError
from tests.detection.tiny_detectors import GREEN, squares
from tests.engines.small_graphs import changed_manifest, list_file
from tests.frames import blobs


@pytest.fixture(scope="module")
def captioner(tiny_bundle):
    return Captioner.from_bundle(tiny_bundle, engine="onnxruntime-cpu", threads=1)


@given(height=st.integers(1, 300), width=st.integers(1, 300), seed=st.integers(0, 9))
@settings(max_examples=20)
def test_a_frame_of_any_size_gets_a_caption_whose_evidence_lies_in_the_frame(captioner, height, width, seed):
    caption = captioner.caption(blobs(seed, height, width))
    assert caption.image_size == (width, height)
    for word in caption.words:
        x1, y1, x2, y2 = word.box_xyxy
        assert 0 <= x1 < x2 <= width * 1.0001
        assert 0 <= y1 < y2 <= height * 1.0001
        assert word.log_probability <= 0
    assert caption.text.split() == [word.text for word in caption.words]


def test_the_score_is_the_sum_over_words_and_end_and_confidence_their_geometric_mean(captioner):
    caption = captioner.caption(blobs(1))
    spoken = sum(word.log_probability for word in caption.words)
    assert caption.score <= spoken + 1e-5  # the end token can only take away
    tokens = len(caption.words) + (len(caption.words) < captioner.bundle.search.max_words)
    assert caption.confidence == pytest.approx(np.exp(caption.score / tokens))
    assert 0 <= caption.confidence <= 1


def test_alternatives_are_other_finished_captions_best_first(captioner):
    found = [captioner.caption(blobs(seed)) for seed in range(8)]
    assert any(caption.alternatives for caption in found)
    for caption in found:
        scores = [caption.score, *(alternative.score for alternative in caption.alternatives)]
        assert scores == sorted(scores, reverse=True)
        texts = [caption.text, *(alternative.text for alternative in caption.alternatives)]
        assert len(set(texts)) == len(texts)


def test_a_batch_gives_the_sentences_that_single_frames_give(captioner):
    images = [blobs(seed, 100 + 40 * seed, 300) for seed in range(4)]
    assert captioner.caption_batch(images) == [captioner.caption(image).text for image in images]


@pytest.mark.parametrize(
    "frame",
    [
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((4, 4, 3), np.float32),
        np.zeros((0, 4, 3), np.uint8),
        [[0]],
        None,
    ],
)
def test_an_argument_that_is_no_frame_is_refused(captioner, frame):
    with pytest.raises(ValueError, match="a frame must be"):
        captioner.caption(frame)


def test_graphs_that_were_swapped_are_refused_before_the_first_frame(bundle_copy):
    vision, captioner = bundle_copy / "vision.onnx", bundle_copy / "captioner.onnx"
    content = vision.read_bytes()
    vision.write_bytes(captioner.read_bytes())
    captioner.write_bytes(content)
    for path in (vision, captioner):
        list_file(bundle_copy, path.name)
    with pytest.raises((BundleError, EngineError), match=r"vision\.onnx"):
        Captioner.from_bundle(bundle_copy)


def test_the_default_bundle_names_the_person_in_a_photograph():
    captioner = Captioner.from_bundle()
    data = pytest.importorskip("skimage.data", reason="needs scikit-image's photographs: the demo extra")
    caption = captioner.caption(cv2.cvtColor(data.astronaut(), cv2.COLOR_RGB2BGR))
    assert {"woman", "man", "girl", "boy", "person"} & set(caption.text.split())
    assert caption.shows_detail
    assert not captioner.caption(np.full((480, 640, 3), 180, np.uint8)).shows_detail


def test_captions_of_a_bundle_with_a_detector_have_the_detected_objects(bundle_with_detector, captioner):
    with_detector = Captioner.from_bundle(bundle_with_detector, engine="onnxruntime-cpu", threads=1)
    frame = squares(640, 640, (GREEN, (320, 160, 480, 320)))
    caption = with_detector.caption(frame)
    assert ("dog", (320.0, 160.0, 480.0, 320.0)) in [
        (detected.class_name, detected.box_xyxy) for detected in caption.objects
    ]
    assert {detected.class_name for detected in caption.objects} == {"dog"}
    assert min(detected.score for detected in caption.objects) >= 0.75, "what the manifest asks for"
    assert caption.text == captioner.caption(frame).text
    assert captioner.caption(frame).objects == ()


def test_a_detector_of_another_layout_than_the_manifest_says_is_refused(bundle_with_detector):
    with changed_manifest(bundle_with_detector) as manifest:
        manifest["detector"]["layout"] = "boxes-scores-labels"
    with pytest.raises(BundleError, match="has the layout yolox instead of boxes-scores-labels"):
        Captioner.from_bundle(bundle_with_detector, engine="onnxruntime-cpu")


def test_pieces_of_words_become_words_with_the_sum_of_their_log_probabilities(captioner, bundle_copy):
    path = bundle_copy / "vocabulary.txt"
    words = path.read_text().split()
    pieces = [word if index < 4 or index % 3 else f"##{word}" for index, word in enumerate(words)]
    path.write_text("".join(f"{piece}\n" for piece in pieces))
    with changed_manifest(bundle_copy) as manifest:
        manifest["vocabulary"]["continuation"] = "##"
    list_file(bundle_copy, "vocabulary.txt")
    in_pieces = Captioner.from_bundle(bundle_copy, engine="onnxruntime-cpu", threads=1)
    several = 0
    for seed in range(4):
        expected, found = captioner.caption(blobs(seed)), in_pieces.caption(blobs(seed))
        rest = list(expected.words)
        for word in found.words:
            own = [rest.pop(0)]
            while rest and int(rest[0].text[1:]) % 3 == 0:
                own.append(rest.pop(0))
            assert word.text == "".join(piece.text for piece in own)
            assert word.log_probability == pytest.approx(sum(piece.log_probability for piece in own), abs=1e-5)
            assert len(own) > 1 or word.box_xyxy == own[0].box_xyxy
            several += len(own) > 1
        assert not rest
        assert found.text == " ".join(word.text for word in found.words)
        ended = len(expected.words) < captioner.bundle.search.max_words
        assert found.confidence == pytest.approx(np.exp(expected.score / (len(found.words) + ended)))
    assert several
