"""A captioner that says pieces of words, exported and run on the robot side."""

import cv2
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from export.captioner_graph import loop_form, static_form
from export.storage import round_to_float16
from export.tensorrt import unsupported_by_tensorrt
from export.trace import trace_captioner
from smart_caption_ros.captioning import Captioner
from smart_caption_ros.captioning.guidance import WordBiases
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from smart_caption_ros.cli.app import app
from smart_caption_ros.detection.detections import ClassScores
from smart_caption_ros.grounding import ObjectsGuide
from tests.export.command import export
from tests.export.graphs import ragged, run, session_of
from tests.frames import blobs
from tests.tiny_model import tiny_smart, tiny_trained
from training.decoding.beam_search import SearchSettings, WordGuide, beam_search
from training.decoding.pieces import PieceTables
from training.decoding.repeats import same_words
from training.engine.trained_captioner import TrainedCaptioner


@pytest.mark.long
def test_an_exported_captioner_of_pieces_says_the_whole_words_of_torch(tmp_path):
    trained = tiny_trained()  # the weights of the fixture tiny_checkpoint, whose graphs are traced once
    words = trained.vocabulary.words
    pieces = (*words[:4], *(f"##{word}" if index % 4 == 3 else word for index, word in enumerate(words[4:])))
    trained.vocabulary = Vocabulary(pieces, "##")
    source = tmp_path / "best.safetensors"
    trained.save(source)
    done = export(source, tmp_path / "bundle", "--check-images", 4)
    assert done.status == 0, done.err
    torch_side = TrainedCaptioner.load(source)
    round_to_float16(torch_side.captioner)
    round_to_float16(torch_side.backbone)
    robot = Captioner.from_bundle(tmp_path / "bundle", engine="onnxruntime-cpu", threads=1)
    of_several_pieces = 0
    for seed in range(2):
        expected = torch_side.caption_images(blobs(seed)[None], beam_size=5, max_words=12)
        caption = robot.caption(blobs(seed))
        assert [word.text for word in caption.words] == torch_side.words(expected)[0]
        places = torch_side.vocabulary.word_places(expected.words[0, 0].tolist())
        sums = [float(expected.log_probabilities[0, 0, place].sum()) for place in places]
        np.testing.assert_allclose([word.log_probability for word in caption.words], sums, atol=1e-4)
        assert caption.score == pytest.approx(float(expected.scores[0, 0]), abs=1e-3)
        of_several_pieces += sum(len(place) > 1 for place in places)
    assert of_several_pieces

    cv2.imwrite(str(tmp_path / "a.png"), blobs(1))
    said = CliRunner().invoke(app, ["describe", str(tmp_path / "a.png"), "--bundle", str(tmp_path / "bundle")])
    assert said.exit_code == 0, said.output
    assert caption.text in said.output
    assert "##" not in said.output


@pytest.mark.long
def test_a_guided_search_over_pieces_is_that_of_torch_in_both_forms():
    words = (*SPECIAL, "book", "##shelf", "dog", "skate", "##board", "##rs", "a", "~~,", "##s", "table", "##ing")
    vocabulary = Vocabulary(words, "##", "~~")
    model, pieces, same = tiny_smart(vocabulary_size=len(words)), PieceTables.of(vocabulary), same_words(vocabulary)
    search, visual = Search(4, 8, repeat_penalty=2.0), ragged(2, 5)
    scores = ClassScores({"book": 0.9, "skateboard": 0.8, "dog": 0.6}, complete=False)
    one = ObjectsGuide(strength=6.0).word_biases(scores, vocabulary)
    biases = WordBiases.join([one, one])
    settings = SearchSettings(4, 8, repeat_penalty=2.0, same_words=same, pieces=pieces, stop="all")
    guide = WordGuide(torch.from_numpy(biases.bias), torch.from_numpy(biases.groups))
    with torch.inference_mode():
        expected = beam_search(model, visual, settings, guide)
    traced = trace_captioner(model, search, guided=True, same_words=same, pieces=pieces)
    static = static_form(traced, 8, tokens=visual.tokens.shape[1], batch=2)
    assert not unsupported_by_tensorrt(static)
    for session in (session_of(loop_form(traced, 8)), session_of(static)):
        found = run(session, visual, biases, every_beam=True)
        steps = expected.words.shape[2]
        np.testing.assert_array_equal(found["words"][..., :steps], expected.words)
        np.testing.assert_allclose(found["scores"], expected.scores, atol=1e-4)
