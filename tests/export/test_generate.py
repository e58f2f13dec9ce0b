"""Imported captioners, as a checkpoint and as a bundle, say what transformers' ``generate`` says."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoImageProcessor, AutoTokenizer, Idefics3Processor

from export.import_checkpoint.__main__ import main as import_checkpoint
from export.import_checkpoint.transformers_models import TASKS, SearchChoices, read_transformers_model
from smart_caption_ros.captioning import Captioner
from tests.frames import blobs
from tests.published_captioners import with_captions_that_end
from tests.published_folders import CHAT_TEMPLATE, FLORENCE2_GENERATION, FORMATS, write_chat, write_published

FRAMES = [blobs(seed, 48 + seed % 3 * 16, 64) for seed in range(40)]
QUESTION = "What is there?"


def write_model(folder, name, search):
    if name == "smolvlm":
        model = write_chat(folder)
        with torch.no_grad():
            model.lm_head.weight[2] += 0.25  # captions of several lengths
        model.save_pretrained(folder)
        config = json.loads((folder / "config.json").read_text())
        config["vision_config"]["model_type"] = "idefics3"  # as in the released files
        (folder / "config.json").write_text(json.dumps(config))
        return model
    model = with_captions_that_end(write_published(folder, name))
    model.save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps(search))
    return model


def generated(model, folder, name, prompt, search):
    """What transformers says of :data:`FRAMES`, without the prompt."""
    if name == "smolvlm":
        return generated_by_chat(model, folder, search)
    images = [np.ascontiguousarray(frame[..., ::-1]) for frame in FRAMES]
    pixels = AutoImageProcessor.from_pretrained(folder)(images, return_tensors="pt")["pixel_values"]
    tokenizer, before, given = None if name == "vit-gpt2" else AutoTokenizer.from_pretrained(folder), 1, {}
    if name == "florence2":
        count = model.get_image_features(pixels[:1]).pooler_output.shape[1]
        question = tokenizer.encode(f"<s>{TASKS[prompt][0]}</s>", add_special_tokens=False)
        given["input_ids"] = torch.tensor([[model.config.image_token_id] * count + question]).expand(len(images), -1)
    elif name in ("git", "blip"):
        words = tokenizer.encode(prompt, return_tensors="pt").repeat(len(images), 1)  # with a token after it
        before = words.shape[1] - 1
        given["input_ids"] = words if name == "blip" else words[:, :-1]  # BLIP takes it off
    else:
        given["decoder_start_token_id"] = model.config.decoder_start_token_id
    with torch.inference_mode():
        found = model.generate(pixel_values=pixels, do_sample=False, **given, **search)
    if tokenizer is None:  # transformers makes none of these files
        pieces = {index: piece for piece, index in json.loads((folder / "vocab.json").read_text()).items()}
        end = model.config.eos_token_id
        said = ["".join(pieces[word] for word in words if word != end) for words in found.tolist()]
        return [text.replace("Ġ", " ").strip() for text in said]
    said = [tokenizer.decode(words[before:], skip_special_tokens=True).strip() for words in found]
    return [text.removeprefix("##") for text in said]  # the mark of a first piece, which continues nothing


def generated_by_chat(model, folder, search):
    """The processor's one frame, template and decoding are its own."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    images = AutoImageProcessor.from_pretrained(folder, use_fast=False)
    processor = Idefics3Processor(images, tokenizer, model.model.image_seq_len, chat_template=CHAT_TEMPLATE)
    content = [{"type": "image"}, {"type": "text", "text": QUESTION}]
    text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    if search.pop("first_sentence"):
        search["eos_token_id"] = [2, *tokenizer.convert_tokens_to_ids([".", "!", "?"])]
    said = []
    for frame in FRAMES:
        rgb = np.ascontiguousarray(frame[..., ::-1])
        inputs = processor(text=text, images=[rgb], do_image_splitting=False, return_tensors="pt")
        with torch.inference_mode():
            words = model.generate(**inputs, do_sample=False, max_new_tokens=12, **search)[0]
        said.append(tokenizer.decode(words[inputs["input_ids"].shape[1] :], skip_special_tokens=True).strip())
    return said


def assert_same(found, expected):
    """Spaces at quotes are those of test_tokenizer_files.py."""
    pairs = zip(found, expected, strict=True)
    same = sum(ours.replace(" ", "") == theirs.replace(" ", "") for ours, theirs in pairs)
    assert same >= len(expected) - 1  # two captions of the same score may come in either order
    assert len(set(expected)) > len(expected) / 4


def beams(length_penalty, shortest, longest, *, until_k=False):
    return {
        "num_beams": 5, "length_penalty": length_penalty, "min_length": shortest, "max_length": longest,
        "early_stopping": until_k,
    }  # fmt: skip


SEARCHES = [
    ("git", "", beams(-0.5, 4, 12)),
    ("blip", "", beams(0.0, 5, 10)),
    ("blip", "a picture of", beams(1.0, 8, 15, until_k=True)),
    ("vit-gpt2", "", beams(1.0, 5, 12)),
    ("vit-bert", "", beams(0.7, 5, 12, until_k=True)),
    ("florence2", "<CAPTION>", {**FLORENCE2_GENERATION, "min_length": 8, "max_length": 20}),
    ("smolvlm", QUESTION, {"num_beams": 1, "first_sentence": True}),
    ("smolvlm", QUESTION, {"num_beams": 4, "first_sentence": True}),
]


@pytest.mark.parametrize(("name", "prompt", "search"), SEARCHES)
def test_captions_are_those_of_generate(name, prompt, search, tmp_path):
    model, search = write_model(tmp_path, name, search), dict(search)
    choices = SearchChoices(prompt=prompt if name in ("blip", "florence2") else None)
    if name == "smolvlm":
        choices = SearchChoices(search["num_beams"], 12, prompt, search["first_sentence"])
    trained = read_transformers_model(FORMATS.get(name, name), str(tmp_path), None, choices)
    frames = np.stack([trained.backbone.spec.preprocessing.apply(frame) for frame in FRAMES])
    found = trained.sentences(trained.caption_images(frames).words)
    assert_same(found, generated(model, tmp_path, name, prompt, search))


@pytest.mark.long
def test_a_bundle_says_what_generate_says(tmp_path, monkeypatch):
    search = {"first_sentence": True}
    model = write_model(tmp_path / "model", "smolvlm", search)
    arguments = ["smolvlm", tmp_path / "model", "-o", tmp_path / "bundle", "--storage", "float32", "--check-images", 1]
    options = ["--prompt", QUESTION, "--max-words", "12", "--first-sentence", "--no-static"]
    monkeypatch.setattr("sys.argv", ["import_checkpoint", *map(str, arguments), *options])
    assert import_checkpoint() == 0
    captioner = Captioner.from_bundle(tmp_path / "bundle", engine="onnxruntime-cpu", threads=1)
    found = [captioner.caption(frame).text for frame in FRAMES]
    assert_same(found, generated(model, tmp_path / "model", "smolvlm", QUESTION, search))
