"""An imported SmolVLM answers a question about one frame with what transformers' ``generate`` answers."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoImageProcessor, AutoTokenizer, Idefics3Processor

from export.import_checkpoint.__main__ import main as import_checkpoint
from export.import_checkpoint.published import ImportCheckpointError
from export.import_checkpoint.transformers_models import SearchChoices, read_transformers_model
from smart_caption_ros.captioning import Captioner
from tests.frames import blobs
from tests.published_folders import CHAT_TEMPLATE, write_chat

FRAMES = [blobs(seed, 48 + seed % 3 * 16, 64) for seed in range(40)]
QUESTION = "What is there?"


def generated(model, folder, **search):
    """What transformers says of :data:`FRAMES`: the processor's one frame, template and decoding are its own."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    images = AutoImageProcessor.from_pretrained(folder, use_fast=False)
    processor = Idefics3Processor(images, tokenizer, model.model.image_seq_len, chat_template=CHAT_TEMPLATE)
    content = [{"type": "image"}, {"type": "text", "text": QUESTION}]
    text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    said = []
    for frame in FRAMES:
        rgb = np.ascontiguousarray(frame[..., ::-1])
        inputs = processor(text=text, images=[rgb], do_image_splitting=False, return_tensors="pt")
        with torch.inference_mode():
            words = model.generate(**inputs, do_sample=False, max_new_tokens=12, **search)[0]
        said.append(tokenizer.decode(words[inputs["input_ids"].shape[1] :], skip_special_tokens=True).strip())
    return said


def ends_of_sentences(folder):
    return {"eos_token_id": [2, *AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids([".", "!", "?"])]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smolvlm")
    model = write_chat(folder)
    with torch.no_grad():
        model.lm_head.weight[2] += 0.25  # captions of several lengths
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config["vision_config"]["model_type"] = "idefics3"  # as in the released files
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def model(folder):
    from transformers import Idefics3ForConditionalGeneration

    return Idefics3ForConditionalGeneration.from_pretrained(folder).eval()


@pytest.mark.parametrize(
    ("beams", "first_sentence"), [(1, False), (1, True), (4, True)], ids=["greedy", "greedy, a sentence", "beams"]
)
def test_captions_are_those_of_generate(folder, model, beams, first_sentence):
    choices = SearchChoices(beams, 12, QUESTION, first_sentence)
    trained = read_transformers_model("smolvlm", str(folder), None, choices)
    assert trained.backbone is not None
    frames = np.stack([trained.backbone.spec.preprocessing.apply(frame) for frame in FRAMES])
    found = trained.sentences(trained.caption_images(frames).words)
    expected = generated(model, folder, num_beams=beams, **(ends_of_sentences(folder) if first_sentence else {}))
    assert sum(ours == theirs for ours, theirs in zip(found, expected, strict=True)) >= len(FRAMES) - 1
    assert len(set(expected)) > 10


@pytest.mark.long
def test_a_bundle_says_what_generate_says(folder, model, tmp_path, monkeypatch):
    arguments = ["smolvlm", folder, "-o", tmp_path / "bundle", "--storage", "float32", "--prompt", QUESTION]
    arguments += ["--max-words", "12", "--check-images", "1", "--first-sentence", "--no-static"]
    monkeypatch.setattr("sys.argv", ["import_checkpoint", *map(str, arguments)])
    assert import_checkpoint() == 0
    captioner = Captioner.from_bundle(tmp_path / "bundle", engine="onnxruntime-cpu", threads=1)
    found = [captioner.caption(frame).text for frame in FRAMES]
    expected = generated(model, folder, **ends_of_sentences(folder))
    assert sum(ours == theirs for ours, theirs in zip(found, expected, strict=True)) >= len(FRAMES) - 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text_config": {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}}}, "are yarn"),
        ({"text_config": {"mlp_bias": True}}, "mlp_bias is True"),
        ({"text_config": {"model_type": "mistral"}}, "the decoder is mistral; known are llama"),
        ({"architectures": ["Blip2ForConditionalGeneration"]}, "which needs a Q-Former"),
        ({"architectures": ["PaliGemmaForConditionalGeneration"]}, "which needs Gemma's decoder"),
    ],
)
def test_a_model_that_computes_something_else_is_refused(change, message, folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    config = json.loads((folder / "config.json").read_text())
    config["text_config"] |= change.get("text_config", {})
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").write_text(json.dumps({**config, **change, "text_config": config["text_config"]}))
    with pytest.raises(ImportCheckpointError, match=message):
        read_transformers_model("smolvlm", str(tmp_path), None, SearchChoices())


def test_a_folder_without_a_chat_template_is_refused(folder, tmp_path):
    for path in folder.iterdir():
        if "chat_template" not in path.name:
            (tmp_path / path.name).symlink_to(path)
    with pytest.raises(ImportCheckpointError, match=r"copy chat_template\.json"):
        read_transformers_model("smolvlm", str(tmp_path), None, SearchChoices())
