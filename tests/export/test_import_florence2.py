"""Florence-2 in transformers' folder: prompts, forced tokens, captions, a bundle, and what is refused."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoImageProcessor, AutoTokenizer

from export.import_checkpoint.__main__ import main as import_checkpoint
from export.import_checkpoint.published import ImportCheckpointError
from export.import_checkpoint.transformers_models import TASKS, SearchChoices, read_transformers_model
from smart_caption_ros.captioning import Captioner
from tests.frames import blobs
from tests.published_captioners import with_captions_that_end
from tests.published_folders import write_published

FRAMES = [blobs(seed, 48, 64) for seed in range(40)]
GENERATION = {
    "num_beams": 3, "no_repeat_ngram_size": 3, "early_stopping": True, "forced_bos_token_id": 0,
    "forced_eos_token_id": 2, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2,
}  # fmt: skip
"""Of Florence-2-base's generation_config.json."""


def write_model(folder, **settings):
    model = with_captions_that_end(write_published(folder, "florence2"))
    model.save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps({**GENERATION, **settings}))
    return model


def generated(model, folder, task, **settings):
    """What transformers says of :data:`FRAMES`."""
    images = [np.ascontiguousarray(frame[..., ::-1]) for frame in FRAMES]
    pixels = AutoImageProcessor.from_pretrained(folder)(images, return_tensors="pt")["pixel_values"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    count = model.get_image_features(pixels[:1]).pooler_output.shape[1]
    question = tokenizer.encode(f"<s>{TASKS[task][0]}</s>", add_special_tokens=False)
    given = torch.tensor([[model.config.image_token_id] * count + question]).expand(len(images), -1)
    with torch.inference_mode():
        found = model.generate(input_ids=given, pixel_values=pixels, do_sample=False, **{**GENERATION, **settings})
    return [tokenizer.decode(words, skip_special_tokens=True).strip() for words in found]


def assert_same(found, expected):
    same = sum(ours == theirs for ours, theirs in zip(found, expected, strict=True))
    assert same >= len(expected) - 1  # two captions of the same score may come in either order
    assert len(set(expected)) > len(expected) / 2


@pytest.mark.parametrize(("task", "longest"), [("<CAPTION>", 20), ("<DETAILED_CAPTION>", 14)])
def test_captions_of_a_prompt_are_those_of_generate(task, longest, tmp_path):
    model = write_model(tmp_path, min_length=8, max_length=longest)
    trained = read_transformers_model("florence2", str(tmp_path), None, SearchChoices(prompt=task))
    frames = np.stack([trained.backbone.spec.preprocessing.apply(frame) for frame in FRAMES])
    found = trained.sentences(trained.caption_images(frames).words)
    assert_same(found, generated(model, tmp_path, task, min_length=8, max_length=longest))


def test_what_the_settings_leave_out_is_as_published(tmp_path):
    write_model(tmp_path)
    search = read_transformers_model("florence2", str(tmp_path), None, SearchChoices()).search
    assert (search.beam_size, search.max_words, search.no_repeat_ngram) == (3, 32 - 3, 3)
    assert (search.finished, search.length_penalty, search.forced_end) == ("apart_until_k", 1.0, True)
    (tmp_path / "generation_config.json").write_text('{"decoder_start_token_id": 2, "max_new_tokens": 9}')
    search = read_transformers_model("florence2", str(tmp_path), None, SearchChoices()).search
    assert (search.beam_size, search.max_words, search.forced_begin, search.forced_end) == (3, 9, (), False)


@pytest.mark.parametrize(
    ("changed", "prompt", "message"),
    [
        ({}, "a picture of", "--prompt must be one of <CAPTION>, <DETAILED_CAPTION>, <MORE_DETAILED_CAPTION>"),
        ({"generation_config.json": {"forced_eos_token_id": 5}}, None, "has forced_eos_token_id 5, which no"),
        ({"generation_config.json": {"forced_bos_token_id": 99}}, None, "has forced_bos_token_id 99, which no"),
        ({"config.json": {"vision_config": {"model_type": "davit"}}}, None, "layout of Microsoft's own code"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(changed, prompt, message, tmp_path):
    write_model(tmp_path)
    for name, settings in changed.items():
        path = tmp_path / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    with pytest.raises(ImportCheckpointError) as caught:
        read_transformers_model("florence2", str(tmp_path), None, SearchChoices(prompt=prompt))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.long
def test_a_bundle_says_what_generate_says(tmp_path, monkeypatch):
    lengths = {"min_length": 8, "max_length": 16}
    model = write_model(tmp_path / "model", **lengths)
    arguments = ["florence2", tmp_path / "model", "-o", tmp_path / "bundle", "--storage", "float32"]
    monkeypatch.setattr("sys.argv", ["import_checkpoint", *map(str, arguments), "--check-images", "1"])
    assert import_checkpoint() == 0
    captioner = Captioner.from_bundle(tmp_path / "bundle", engine="onnxruntime-cpu", threads=1)
    captions = [captioner.caption(frame) for frame in FRAMES]
    assert_same([caption.text for caption in captions], generated(model, tmp_path / "model", "<CAPTION>", **lengths))
