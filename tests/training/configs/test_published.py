"""The experiment files of the papers say what the papers and their published codes state."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from training.configs.schema import ExperimentConfig
from training.engine.experiment import load_run
from training.models import FAMILIES

CONFIGS = Path(__file__).parents[3] / "training" / "configs"

ADAM = {"name": "adam", "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.0}
NOAM_ADAM = {**ADAM, "betas": [0.9, 0.98], "eps": 1e-9}
TRANSFORMER = {"d_model": 512, "heads": 8, "d_ff": 2048, "dropout": 0.1}

# M2: Sec. 4.2 and aimagelab/meshed-memory-transformer, train.py --batch_size 50 --m 40 --head 8 --warmup 10000
OF_M2: list[dict[str, Any]] = [
    {
        "objective": "cross_entropy", "schedule": "noam", "learning_rate": 1.0, "warmup_steps": 10000,
        "schedule_width": 512, "images_per_batch": 50, "pairs": True, "patience": 5, "clipping.by": "none",
        "optimizer": {**NOAM_ADAM, "eps": 1e-8}, "label_smoothing": 0.0,
    },
    {
        "objective": "self_critical", "schedule": "constant", "learning_rate": 5e-6, "images_per_batch": 10,
        "beam_size": 5, "patience": 5, "clipping.by": "none", "optimizer": ADAM, "reward_end_token": False,
        "reward_documents": "captions", "from_best": True,
    },
]  # fmt: skip

STATED: dict[str, tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = {
    # Model, data and features, phases.
    "smart_coco": (
        # SMArT, Sec. IV-C
        {**TRANSFORMER, "encoder_layers": 2, "decoder_layers": 2, "memory_slots": 40},
        {"vocabulary": "m2", "max_words": 20, "max_regions": 50, "beam_size": 5},
        OF_M2,
    ),
    "m2_coco": (
        {**TRANSFORMER, "encoder_layers": 3, "decoder_layers": 3, "memory_slots": 40, "gates": "sigmoid"},
        {"vocabulary": "m2", "max_words": 20, "max_regions": 50, "beam_size": 5},
        OF_M2,
    ),
    "transformer_coco": (
        {**TRANSFORMER, "encoder_layers": 3, "decoder_layers": 3},
        {"vocabulary": "m2", "max_words": 20, "max_regions": 50, "beam_size": 5},
        OF_M2,
    ),
    # yahoo/object_relation_transformer, neurips_training_runs.sh, "Self-Critical + Beamsize 5"
    "object_relation_coco": (
        {**TRANSFORMER, "encoder_layers": 6, "decoder_layers": 6, "token_dropout": 0.5, "legacy_extra_skip": True},
        {"vocabulary": "x_lan", "max_words": 17, "max_regions": 100, "beam_size": 5},
        [
            {
                "schedule": "noam", "learning_rate": 1.0, "warmup_steps": 10000, "images_per_batch": 15, "epochs": 30,
                "clipping.by": "value", "clipping.limit": 0.1, "optimizer": NOAM_ADAM, "pairs": False,
            },
            {
                "schedule": "exponential", "images_per_batch": 10, "epochs": 30, "clipping.by": "value",
                "clipping.limit": 0.1, "optimizer": ADAM, "reward_end_token": True,
                "learning_rate": pytest.approx(5e-4 * 0.8**10, rel=0.01), "final_share": pytest.approx(0.8**10, 0.01),
            },
        ],
    ),
    # Up-Down, Sec. 4.1, and peteanderson80/Up-Down-Captioner, experiments/caption_lstm
    "up_down_coco": (
        {"lstm_units": 1000, "attention_units": 512, "embedding_width": 1000, "dropout": 0.0},
        {"vocabulary": "x_lan", "minimum_count": 5, "max_words": 20, "max_regions": 100, "beam_size": 5},
        [
            {
                "schedule": "linear", "learning_rate": 0.01, "final_share": 0.0, "images_per_batch": 100, "pairs": True,
                "clipping.by": "norm", "clipping.limit": 10.0,
                "optimizer": {"name": "sgd", "betas": [0.9, 0.0], "eps": 1e-9, "weight_decay": 5e-4},
            },
            {
                "schedule": "exponential", "learning_rate": 0.001, "beam_size": 5, "reward_end_token": False,
                "images_per_batch": 96, "final_share": pytest.approx(0.99975**1180, rel=0.01),
            },
        ],
    ),
    # JDAI-CV/image-captioning, experiments/xlan and xlan_rl
    "x_lan_coco": (
        {
            "d_model": 1024, "heads": 8, "attention_units": 64, "encoder_layers": 4, "decoder_layers": 1,
            "activation": "celu", "alpha": 1.3, "dropout": 0.5, "attention_dropout": 0.1, "region_dropout": 0.3,
        },
        {"vocabulary": "x_lan", "max_words": 17, "max_regions": 100, "beam_size": 3},
        [
            {
                "epochs": 70, "schedule": "noam", "schedule_width": 1024, "warmup_steps": 10000, "images_per_batch": 10,
                "optimizer": NOAM_ADAM, "clipping.by": "norm", "clipping.limit": 0.5, "scheduled_sampling.maximum": 0.5,
                "scheduled_sampling.start": 6, "scheduled_sampling.every": 5, "scheduled_sampling.increase": 0.05,
            },
            {
                "epochs": 35, "learning_rate": 1e-5, "images_per_batch": 20, "optimizer": ADAM, "clipping.by": "value",
                "clipping.limit": 0.1, "reward_end_token": True,
            },
        ],
    ),
    # The same, experiments/xtransformer and xtransformer_rl
    "x_transformer_coco": (
        {
            "d_model": 768, "heads": 8, "d_ff": 3072, "attention_units": 48, "encoder_layers": 6, "decoder_layers": 6,
            "activation": "celu", "alpha": 1.3, "dropout": 0.5, "attention_dropout": 0.1, "region_dropout": 0.3,
            "word_dropout": 0.1,
        },
        {"vocabulary": "x_lan", "max_words": 17, "max_regions": 50, "beam_size": 2},
        [
            {
                "epochs": 70, "schedule": "noam", "schedule_width": 768, "warmup_steps": 10000, "images_per_batch": 40,
                "optimizer": {**NOAM_ADAM, "name": "radam"}, "clipping.by": "value", "clipping.limit": 0.1,
                "label_smoothing": 0.1,
            },
            {
                "epochs": 60, "learning_rate": 1e-5, "images_per_batch": 32, "optimizer": {**ADAM, "name": "radam"},
                "clipping.by": "value", "clipping.limit": 0.1,
            },
        ],
    ),
    # PMA-Net, Sec. 4.1 and 4.2
    "pma_net_coco": (
        {**TRANSFORMER, "encoder_layers": 6, "decoder_layers": 6, "prototypes": 1024, "bank_steps": 1500,
         "refreshes_per_epoch": 2, "clusters": "all_heads"},
        {"tokenizer": "bpe", "beam_size": 5},
        [
            {"schedule": "hold", "learning_rate": 2.5e-4, "warmup_steps": 1000, "hold_steps": 10000,
             "decay_steps": 15000, "final_share": pytest.approx(1e-5 / 2.5e-4), "optimizer.name": "lamb"},
            {"schedule": "constant", "learning_rate": 1e-6, "images_per_batch": 64, "beam_size": 5,
             "optimizer.name": "adam"},
        ],
    ),
}  # fmt: skip


def captioner_config(config: ExperimentConfig) -> Any:
    return FAMILIES[config.family].Config(vocabulary_size=10_000, token_width=2048, **config.model)


@pytest.mark.parametrize("name", STATED)
def test_an_experiment_of_a_paper_has_the_values_that_the_paper_and_its_code_state(name: str) -> None:
    config = load_run(CONFIGS / f"{name}.yaml")
    model, data, phases = STATED[name]
    found = asdict(captioner_config(config))
    assert {key: found[key] for key in model} == model
    found = {**asdict(config.features), **asdict(config.data), "beam_size": config.evaluation.beam_size}
    assert {key: found[key] for key in data} == data
    assert config.data.options["karpathy"]
    assert len(config.phases) == len(phases)
    for phase, stated in zip(config.phases, phases, strict=True):
        found = asdict(phase)
        for part in ("optimizer", "clipping", "scheduled_sampling"):
            found |= {f"{part}.{key}": value for key, value in found[part].items()}
        assert {key: found[key] for key in stated} == stated


@pytest.mark.parametrize("name", STATED)
def test_an_experiment_of_a_paper_builds_its_captioner(name: str) -> None:
    config = load_run(CONFIGS / f"{name}.yaml")
    with torch.device("meta"):
        captioner = FAMILIES[config.family](captioner_config(config))
    longest = max(config.data.max_words, config.data.max_caption_words)
    assert captioner.max_words is None or longest <= captioner.max_words
