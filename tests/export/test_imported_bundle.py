"""Captions of a published captioner that was imported as a bundle, run by the robot side."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoImageProcessor, AutoTokenizer

from export.import_checkpoint.__main__ import main as import_checkpoint
from smart_caption_ros.captioning import Captioner
from tests.frames import blobs
from tests.published_captioners import with_captions_that_end
from tests.published_folders import write_published

FRAMES = 40
SEARCH = {"num_beams": 5, "max_length": 14, "min_length": 7, "length_penalty": 0.7, "early_stopping": True}


@pytest.mark.long
def test_captions_of_an_imported_bundle_are_those_of_generate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = with_captions_that_end(write_published(tmp_path / "model", "blip"))
    model.save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "generation_config.json").write_text(json.dumps(SEARCH))
    arguments = ["blip", tmp_path / "model", "-o", tmp_path / "bundle", "--storage", "float32", "--no-static"]
    monkeypatch.setattr("sys.argv", ["import_checkpoint", *map(str, arguments), "--check-images", "1"])
    assert import_checkpoint() == 0

    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    prompt = tokenizer.encode("a picture of", return_tensors="pt")  # generate begins it and takes its last token off
    frames = [blobs(seed, 48, 64) for seed in range(FRAMES)]
    images = [np.ascontiguousarray(frame[..., ::-1]) for frame in frames]
    pixels = AutoImageProcessor.from_pretrained(tmp_path / "model")(images, return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        found = model.generate(pixels, input_ids=prompt.repeat(FRAMES, 1), do_sample=False, **SEARCH)
    expected = [tokenizer.decode(words[prompt.shape[1] - 1 :], skip_special_tokens=True) for words in found]
    captioner = Captioner.from_bundle(tmp_path / "bundle", engine="onnxruntime-cpu", threads=1)
    captions = [captioner.caption(frame) for frame in frames]
    print(expected, [caption.text for caption in captions])
    same = [caption.text == text for caption, text in zip(captions, expected, strict=True)]
    assert sum(same) >= FRAMES - 1  # two captions of the same score may come in either order
    assert len(set(expected)) > FRAMES / 2
