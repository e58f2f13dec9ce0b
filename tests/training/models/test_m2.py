"""M2's ablations, and a padding word inside a caption; test_smart.py compares M2 with the published code."""

import pytest
import torch

from export.captioner_graph import loop_form
from export.trace import trace_captioner
from smart_caption_ros.captioning.search import Search
from tests.export.graphs import assert_same_beams, hypotheses, session_of
from tests.tiny_model import TINY_SIZES, padded_logits, tiny_captions, tiny_visual
from training.decoding.beam_search import SearchSettings, beam_search
from training.models.captioner import PADDING_ID, Visual
from training.models.m2 import M2, M2Config

SIZES = {"vocabulary_size": 30, "token_width": 24, **TINY_SIZES["m2"]}
ABLATION = {
    "gates": "softmax", "encoder_layers": 3, "attention_on_attention": True, "decoder_layers": 1,
    "word_vector_width": 10, "memory_slots": 0, "mask_padding_words": True,
}  # fmt: skip
"""All switches at once, because a graph takes seconds to trace."""


def tiny_m2(**changes):
    torch.manual_seed(0)
    model = M2(M2Config(**{**SIZES, **changes}))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter += torch.randn_like(parameter) * 0.1
        model.word_embedding.weight *= 4
        model.word_projection.weight *= 2
        if model.word_vector_width:
            model.set_word_vectors(torch.randn(30, model.word_vector_width), torch.arange(30) % 2 == 0)
    return model.eval()


@pytest.mark.long
def test_the_graph_of_an_ablation_has_the_beams_of_torch():
    model = tiny_m2(**ABLATION)
    visual = tiny_visual(2, 7, seed=1, ragged=True)
    settings = SearchSettings(3, 6, stop="all")
    with torch.inference_mode():
        expected = beam_search(model, visual, settings)
    session = session_of(loop_form(trace_captioner(model, Search(3)), 6, early_exit=False))
    assert_same_beams(hypotheses(session, visual), expected)


def test_gates_may_be_a_softmax_over_the_levels():
    """Equations 6 to 8; test_smart.py compares the layer with sigmoid gates with the published code."""
    model = tiny_m2(gates="softmax", encoder_layers=3)
    layer = model.decoder_layers()[0]
    x, levels = torch.randn(2, 5, 32), [torch.randn(2, 7, 32) for _ in range(3)]
    with torch.inference_mode():
        attended, scores = [], []
        for level, gate in zip(levels, layer.gates, strict=True):
            image = layer.cross_attention.project_keys_values(level)
            attended.append(layer.cross_norm(x, layer.cross_attention.attend(x, image, None)[0]))
            scores.append(gate(torch.cat([x, attended[-1]], dim=-1)))
        total = sum(score.exp() for score in scores)
        mixed = sum(score.exp() / total * level for score, level in zip(scores, attended, strict=True)) / 3**0.5
        expected = layer.feed_forward_norm(mixed, layer.feed_forward(mixed))
        found, weights = layer.attend_image(x, layer.project_image(levels), None, weights=True)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert weights.shape == (2, 4, 5, 7)


def test_a_padding_word_inside_a_caption_is_invisible_to_later_words():
    model = tiny_m2(mask_padding_words=True)
    visual, words = tiny_visual(2, 6, seed=3), tiny_captions(2, 1, seed=3)
    words[..., 1:] = torch.randint(4, 30, words[..., 1:].shape)
    words[..., 3] = PADDING_ID
    other = tiny_m2(mask_padding_words=True)
    other.load_state_dict(model.state_dict())
    with torch.inference_mode():
        other.word_embedding.weight[PADDING_ID] += 5
        found, again = padded_logits(model, visual, words), padded_logits(other, visual, words)
        unmasked = padded_logits(tiny_m2(), visual, words)
    assert torch.equal(found[:, :, 4:], again[:, :, 4:])
    assert not torch.allclose(found[:, :, 4:], unmasked[:, :, 4:])
    assert not found[:, :, 3].any()


def test_attend_padding_reads_padded_regions():
    model, visual = tiny_m2(attend_padding=True), tiny_visual(3, 7, seed=4, ragged=True)
    words = tiny_captions(3, 1, seed=4)
    with torch.inference_mode():
        found = padded_logits(model, visual, words)
        assert torch.equal(found, padded_logits(tiny_m2(), visual._replace(mask=None), words))
        assert not torch.allclose(found, padded_logits(tiny_m2(), Visual(*visual), words))


def test_the_paper_s_size_has_the_published_number_of_parameters():
    with torch.device("meta"):
        sizes = [
            sum(parameter.numel() for parameter in M2(M2Config(10_201, 2048, **layers)).parameters())
            for layers in ({}, {"encoder_layers": 2, "decoder_layers": 2})
        ]
    # The published state dicts count the position table, 55 rows of 512, as a parameter.
    assert [size + 55 * 512 for size in sizes] == [38_439_424, 28_418_048]


def test_word_vectors_from_a_file_stay_as_they_are_and_the_others_learn():
    model = tiny_m2(word_vector_width=10)
    vectors, known = torch.randn(30, 10), torch.arange(30) % 3 > 0
    model.set_word_vectors(vectors, known)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    visual, words = tiny_visual(8, 6, seed=0), tiny_captions(8, 2, seed=0)
    before = model.word_embedding.weight.detach().clone()
    losses = []
    for _ in range(40):
        logits = padded_logits(model, visual, words[..., :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), words[..., 1:].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    assert torch.equal(model.word_vectors, vectors)
    used = torch.where(known[:, None], vectors, model.word_embedding.weight)
    with torch.inference_mode():
        x = torch.randn(2, 3, 32)
        expected = model.word_projection(x) @ used.T
        torch.testing.assert_close(model.project_words(x), expected, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(model.word_embedding.weight[~known], before[~known], atol=0.01)
