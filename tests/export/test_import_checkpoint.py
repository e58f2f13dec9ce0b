"""Published checkpoints through the command: graphs and checkpoint as the published code, and what is refused."""

import json
import re

import numpy as np
import onnxruntime
import pytest
import torch

from export.import_checkpoint import __main__ as command
from export.import_checkpoint.m2 import read_m2
from export.import_checkpoint.published import ImportCheckpointError, ImportChoices, PublishedModel, read_words
from export.import_checkpoint.region_bundle import trained_on_tokens_of
from export.vision import visual_by
from smart_caption_ros.captioning import Bundle, BundleError
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.frames import blobs
from tests.training.models.published_m2 import published_state, published_words
from training.engine.checkpoint_captions import DatasetCaptioner
from training.models import FAMILIES
from training.models.captioner import Visual
from training.models.m2 import M2Config


@pytest.fixture
def case(reference_dir):
    return dict(np.load(reference_dir / "parity" / "m2_2layer_m5.npz"))


@pytest.fixture
def files(case, tmp_path):
    """The checkpoint, as the published training script writes it, and its vocabulary."""
    random_state = np.random.RandomState(0).get_state()
    saved = {"state_dict": published_state(case), "numpy_rng_state": random_state, "best_cider": np.float64(1.3)}
    torch.save(saved, tmp_path / "m2.pth")
    (tmp_path / "words.txt").write_text("\n".join(published_words(case)) + "\n", encoding="utf-8")
    return tmp_path / "m2.pth", tmp_path / "words.txt"


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["import_checkpoint", *map(str, arguments)])
    return command.main()


