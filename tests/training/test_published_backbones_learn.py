"""Captioners on published backbones: trained by the command on frozen and cached tokens, views, and end to end."""

import pytest

from tests.tiny_backbones import save_backbone
from tests.training.commands import run_here
from tests.training.small_flickr8k import write_config
from training.checkpoint import load_checkpoint, under_prefix
from training.engine.trained_captioner import TrainedCaptioner
from training.train import main as train
from training.vision.released_weights import open_backbone


def phase(name, **options):
    return {
        "name": name, "epochs": 2, "learning_rate": 5e-3, "schedule": "constant", "images_per_batch": 4, **options,
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["clip", "timm_vit"])
def test_the_loss_falls_and_the_backbone_learns_in_the_phase_that_says_so(kind, data, tmp_path):
    name = save_backbone(kind, tmp_path / "published")
    phases = [
        phase("frozen", epochs=4),
        phase("views", crop=0.8, epochs=1),
        phase("end_to_end", crop=0.8, backbone_learning_rate=1e-3, backbone_layer_decay=0.5),
    ]
    config = write_config(tmp_path / "config.yaml", backbone=name, image_size=0, phases=phases)
    done = run_here(train, config, "--run", tmp_path / "run", data=data)
    assert done.returncode == 0, done.stderr
    tensors, state = load_checkpoint(tmp_path / "run" / "checkpoint.safetensors")
    losses = [entry["loss"] for entry in state["history"]]
    assert losses[-1] < 0.7 * losses[0]
    published = open_backbone(name, data)
    trained = TrainedCaptioner.load(tmp_path / "run" / "best.safetensors")
    assert trained.backbone.spec == published.spec
    learnt = under_prefix("backbone", tensors)
    moved = [float((learnt[key] - value).abs().mean()) for key, value in published.state_dict().items() if "mlp" in key]
    assert min(moved) > 0
    assert max(moved[: len(moved) // 2]) < max(moved[len(moved) // 2 :]), "the first layer learns at half the rate"


def test_early_layers_of_a_published_backbone_cannot_be_kept_apart(data, tmp_path):
    name = save_backbone("clip", tmp_path / "published")
    phases = [phase("coarse", backbone_learning_rate=1e-3, backbone_coarse_only=True)]
    config = write_config(tmp_path / "config.yaml", backbone=name, image_size=0, phases=phases)
    done = run_here(train, config, "--run", tmp_path / "run", data=data)
    assert (done.returncode, "backbone_coarse_only" in done.stderr) == (1, True)
