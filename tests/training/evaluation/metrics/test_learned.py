"""CLIP-S, PAC-S and BERT-S on tiny random networks, compared with computations that share no code with them."""

import json

import numpy as np
import pytest
import torch

from training.evaluation.comparison import Comparison, ModelCaptions
from training.evaluation.metrics.learned import BertScore, ClipScore, load_network
from training.evaluation.metrics.metric import MetricError
from training.evaluation.references import References

transformers = pytest.importorskip("transformers")

SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
WORDS = [*SPECIAL, "a", "photo", "depicts", "dog", "cat", "runs", "red", "two", "on", "grass"]


def save_tokenizer(folder, longest):
    """Write a tokeniser of whole words that adds [CLS] and [SEP]."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]",
        model_max_length=longest,
    ).save_pretrained(folder)  # fmt: skip


def ids(text):
    return [1, *(WORDS.index(word) if word in WORDS else 3 for word in text.lower().split()), 2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folders with the weights of the three metrics."""
    root = tmp_path_factory.mktemp("metrics")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = {**sizes, "vocab_size": len(WORDS), "max_position_embeddings": 12, "eos_token_id": 2, "bos_token_id": 1}
    vision = {**sizes, "image_size": 8, "patch_size": 4}
    clip = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=6)
    for name in ("clip_s", "pac_s"):
        transformers.CLIPModel(clip).save_pretrained(root / name)
        save_tokenizer(root / name, 12)
    bert = transformers.BertConfig(vocab_size=len(WORDS), max_position_embeddings=20, **sizes)
    transformers.BertModel(bert).save_pretrained(root / "bert_s")
    save_tokenizer(root / "bert_s", 20)
    return root


def square(image):
    """An image of CLIP's own size, which resizing and cropping leave as it is."""
    return np.random.default_rng(int(image)).integers(0, 256, (8, 8, 3), np.uint8)


@pytest.mark.parametrize(("name", "scale"), [("clip_s", 2.5), ("pac_s", 2.0)])
def test_clip_s_and_pac_s_are_scaled_cosines_of_photograph_and_caption(folder, name, scale):
    captions = ["a dog runs", "two", "a red cat on grass a red cat on grass"]
    score = ClipScore(folder / name)
    metric = score.metric(score.embed_images(["1", "2", "3"], square), captions)
    model = transformers.CLIPModel.from_pretrained(folder / name).eval()
    mean, std = np.array([[0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]])
    expected = []
    for image, caption in zip("123", captions, strict=True):
        pixels = (square(image)[..., ::-1] / 255 - mean) / std
        cut = ids(f"a photo depicts {caption}")
        cut = cut if len(cut) <= 12 else [*cut[:11], 2]
        with torch.no_grad():
            found = model(
                input_ids=torch.tensor([cut]),
                pixel_values=torch.tensor(pixels.transpose(2, 0, 1)[None], dtype=torch.float32),
            )
        expected.append(scale * max(float(found.image_embeds[0] @ found.text_embeds[0]), 0))
    assert metric.name == name
    np.testing.assert_allclose(metric.per_image, expected, atol=1e-5)
    assert metric.value == pytest.approx(np.mean(expected), abs=1e-5)
    assert max(expected) > 0


@pytest.mark.parametrize("idf", [False, True])
def test_bert_s_is_the_best_f1_of_greedily_matched_tokens(folder, idf):
    captions = ["a dog runs", "two cat", ""]
    references = [["a red dog", "two dog on grass"], ["a cat"], ["a dog"]]
    metric = BertScore(folder / "bert_s", idf=idf).metric(captions, references)
    model = transformers.BertModel.from_pretrained(folder / "bert_s").eval()
    documents = [ids(text) for group in references for text in group]

    def vectors(text):
        with torch.no_grad():
            layer = model(torch.tensor([ids(text)]), output_hidden_states=True).hidden_states[2][0].numpy()
        return layer / np.linalg.norm(layer, axis=1, keepdims=True)

    def weight(index):
        if idf:
            return float(np.log((len(documents) + 1) / (sum(index in document for document in documents) + 1)))
        return float(index not in (1, 2))

    def mean(best, tokens):
        total = sum(map(weight, tokens))
        return sum(weight(index) * best(place) for place, index in enumerate(tokens)) / total if total else 0.0

    def f1(caption, reference):
        ours, theirs = vectors(caption), vectors(reference)
        precision = mean(lambda place: max(float(ours[place] @ other) for other in theirs), ids(caption))
        recall = mean(lambda place: max(float(theirs[place] @ other) for other in ours), ids(reference))
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    expected = [max(f1(said, text) for text in group) for said, group in zip(captions, references, strict=True)]
    np.testing.assert_allclose(metric.per_image, expected, atol=1e-5)


def test_a_folder_without_weights_is_named(tmp_path):
    with pytest.raises(MetricError, match=r"needs weights at .*clip_s"):
        ClipScore(tmp_path / "clip_s")
    (tmp_path / "bert_s").mkdir()
    (tmp_path / "bert_s" / "config.json").write_text(json.dumps({"model_type": "none"}))
    with pytest.raises(MetricError, match=r"bert_s has no AutoModel that transformers reads"):
        load_network(tmp_path / "bert_s", "AutoModel")


@pytest.mark.long
def test_models_are_compared_by_the_metrics_whose_weights_are_there(folder, tmp_path):
    (tmp_path / "clip_s").symlink_to(folder / "clip_s")
    (tmp_path / "bert_s").symlink_to(folder / "bert_s")
    human = {image: ["a dog runs", "a red dog"] for image in "123"}
    domains = {"1": "near", "2": "far", "3": "near"}
    references = References("any", human, square, domains=domains)
    models = {name: ModelCaptions(name, dict.fromkeys("123", name)) for name in ("a dog runs", "two cat")}
    evaluation = Comparison.of(references, models, weights=tmp_path, rule="words").evaluation
    first, second = evaluation.models.values()
    assert first.metrics["bert_s"].value == pytest.approx(1)
    assert second.metrics["bert_s"].value < 1
    near = evaluation.domains["near"].models["two cat"].metrics["clip_s"]
    np.testing.assert_array_equal(near.per_image, second.metrics["clip_s"].per_image[[0, 2]])
    assert "needs weights at" in evaluation.unavailable["pac_s"]
    assert "clip_s" not in evaluation.unavailable
    alone = Comparison.of(References("any", human, None), models, weights=tmp_path, rule="words").evaluation
    assert "needs the photographs" in alone.unavailable["clip_s"]
