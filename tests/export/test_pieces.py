"""A captioner that says pieces of words, exported and run on the robot side."""

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from export.storage import round_to_float16
from smart_caption_ros.captioning import Captioner
from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.cli.app import app
from tests.export.command import export
from tests.frames import blobs
from tests.tiny_model import tiny_trained
from training.engine.trained_captioner import TrainedCaptioner


@pytest.mark.long
def test_an_exported_captioner_of_pieces_says_the_whole_words_of_torch(tmp_path):
    trained = tiny_trained()  # the weights of the fixture tiny_checkpoint, whose graphs are traced once
    words = trained.vocabulary.words
    pieces = (*words[:4], *(f"##{word}" if index % 4 == 3 else word for index, word in enumerate(words[4:])))
    trained.vocabulary = Vocabulary(pieces, "##")
    source = tmp_path / "best.safetensors"
    trained.save(source)
    done = export(source, tmp_path / "bundle", "--check-images", 4, "--no-static")
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
