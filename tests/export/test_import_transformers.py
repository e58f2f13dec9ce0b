"""Models in transformers' folders: what is read of them, and what is refused in one sentence."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoImageProcessor

from export.import_checkpoint import __main__ as command
from export.import_checkpoint.model_folder import GENERATION, read_weights
from export.import_checkpoint.transformers_models import SearchChoices, read_transformers_model
from tests.frames import blobs
from tests.published_folders import FLORENCE2_GENERATION, write_chat, write_published

AS_PUBLISHED = SearchChoices()
PREPROCESSOR = "preprocessor_config.json"
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}
GENERATION_SETTINGS = {
    "suppress_tokens": [3], "begin_suppress_tokens": [3], "bad_words_ids": [[3]], "sequence_bias": [[[3], -1.0]],
    "forced_bos_token_id": 0, "forced_eos_token_id": 2, "force_words_ids": [[3]], "diversity_penalty": 0.5,
    "renormalize_logits": True, "stop_strings": ["a"], "a_setting_of_tomorrow": 2,
}  # fmt: skip
"""Settings of `generate` that change the words, and that no bundle follows."""


def test_settings_of_the_folder_come_before_the_published_ones_and_the_users_before_both(tmp_path):
    write_published(tmp_path, "blip")
    settings = {"num_beams": 2, "max_length": 12, "min_length": 3, "length_penalty": 0.0}
    (tmp_path / "generation_config.json").write_text(json.dumps(settings))
    search = read_transformers_model("blip", str(tmp_path), None, SearchChoices(prompt="")).search
    assert (search.beam_size, search.max_words, search.min_words, search.length_penalty) == (2, 11, 3, 0.0)
    search = read_transformers_model("blip", str(tmp_path), None, SearchChoices(4, 9, "a dog")).search
    assert (search.beam_size, search.max_words) == (4, 9)


def test_a_search_that_never_stops_early_is_said_to_stop(tmp_path, capsys):
    write_published(tmp_path, "git")
    (tmp_path / "generation_config.json").write_text('{"early_stopping": "never"}')
    assert read_transformers_model("git", str(tmp_path), None, AS_PUBLISHED).search.finished == "apart"
    assert "early_stopping never" in capsys.readouterr().out


@pytest.mark.parametrize("saving", [{"max_shard_size": "10KB"}, {}], ids=["shards", "one file"])
@pytest.mark.parametrize("pickled", [False, True], ids=["safetensors", "bin"])
def test_weights_are_read_from_every_form_of_file(saving, pickled, tmp_path):
    write_published(tmp_path / "expected", "git")
    write_published(tmp_path, "git", **saving)
    if pickled:
        for path in tmp_path.glob("*.safetensors"):
            name = path.name.replace("model", "pytorch_model").replace(".safetensors", ".bin")
            torch.save(load_file(path), tmp_path / name)
            path.unlink()
        for path in tmp_path.glob("*.index.json"):
            text = path.read_text().replace("model-", "pytorch_model-").replace(".safetensors", ".bin")
            (tmp_path / "pytorch_model.bin.index.json").write_text(text)
            path.unlink()
    expected, found = load_file(tmp_path / "expected" / "model.safetensors"), read_weights(tmp_path)
    assert found.keys() == expected.keys()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in found.items())


def with_settings(name, **settings):
    """Change the settings of a file, also those of a part of a model."""

    def change(folder):
        path = folder / name
        before = json.loads(path.read_text()) if path.is_file() else {}
        for key, value in settings.items():
            before[key] = {**before.get(key, {}), **value} if isinstance(value, dict) else value
        path.write_text(json.dumps(before))

    return change


def with_tensors(**changes):
    """Change tensors, or leave out those that are None; dots in the names are written as two underscores."""

    def change(folder):
        state = load_file(folder / "model.safetensors")
        state |= {name.replace("__", "."): values for name, values in changes.items()}
        save_file({name: values for name, values in state.items() if values is not None}, folder / "model.safetensors")

    return change


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"do_normalize": False},
        {"do_rescale": False},
        {"do_rescale": False, "do_normalize": False},
        {"rescale_factor": 1 / 127.5, "image_mean": [1.0, 1.0, 1.0]},
    ],
)
def test_frames_are_those_of_the_published_processor(settings, tmp_path):
    write_published(tmp_path, "git")
    with_settings(PREPROCESSOR, **settings)(tmp_path)
    backbone = read_transformers_model("git", str(tmp_path), None, AS_PUBLISHED).backbone
    photograph = blobs(1, 60, 80)
    processor = AutoImageProcessor.from_pretrained(tmp_path, use_fast=False)
    expected = processor(images=[np.ascontiguousarray(photograph[..., ::-1])], return_tensors="pt")["pixel_values"]
    found = backbone.normalise(torch.from_numpy(backbone.spec.preprocessing.apply(photograph))[None])
    assert (found - expected).abs().max() < 1.01 / 255 / min(backbone.spec.std)


def test_what_florence2s_settings_leave_out_is_as_published(tmp_path):
    write_published(tmp_path, "florence2")
    (tmp_path / GENERATION).write_text(json.dumps(FLORENCE2_GENERATION))
    search = read_transformers_model("florence2", str(tmp_path), None, AS_PUBLISHED).search
    assert (search.beam_size, search.max_words, search.no_repeat_ngram) == (3, 32 - 3, 3)
    assert (search.finished, search.length_penalty, search.forced_end) == ("apart_until_k", 1.0, True)
    (tmp_path / GENERATION).write_text('{"decoder_start_token_id": 2, "max_new_tokens": 9}')
    search = read_transformers_model("florence2", str(tmp_path), None, AS_PUBLISHED).search
    assert (search.beam_size, search.max_words, search.forced_begin, search.forced_end) == (3, 9, (), False)


def test_the_end_token_is_that_of_the_generation_settings(tmp_path):
    write_published(tmp_path, "git")
    end = json.loads((tmp_path / "config.json").read_text())["eos_token_id"]
    with_settings("config.json", eos_token_id=1)(tmp_path)
    with_settings("generation_config.json", eos_token_id=[end])(tmp_path)
    trained = read_transformers_model("git", str(tmp_path), None, AS_PUBLISHED)
    assert "dog" in trained.vocabulary.words  # id 1 is the dog


def without(name):
    return lambda folder: (folder / name).unlink()


def text_model(folder):
    (folder / "config.json").write_text(json.dumps({"architectures": ["BertForMaskedLM"], "model_type": "bert"}))


def other_tokenizer(folder):
    words = (folder / "vocab.txt").read_text().split("\n")
    (folder / "vocab.txt").write_text("\n".join(words[:30]))


def missing_shard(folder):
    write_published(folder, "git", max_shard_size="10KB")
    (folder / "model.safetensors").unlink(missing_ok=True)
    next(folder.glob("model-00002-*")).unlink()


def index_without_names(folder):
    missing_shard(folder)
    (folder / "model.safetensors.index.json").write_text("[]")


def truncated(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without("config.json"), "has no config.json"),
        (text_model, "the architecture is BertForMaskedLM; known are GitForCausalLM"),
        (other_tokenizer, "has 30 pieces up to id 29, but the model's table has 40 words"),
        (without("vocab.txt"), "has no tokenizer.json, vocab.txt or vocab.json"),
        (missing_shard, "is missing, one of the"),
        (index_without_names, "model.safetensors.index.json: expected an object"),
        (with_tensors(output__bias=torch.full((40,), torch.inf)), "output.bias has values that are infinite or no num"),
        (with_tensors(git__encoder__layer__1__output__LayerNorm__bias=None), "lack git.encoder.layer.1.output.LayerNo"),
        (with_tensors(git__img_temperal_embedding__0=torch.zeros(1, 1, 24)), "have git.img_temperal_embedding.0"),
        (
            with_tensors(git__encoder__layer__0__attention__self__key__weight=torch.zeros(32, 16)),
            "git.encoder.layer.0.attention.self.key.weight has the shape (32, 16), which does not fit "
            "layers.0.self_attention.key.weight of the shape (32, 32)",
        ),
        (with_settings("config.json", num_hidden_layers=2), "have git.encoder.layer.2."),
        (with_settings("config.json", num_attention_heads=5), "d_model (32) must be a multiple of heads (5)"),
        (with_settings("config.json", hidden_act="silu"), "activation must be one of gelu"),
        (with_settings("config.json", position_embedding_type="relative_key"), "position_embedding_type is relative_k"),
        (with_settings("config.json", architectures=None), "the architecture is none"),
        (truncated, "is no safetensors file"),
        (without("model.safetensors"), "has no weights: model.safetensors or pytorch_model.bin"),
        (without(PREPROCESSOR), "preprocessor_config.json"),
        (with_settings(PREPROCESSOR, do_resize=False), "preprocessor_config.json sets do_resize to false"),
        (with_settings(PREPROCESSOR, do_pad=True), "preprocessor_config.json sets do_pad, which is not known here"),
        *(
            (with_settings(GENERATION, **{key: value}), f"generation_config.json has {key} {value}, which the search")
            for key, value in GENERATION_SETTINGS.items()
        ),
        (with_settings("config.json", suppress_tokens=[3]), "config.json has suppress_tokens [3], which the search"),
        (with_settings(GENERATION, eos_token_id=[3, 4]), "must name one eos_token_id, not [3, 4]"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_cannot_be_imported_is_refused_in_a_sentence(spoil, message, tmp_path, monkeypatch, capfd):
    write_published(tmp_path / "model", "git")
    spoil(tmp_path / "model")
    capfd.readouterr()
    refused_with(message, ["git", str(tmp_path / "model")], tmp_path, monkeypatch, capfd)


@pytest.mark.parametrize(
    ("call", "spoil", "message"),
    [
        ("florence2 --prompt here", with_settings(GENERATION), "--prompt must be one of <CAPTION>, <DETAILED_CAPTION>"),
        ("florence2", with_settings(GENERATION, forced_eos_token_id=5), "has forced_eos_token_id 5, which no"),
        ("florence2", with_settings(GENERATION, forced_bos_token_id=99), "has forced_bos_token_id 99, which no"),
        ("florence2", with_settings("config.json", vision_config={"model_type": "davit"}), "layout of Microsoft's own"),
        ("smolvlm", with_settings("config.json", text_config={"rope_parameters": YARN}), "are yarn"),
        ("smolvlm", with_settings("config.json", text_config={"mlp_bias": True}), "mlp_bias is True"),
        ("smolvlm", with_settings("config.json", text_config={"model_type": "mistral"}), "the decoder is mistral; k"),
        ("smolvlm", with_settings("config.json", architectures=["Blip2ForConditionalGeneration"]), "needs a Q-Former"),
        (
            "smolvlm",
            with_settings("config.json", architectures=["PaliGemmaForConditionalGeneration"]),
            "which needs Gemma's decoder",
        ),
        ("smolvlm", without("chat_template.jinja"), "copy chat_template.json"),
    ],
)
def test_what_cannot_be_imported_of_another_model_is_refused_in_a_sentence(
    call, spoil, message, tmp_path, monkeypatch, capfd
):
    model, (name, *options) = tmp_path / "model", call.split()
    (write_chat if name == "smolvlm" else lambda folder: write_published(folder, name))(model)
    if name == "florence2":
        (model / GENERATION).write_text(json.dumps(FLORENCE2_GENERATION))
    spoil(model)
    capfd.readouterr()
    refused_with(message, [name, str(model), *options], tmp_path, monkeypatch, capfd)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["git", "microsoft/git-base-coco"], "hf download microsoft/git-base-coco --local-dir FOLDER"),
        (["git", "no folder at all"], "is no folder, and no model of the local cache"),
        (["blip", "{model}"], "holds a GitForCausalLM; import it as git, not as blip"),
        (["git", "{model}", "--prompt", "xyzzy"], "has no pieces for the prompt 'xyzzy'"),
        (["git", "{model}", "--max-words", "60"], "--max-words must lie between 2 and"),
        (["git", "{model}", "--image-size", "33"], "--image-size: the size of frames must be a positive multiple of"),
    ],
)
def test_a_choice_that_does_not_fit_is_refused_in_a_sentence(arguments, message, tmp_path, monkeypatch, capfd):
    write_published(tmp_path / "model", "git")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    capfd.readouterr()
    refused_with(message, [text.format(model=tmp_path / "model") for text in arguments], tmp_path, monkeypatch, capfd)


def refused_with(message, arguments, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("sys.argv", ["import_checkpoint", *arguments, "-o", str(tmp_path / "bundle")])
    assert command.main() == 1
    error = capfd.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "bundle").exists()
