"""Decoders of published captioners compute the logits of transformers."""

import pytest
import torch

from export.import_checkpoint.published import ImportCheckpointError
from export.import_checkpoint.text_decoders import read_text_decoder, special_ids
from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.published_captioners import FRAME, QUESTION, TINY, UNKNOWN, image_tokens, published, published_logits
from training.engine.trained_captioner import TrainedCaptioner
from training.models.captioner import Visual

PROMPT = [1, 11, 12]
"""Of our ids, the begin token first."""


def order_of(config, words):
    """Published ids of our words, the special ones first."""
    special = [*special_ids(config), UNKNOWN]
    return [*special, *(word for word in range(words) if word not in special)]


def imported(config, state, prompt=None):
    words = config.get("vocab_size") or config.get("text_config", config.get("decoder", {}))["vocab_size"]
    order = order_of(config, words)
    question = [order.index(word) for word in QUESTION] if config["model_type"] == "florence2" else ()
    return read_text_decoder(config, state, order, prompt or (), question=question)


@pytest.mark.parametrize("prompt", [[], PROMPT], ids=["begin", "prompt"])
@pytest.mark.parametrize("name", TINY)
def test_logits_are_those_of_transformers(name, prompt):
    model = published(name)
    config = model.config.to_dict()
    found = imported(config, model.state_dict(), prompt)
    captioner = found.captioner
    random = torch.Generator().manual_seed(1)
    order = torch.tensor(order_of(config, captioner.config.vocabulary_size))[: captioner.config.vocabulary_size]
    pixels = torch.randn(2, 3, FRAME, FRAME, generator=random)
    captions = torch.randint(4, len(order), (2, 1, 8), generator=random)
    captions[..., 0] = Vocabulary.begin_id
    before = torch.tensor(prompt[:-1], dtype=torch.int64).expand(2, -1)
    with torch.no_grad():
        ours = captioner.decode_captions(captions, captioner.encode(Visual(image_tokens(model, pixels))))[:, 0]
        spoken = captions[:, 0].clone()
        spoken[:, 0] = (prompt or [Vocabulary.begin_id])[-1]
        theirs = published_logits(model, pixels, order[torch.cat([before, spoken], dim=1)])[:, len(before[0]) :]
    assert theirs.std() > 0.5
    torch.testing.assert_close(ours, theirs[..., order], atol=1e-4, rtol=0)


def test_a_tied_table_is_stored_once_and_an_untied_one_beside_it(tmp_path):
    sizes = {}
    for name in ("git", "git-untied"):
        model = published(name)
        found = imported(model.config.to_dict(), model.state_dict())
        vocabulary = Vocabulary(("<pad>", "<bos>", "<eos>", "<unk>", *(f"w{index}" for index in range(36))))
        kept = TrainedCaptioner(found.family, found.captioner, None, vocabulary, {})
        kept.save(tmp_path / name)
        again = TrainedCaptioner.load(tmp_path / name).captioner
        assert again.config == found.captioner.config
        sizes[name] = sum(parameter.numel() for parameter in again.parameters())
    assert sizes["git-untied"] - sizes["git"] == 40 * 32


@pytest.mark.parametrize("kept", ["git.embeddings.word_embeddings.weight", "output.weight"])
def test_a_shared_table_may_have_either_name(kept):
    model = published("git")
    state = model.state_dict()
    table = state["output.weight"]
    for name in ("git.embeddings.word_embeddings.weight", "output.weight"):
        if name != kept:
            del state[name]
    captioner = imported(model.config.to_dict(), state).captioner
    assert captioner.config.tied
    assert torch.equal(captioner.word_projection.weight[0], table[0])


def test_a_decoder_that_is_neither_gpt2_nor_bert_is_refused():
    config = published("vit-gpt2").config.to_dict()
    config["decoder"] = {"model_type": "trocr", "vocab_size": 40}
    with pytest.raises(ImportCheckpointError, match="the decoder is trocr; known are gpt2 and bert"):
        special_ids(config)
