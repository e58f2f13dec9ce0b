"""Imported captioners, as a checkpoint and as a bundle, say what transformers' ``generate`` says."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoImageProcessor, AutoTokenizer, BlipForConditionalGeneration

from export.import_checkpoint.__main__ import main as import_checkpoint
from export.import_checkpoint.transformers_models import SearchChoices, read_transformers_model
from smart_caption_ros.captioning import Captioner
from tests.frames import blobs
from tests.published_captioners import with_captions_that_end
from tests.published_folders import write_published

FRAMES = [blobs(seed, 48, 64) for seed in range(40)]


def write_model(folder, name, search):
    model = with_captions_that_end(write_published(folder, name))
    model.save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps(search))
    return model


def generated(model, folder, prompt, search):
    """What transformers says of :data:`FRAMES`, without the prompt."""
    images = [np.ascontiguousarray(frame[..., ::-1]) for frame in FRAMES]
    pixels = AutoImageProcessor.from_pretrained(folder)(images, return_tensors="pt")["pixel_values"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    given = tokenizer.encode(prompt, return_tensors="pt").repeat(len(images), 1)  # with a token after it
    before = given.shape[1] - 1
    if not isinstance(model, BlipForConditionalGeneration):  # which takes it off
        given = given[:, :-1]
    with torch.inference_mode():
        found = model.generate(pixel_values=pixels, input_ids=given, do_sample=False, **search)
    said = [tokenizer.decode(words[before:], skip_special_tokens=True) for words in found]
    return [text.removeprefix("##") for text in said]  # the mark of a first piece, which continues nothing


def assert_same(found, expected):
    same = sum(ours == theirs for ours, theirs in zip(found, expected, strict=True))
    assert same >= len(expected) - 1  # two captions of the same score may come in either order
    assert len(set(expected)) > len(expected) / 2


@pytest.mark.parametrize(("name", "prompt"), [("git", ""), ("blip", ""), ("blip", "a picture of")])
def test_lengths_of_generate_count_the_begin_token_and_the_prompt(name, prompt, tmp_path):
    lengths = {"min_length": 5 + len(prompt.split()), "max_length": 10 + len(prompt.split())}
    search = {"num_beams": 5, "length_penalty": 0.0, "early_stopping": False, **lengths}
    model = write_model(tmp_path, name, search)
    trained = read_transformers_model(name, str(tmp_path), None, SearchChoices(prompt=prompt))
    assert trained.backbone is not None
    frames = np.stack([trained.backbone.spec.preprocessing.apply(frame) for frame in FRAMES])
    assert_same(trained.sentences(trained.caption_images(frames).words), generated(model, tmp_path, prompt, search))


@pytest.mark.long
def test_a_bundle_says_what_generate_says(tmp_path, monkeypatch):
    search = {"num_beams": 5, "max_length": 14, "min_length": 7, "length_penalty": 0.7, "early_stopping": True}
    model = write_model(tmp_path / "model", "blip", search)
    arguments = ["blip", tmp_path / "model", "-o", tmp_path / "bundle", "--storage", "float32", "--no-static"]
    monkeypatch.setattr("sys.argv", ["import_checkpoint", *map(str, arguments), "--check-images", "1"])
    assert import_checkpoint() == 0
    captioner = Captioner.from_bundle(tmp_path / "bundle", engine="onnxruntime-cpu", threads=1)
    found = [captioner.caption(frame).text for frame in FRAMES]
    assert_same(found, generated(model, tmp_path / "model", "a picture of", search))
