"""The picture of the attention to PMA-Net's prototypes."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import tiny_trained
from training import memory_attention
from training.engine.trained_captioner import TrainedCaptioner
from training.memory_attention import draw_shares
from training.models.pma_net import PmaNet, PmaNetConfig

VOCABULARY = Vocabulary((*SPECIAL, *(f"w{index}" for index in range(4, 30))))
SIZES = {
    "vocabulary_size": 30, "d_model": 16, "heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1,
    "prototypes": 3, "bank_steps": 4, "bank_words": 5, "neighbours": 2,
}  # fmt: skip


def saved(path: Path, *, ready: bool) -> Path:
    torch.manual_seed(0)
    backbone = tiny_trained().backbone
    assert backbone is not None
    captioner = PmaNet(PmaNetConfig(token_width=backbone.token_width, **SIZES)).eval()  # type: ignore[arg-type]
    for memory in captioner.memories():
        memory.ready.fill_(ready)
        memory.prototype_keys.normal_()
    TrainedCaptioner("pma_net", captioner, backbone, VOCABULARY, {"name": "any"}).save(path)
    return path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr("sys.argv", ["memory_attention", *map(str, arguments)])
    return memory_attention.main()


def test_the_command_draws_a_row_for_each_photograph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    photographs = [tmp_path / name for name in ("a.png", "b.png")]
    for index, path in enumerate(photographs):
        cv2.imwrite(str(path), np.full((90, 120, 3), 100 * index, np.uint8))
    model = saved(tmp_path / "best.safetensors", ready=True)
    assert run(monkeypatch, model, *photographs, "-o", tmp_path / "out.png", "--max-words", 5) == 0
    picture = cv2.imread(str(tmp_path / "out.png"))
    assert picture.shape[0] == 2 * 240
    assert "b.png: w" in capsys.readouterr().out


def test_bars_are_as_high_as_the_shares() -> None:
    picture = draw_shares(["a", "dog"], [0.25, 0.75], np.zeros((100, 50, 3), np.uint8))
    blue = (picture[:, 50:].astype(int) == (180, 110, 70)).all(axis=2)
    heights = blue.sum(axis=0)
    assert sorted(set(heights.tolist())) == [0, 41, 121]


@pytest.mark.parametrize(("kind", "message"), [("empty", "has no prototypes yet"), ("smart", "only pma_net has")])
def test_a_model_without_prototypes_is_refused(
    kind: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "best.safetensors"
    if kind == "smart":
        tiny_trained().save(model)
    else:
        saved(model, ready=False)
    assert run(monkeypatch, model, tmp_path / "a.png", "-o", tmp_path / "out.png") == 1
    assert message in capsys.readouterr().err