@pytest.mark.needs_data
def test_the_bundle_has_the_beams_and_log_probabilities_of_the_published_code(case, files, tmp_path, monkeypatch):
    file, words = files
    bundle = tmp_path / "bundle"
    steps = case["beam_tokens"].shape[2]
    assert run(monkeypatch, "m2", file, "--vocabulary", words, "--heads", 4, "--max-words", steps, "-o", bundle) == 0
    vocabulary, published = Vocabulary.load(bundle / "vocabulary.txt"), published_words(case)
    theirs = np.array([published.index(word) for word in vocabulary.words])
    mask = np.arange(12)[None] < case["counts"][:, None]
    session = onnxruntime.InferenceSession(bundle / "captioner.onnx", providers=["CPUExecutionProvider"])
    found, chosen = session.run(["words", "log_probabilities"], {"tokens": case["features"], "token_mask": mask})
    ended = (found == Vocabulary.end_id).cumsum(-1) - (found == Vocabulary.end_id) > 0
    np.testing.assert_array_equal(np.where(ended, 0, theirs[found]), case["beam_tokens"])
    np.testing.assert_allclose(chosen, case["beam_logprobs"], atol=1e-4)

    trained = DatasetCaptioner(bundle / "captioner.safetensors").trained
    assert trained.vocabulary == vocabulary
    ours = torch.from_numpy(np.argsort(theirs)[case["captions"]])
    with torch.inference_mode():
        encoded = trained.captioner.encode(Visual(torch.from_numpy(case["features"]), torch.from_numpy(mask)))
        logits = trained.captioner.decode_captions(ours[:, None], encoded)[:, 0]
    real = case["captions"] != published.index("<pad>")
    np.testing.assert_allclose(logits.log_softmax(-1).numpy()[real], case["tf_logprobs"][..., theirs][real], atol=1e-4)
    with pytest.raises(BundleError, match="stored region features"):
        Bundle.load(bundle)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["git", "--heads", "3"], "--heads: is for m2, object-relation"),
        (["m2", "--prompt", "a"], "--prompt: is for git, blip"),
        (["m2", "--precision", "int8"], "--precision: is for bundles with --vision"),
        (["m2", "--vision", "b", "--features", "f"], "--features: is for bundles without --vision"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(options, message, tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, *options, "file", "-o", tmp_path / "bundle") == 2
    assert message in capsys.readouterr().err


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decoder.layers.1.fc_alpha2.weight": None}, "lack decoder.layers.1.fc_alpha2.weight"),
        ({"decoder.layers.0.enc_att.layer_norm.bias": torch.zeros(33)}, "decoder.layers.0.enc_att.layer_norm.bias has"),
        ({"decoder.layers.0.fc_alpha9.weight": torch.zeros(1)}, "decoder.layers.0.fc_alpha9"),
        ({"encoder.layers.0.mhatt.attention.m_v": torch.zeros(5, 32)}, "encoder.layers.0.mhatt.attention.m_v has"),
        ({"decoder.fc.weight": torch.zeros(60, 32)}, "decoder.fc.weight has the shape (60, 32)"),
        ({"decoder.word_emb.weight": torch.zeros(60, 32)}, "decoder.word_emb.weight has 60 words, the vocabulary 61"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_state_dict_that_does_not_fit_is_refused_with_its_first_differing_parameter(
    change, message, case, files, tmp_path, monkeypatch, capsys
):
    state = {**published_state(case), **change}
    torch.save({name: value for name, value in state.items() if value is not None}, tmp_path / "wrong.pth")
    arguments = ("m2", tmp_path / "wrong.pth", "--vocabulary", files[1], "--heads", 4, "-o", tmp_path / "bundle")
    assert run(monkeypatch, *arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "bundle").exists()


class Harmful:
    def __reduce__(self):
        return print, ("executed",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"text", "is not a file of tensors"),
        (Harmful(), "is not a file of tensors"),
        ({"epoch": 3}, "has no state dict"),
        ({"encoder.fc.weight": torch.zeros(3, 2)}, "lacks decoder.word_emb.weight"),
        (None, "No such file"),
    ],
    ids=["text", "code", "no state dict", "another model", "missing"],
)
def test_a_file_without_a_published_state_dict_is_refused_in_a_sentence(
    content, message, tmp_path, monkeypatch, capsys
):
    file = tmp_path / "file.pth"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif content is not None:
        torch.save(content, file)
    (tmp_path / "words.json").write_text(json.dumps({"itos": ["<unk>", "<pad>", "<bos>", "<eos>", "a"]}))
    assert run(monkeypatch, "m2", file, "--vocabulary", tmp_path / "words.json", "-o", tmp_path / "bundle") == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert "executed" not in captured.out


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("listing", "family"), [("m2_3layer", "m2"), ("m2_2layer_meshed", "m2"), ("smart_2layer", "smart")]
)
def test_every_name_and_shape_of_a_full_sized_state_dict_is_mapped(listing, family, reference_dir, data_dir):
    state = {}
    for line in (reference_dir / "state_dicts" / f"{listing}.txt").read_text().splitlines():
        if found := re.match(r"(\S+) \(([\d, ]*)\) torch\.(\w+)$", line):
            shape = [int(size) for size in found[2].split(",") if size.strip()]
            state[found[1]] = torch.empty(shape, dtype=getattr(torch, found[3]), device="meta")
    model = read_m2(state, read_words(data_dir / "lexicon" / "m2_vocab.json"), ImportChoices())
    with torch.device("meta"):
        captioner = FAMILIES[model.family](model.config)
    ours = {name: tensor.shape for name, tensor in captioner.state_dict().items()}
    assert model.family == family
    assert {source.ours for source in model.sources} == ours.keys()
    assert {*(source.theirs for source in model.sources), *model.ignored} == state.keys()
    for source in model.sources:
        assert state[source.theirs].numel() == ours[source.ours].numel(), source
    assert model.vocabulary.words[:5] == ("<pad>", "<bos>", "<eos>", "<unk>", "a")
    assert "<space>" in model.vocabulary.words


def test_a_checkpoint_may_take_the_tokens_of_a_bundles_vision_graph(tiny_bundle):
    words = Vocabulary((*SPECIAL, *(f"w{index}" for index in range(20))))
    sizes = {"d_model": 16, "heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1, "memory_slots": 2}
    model = PublishedModel(
        "m2", M2Config(len(words), 8, **sizes), words, (), data={"dataset": "coco", "vocabulary": "spacy"}
    )
    torch.manual_seed(0)
    captioner = FAMILIES["m2"](model.config).eval()
    lender = Bundle.load(tiny_bundle)
    trained = trained_on_tokens_of(lender, model, captioner, name="mine", beam_size=3, max_words=6)
    assert (trained.search.beam_size, trained.search.max_words) == (3, 6)
    with torch.inference_mode():
        said = trained.words(trained.caption(visual_by(lender)(lender.preprocessing.apply(blobs(1))[None])))[0]
    assert 1 <= len(said) <= 6
    wider = FAMILIES["m2"](M2Config(len(words), 9, **sizes))
    with pytest.raises(ImportCheckpointError, match="makes tokens 8 wide, but the checkpoint takes features 9 wide"):
        trained_on_tokens_of(lender, model, wider, name="mine", beam_size=3, max_words=6)
