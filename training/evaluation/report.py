"""Reports of an evaluation: a table for the terminal, and JSON."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from training.evaluation.metrics.bootstrap import CONFIDENCE, Bootstrap, Interval
from training.evaluation.metrics.scoring import Evaluation, ModelScores

TITLES = {
    "bleu_1": "BLEU-1", "bleu_2": "BLEU-2", "bleu_3": "BLEU-3", "bleu_4": "BLEU-4", "meteor": "METEOR",
    "rouge_l": "ROUGE-L", "cider": "CIDEr", "spice": "SPICE", "cider_d": "CIDEr-D", "chair_i": "CHAIR-i",
    "chair_s": "CHAIR-s",
}  # fmt: skip
"""Headings of the metrics, in the order of the table's rows."""
LOW_IS_GOOD = ("chair_i", "chair_s")
"""Metrics whose lower values are better."""


def as_table(evaluation: Evaluation, bootstrap: Bootstrap, title: str) -> RenderableType:
    """Build a table with a row per metric and a column per model.

    Each value has its interval; from the second model on, a second line gives the difference to the first model.
    """
    models = evaluation.models
    table = Table(title=title, title_justify="left", show_edge=False)
    table.add_column("")
    for name in models:
        table.add_column(Text(name), justify="right", no_wrap=True)
    baseline = next(iter(models.values()))
    for key, heading in TITLES.items():
        if key in evaluation.unavailable:
            table.add_row(heading, *["not available"] * len(models))
            continue
        if key not in baseline.metrics:
            continue
        cells = []
        for scores in models.values():
            metric = scores.metrics[key]
            interval = bootstrap.interval(metric)
            cell = f"{_number(metric.value)} [{_number(interval.low)}, {_number(interval.high)}]"
            if scores is not baseline:
                difference = bootstrap.difference(metric, baseline.metrics[key])
                low, high = difference.interval.low, difference.interval.high
                mark = "*" if difference.is_certain else " "
                cell += f"\n{difference.value:+.4f} [{low:+.4f}, {high:+.4f}]{mark}"
            cells.append(Text(cell))
        table.add_row(f"{heading} (low is good)" if key in LOW_IS_GOOD else heading, *cells)
    table.add_section()
    for heading, show in (
        ("self-BLEU", lambda scores: "-" if scores.self_bleu is None else _number(scores.self_bleu)),
        ("distinct words", lambda scores: str(scores.vocabulary_size)),
        ("words a caption", lambda scores: f"{scores.mean_words:.2f}"),
    ):
        table.add_row(heading, *(show(scores) for scores in models.values()))
    percent = f"{100 * CONFIDENCE:g} %"
    notes = [f"{percent} intervals by {bootstrap.resamples} resamples of the images, seed {bootstrap.seed}"]
    if len(models) > 1:
        notes.append(f"second line: less {next(iter(models))}, paired by image; * where the interval leaves 0 out")
    notes.append(f"tokeniser: {evaluation.tokeniser}")
    notes += [f"{TITLES.get(key, 'PTB tokeniser')} not available: {why}" for key, why in evaluation.unavailable.items()]
    return Group(table, Text("\n".join(notes)))


def as_document(
    evaluation: Evaluation, bootstrap: Bootstrap, captions: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Build a JSON document of the scores, intervals and values of every image; undefined values are null.

    Args:
        evaluation: the scores.
        bootstrap: with the evaluation's number of images.
        captions: captions by model and image, as written.
    """
    baseline = next(iter(evaluation.models))
    return {
        "images": len(evaluation.images),
        "tokeniser": evaluation.tokeniser,
        "bootstrap": {
            "resamples": bootstrap.resamples, "confidence": CONFIDENCE, "seed": bootstrap.seed,
        },
        "not_available": evaluation.unavailable,
        "models": {
            name: {
                "scores": {key: _json_number(metric.value) for key, metric in scores.metrics.items()},
                "intervals": {key: _bounds(bootstrap.interval(metric)) for key, metric in scores.metrics.items()},
                **({} if name == baseline else {"differences": _differences(evaluation, bootstrap, name, baseline)}),
                "self_bleu": scores.self_bleu,
                "vocabulary_size": scores.vocabulary_size,
                "mean_words": scores.mean_words,
                "per_image": _per_image(evaluation.images, scores, captions[name]),
            }
            for name, scores in evaluation.models.items()
        },
    }  # fmt: skip


def _differences(evaluation: Evaluation, bootstrap: Bootstrap, name: str, baseline: str) -> dict[str, Any]:
    found: dict[str, Any] = {"to": baseline}
    for key, metric in evaluation.models[name].metrics.items():
        difference = bootstrap.difference(metric, evaluation.models[baseline].metrics[key])
        found[key] = {"difference": _json_number(difference.value), "interval": _bounds(difference.interval)}
    return found


def _per_image(images: list[str], scores: ModelScores, captions: Mapping[str, str]) -> dict[str, Any]:
    return {
        image: {
            "caption": captions[image],
            **{key: _json_number(metric.per_image[row]) for key, metric in scores.metrics.items()},
        }
        for row, image in enumerate(images)
    }


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _json_number(value: float | np.floating[Any]) -> float | None:
    return None if math.isnan(value) else float(value)


def _bounds(interval: Interval) -> list[float | None]:
    return [_json_number(interval.low), _json_number(interval.high)]
