"""A captioner whose words are guided by the objects in the frame."""

import math
from dataclasses import replace

import pytest

from smart_caption_ros.captioning import Captioner, DetectedObject
from smart_caption_ros.captioning.calibration import Calibration
from smart_caption_ros.captioning.guidance import WordBiases
from smart_caption_ros.detection.detections import ClassScores
from smart_caption_ros.imaging.detail import detail_of
from tests.frames import blobs

FRAME = blobs(1, 60, 80)
SAID = 9
"""Id of a word that no caption here has unless it is raised."""


class RaisedWord:
    """A guide that raises one word wherever a class has a score, and remembers the scores."""

    def __init__(self, bias=60.0):
        self.bias, self.word = bias, SAID
        self.seen = []

    def word_biases(self, class_scores, vocabulary):
        self.seen.append(class_scores)
        biases = WordBiases.none(1, len(vocabulary))
        if any(class_scores.scores.values()):
            biases.bias[0, self.word], biases.groups[0, self.word] = self.bias, 1
        return biases


@pytest.fixture
def captioner(detecting_bundle):
    return Captioner.from_bundle(detecting_bundle, "onnxruntime-cpu", threads=1)


def test_a_biased_word_is_said_once_and_has_the_models_own_probability(captioner):
    plain = captioner.caption(FRAME)
    captioner.guide = guide = RaisedWord()
    guided = captioner.caption(FRAME)
    assert plain.objects == guided.objects != ()
    seen = guide.seen[-1]
    assert seen.complete
    assert seen.scores.keys() == set(captioner.bundle.class_names)
    best = max(plain.objects, key=lambda detected: detected.score)
    assert seen.scores[best.class_name] == max(seen.scores.values()) == pytest.approx(best.score)
    assert f"w{SAID}" not in plain.text
    assert guided.text.split().count(f"w{SAID}") == 1
    assert guided.score < plain.score < 0
    assert max(word.log_probability for word in guided.words) <= 0


@pytest.mark.parametrize(("bias", "supported", "contradicted"), [(60.0, 60.0, 0.0), (-0.001, 0.0, 0.001)])
def test_a_bundle_calibrates_the_confidence_by_confidence_objects_and_detail(captioner, bias, supported, contradicted):
    captioner.guide = guide = RaisedWord(bias)
    guide.word = SAID if bias > 0 else captioner.bundle.vocabulary.words.index(captioner.caption(FRAME).words[0].text)
    plain = captioner.caption(FRAME)
    assert plain.calibrated_confidence is None
    weights = {"confidence": 2.0, "supported": -0.01, "contradicted": 300.0, "detail": 0.5}
    captioner.bundle = replace(captioner.bundle, calibration=Calibration(0.125, weights))
    detail = detail_of(captioner.bundle.preprocessing.apply(FRAME))
    logit = 0.125 + 2 * math.log(plain.confidence) - 0.01 * supported + 300 * contradicted + 0.5 * math.log1p(detail)
    calibrated = captioner.caption(FRAME)
    assert calibrated.calibrated_confidence == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-3)
    assert calibrated.confidence == plain.confidence


def test_captions_of_a_batch_are_guided_by_the_objects_of_their_frames(captioner):
    captioner.guide = RaisedWord()
    frames = [FRAME, blobs(3, 50, 50)]
    assert captioner.caption_batch(frames) == [captioner.caption(frame).text for frame in frames]


def test_objects_from_elsewhere_guide_the_words_and_do_not_become_the_captions(captioner):
    captioner.guide = guide = RaisedWord()
    objects = (DetectedObject("giraffe", 23, 0.9, (0.0, 0.0, 5.0, 5.0)),)
    caption = captioner.caption(FRAME, objects)
    assert guide.seen[-1] == ClassScores({"giraffe": 0.9}, complete=False)
    assert caption.objects != objects
    assert f"w{SAID}" in caption.text
    assert f"w{SAID}" not in captioner.caption(FRAME, ()).text
