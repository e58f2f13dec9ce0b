"""The decoders of the benchmark make the same captions as ours, and the widened model those of the trained one."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.decode import TOKENS, _best, agreement, main, over_batches, paper_sized, plot, widened
from benchmarks.torch_decoders import PublishedStyle, ReorderedCache, search_to_the_end
from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.tiny_model import tiny_captioner, tiny_smart, tiny_trained
from training.decoding.beam_search import Hypotheses, SearchSettings, beam_search
from training.models.captioner import Captioner, Visual
from training.models.smart import Smart

MAX_WORDS = 12


def ragged(seed: int, batch: int = 3) -> Visual:
    torch.manual_seed(seed)
    tokens, mask = torch.randn(batch, 9, 24) * 2, torch.arange(9)[None] < torch.randint(1, 10, (batch, 1))
    return Visual(tokens, mask, torch.rand(batch, 9, 2, 2).sort(dim=2).values.flatten(2))


@pytest.mark.parametrize("decoder", [PublishedStyle, ReorderedCache])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("beam_size", [1, 5])
def test_both_torch_decoders_find_the_beams_of_our_search(
    decoder: Callable[[Smart], Captioner], seed: int, beam_size: int
) -> None:
    model = tiny_smart(seed=seed % 2)
    visual = ragged(seed)
    found = search_to_the_end(decoder(model), visual, beam_size, MAX_WORDS)
    with torch.inference_mode():
        expected = beam_search(model, visual, SearchSettings(beam_size, MAX_WORDS, stop="all"))
    assert torch.equal(found.words, expected.words)
    torch.testing.assert_close(found.log_probabilities, expected.log_probabilities, atol=1e-4, rtol=0)
    torch.testing.assert_close(found.scores, expected.scores, atol=1e-4, rtol=0)
    torch.testing.assert_close(found.attention.sum(-1), torch.ones_like(found.attention[..., 0]), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("width", "own_width"), [(40, 24), (40, 56)], ids=["wider tokens", "narrower tokens"])
def test_a_widened_captioner_says_what_the_trained_one_says(width: int, own_width: int) -> None:
    small = tiny_smart(own_width)
    tokens = torch.randn(3, 9, own_width, generator=torch.Generator().manual_seed(0)) * 2
    large, wide = widened(small, tokens, vocabulary_size=200, token_width=width, token_count=12, d_ff=80)
    assert large.config == replace(small.config, vocabulary_size=200, token_width=width, d_ff=80)
    assert wide.tokens.shape == (3, 12, width)
    expected = search_to_the_end(small, Visual(tokens), 5, MAX_WORDS)
    found = search_to_the_end(large, wide, 5, MAX_WORDS)
    assert torch.equal(found.words, expected.words)
    torch.testing.assert_close(found.log_probabilities, expected.log_probabilities, atol=1e-5, rtol=0)


def test_widening_does_not_enlarge_the_range_of_any_weight_matrix() -> None:
    small = tiny_smart()
    large, _ = widened(small, ragged(0).tokens, vocabulary_size=200, token_width=40, token_count=12, d_ff=80)
    for name, value in small.state_dict().items():
        assert large.state_dict()[name].abs().max() == value.abs().max()


def test_agreement_counts_captions_that_differ() -> None:
    model = tiny_smart()
    inputs = [ragged(seed, batch=1) for seed in range(3)]

    def right(visual: Visual) -> Hypotheses:
        return search_to_the_end(PublishedStyle(model), visual, 5, MAX_WORDS)

    def wrong(visual: Visual) -> Hypotheses:
        found = search_to_the_end(model, visual, 5, MAX_WORDS)
        return found._replace(words=found.words + 4)

    found = agreement({"published_style": right, "wrong": wrong}, inputs)
    assert found["captions"] == 3
    assert found["published_style"] == {"same_captions": 3, "largest_log_probability_difference": 0.0}
    assert found["wrong"]["same_captions"] == 0


def test_the_best_caption_includes_its_end_token() -> None:
    words = np.array([[[5, 6, Vocabulary.end_id, 0]]])
    assert _best({"words": words, "log_probabilities": -words / 1.0})[0].tolist() == [5, 6, Vocabulary.end_id]


def test_a_plot_is_a_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib: the benchmarks extra")
    times = {"cpu_ms_median": 2.0, "cpu_ms_p5": 1.0, "cpu_ms_p95": 3.0}
    by_batch = {"1": times, "4": times}
    result = {"layers": {"up_down": by_batch}, "batches": {"onnx_fp32": by_batch}, "threads": 1, "date": "today"}
    path = tmp_path / "figure.png"
    plot({**result, "hardware": {"processor": "some"}}, path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_batches_are_timed_by_variant() -> None:
    taken = over_batches({"nothing": lambda given: None}, {1: 2, 2: 1})
    assert {batch: times["calls"] for batch, times in taken["nothing"].items()} == {"1": 2, "2": 1}


def test_a_plot_without_matplotlib_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # an import of it fails
    monkeypatch.setattr(sys, "argv", ["decode", "--quick", "--plot", str(tmp_path / "plot.png")])
    assert main() == 1
    said = capsys.readouterr().err
    assert "pip install '.[benchmarks]'" in said
    assert "measuring" not in said


def test_a_captioner_of_larger_frames_is_measured_with_frames_whose_tokens_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMART_CAPTION_DATA", str(tmp_path / "none"))
    path, trained = tmp_path / "best.safetensors", tiny_trained(class_names=("cup",))
    trained.set_image_size(288)
    trained.save(path)
    _, inputs, _ = paper_sized(path, 2)
    assert [visual.tokens.shape[:2] for visual in inputs] == [(1, TOKENS)] * 2


def test_checkpoints_that_cannot_be_widened_are_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, trained = tmp_path / "best.safetensors", tiny_trained()
    monkeypatch.setattr(sys, "argv", ["decode", "--quick", "--checkpoint", str(path)])
    for other, complaint in (
        (replace(trained, backbone=None), "was trained on stored features"),
        (replace(trained, family="up_down", captioner=tiny_captioner("up_down")), "is of the family up_down"),
    ):
        other.save(path)
        assert main() == 1
        assert complaint in capsys.readouterr().err
