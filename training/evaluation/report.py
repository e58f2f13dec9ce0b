"""Reports of an evaluation: a table for the terminal, and JSON."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from training.evaluation.metrics.bootstrap import CONFIDENCE, Bootstrap, Interval
from training.evaluation.metrics.diversity import Diversity
from training.evaluation.metrics.metric import Metric
from training.evaluation.metrics.scoring import Evaluation, ModelScores

TITLES = {
    "bleu_1": "BLEU-1", "bleu_2": "BLEU-2", "bleu_3": "BLEU-3", "bleu_4": "BLEU-4", "meteor": "METEOR",
    "rouge_l": "ROUGE-L", "cider": "CIDEr", "spice": "SPICE", "cider_d": "CIDEr-D", "recall_1": "R@1 (tf-idf)",
    "recall_5": "R@5 (tf-idf)", "cider_btw": "CIDErBtw", "objects_supported": "objects supported",
    "captions_supported": "captions supported", "chair_i": "CHAIR-i", "chair_s": "CHAIR-s",
    "captions_with_absent": "captions with absent", "named_things_there": "named things there",
    "clip_s": "CLIP-S", "pac_s": "PAC-S", "bert_s": "BERT-S",
}  # fmt: skip
"""Headings of the metrics, in the order of the table's rows."""
DOMAIN_ROWS = (
    "bleu_4",
    "meteor",
    "cider",
    "recall_5",
    "cider_btw",
    "objects_supported",
    "captions_with_absent",
    "named_things_there",
)
"""Metrics that the table has for each domain."""
LOW_IS_GOOD = ("cider_btw", "chair_i", "chair_s", "captions_with_absent")
"""Metrics whose lower values are better."""


def as_table(evaluation: Evaluation, bootstrap: Bootstrap, title: str) -> RenderableType:
    """Build a table with a row per metric and a column per model, and a section for each domain.

    Each value has its interval; from the second model on, a second line gives the difference to the first model.
    """
    models = evaluation.models
    table = Table(show_edge=False)
    table.add_column("")
    for name in models:
        table.add_column(Text(name), justify="right", no_wrap=True)
    _add_metrics(table, evaluation, bootstrap, TITLES)
    table.add_section()
    _add_diversity(table, evaluation, DIVERSITY_ROWS)
    for domain, part in evaluation.domains.items():
        table.add_section()
        table.add_row(Text(f"{domain}: {len(part.images)} images", style="bold"))
        _add_metrics(table, part, bootstrap.of_size(len(part.images)), DOMAIN_ROWS)
        _add_diversity(table, part, DOMAIN_DIVERSITY_ROWS)
    return Group(Text(title, style="italic"), table, Text("\n".join(_notes(evaluation, bootstrap))))


def _add_metrics(table: Table, evaluation: Evaluation, bootstrap: Bootstrap, keys: Iterable[str]) -> None:
    baseline, *others = evaluation.models.values()
    for key in keys:
        if key not in baseline.metrics:
            continue
        cells = [_cell(baseline.metrics[key], bootstrap)]
        for scores in others:
            difference = bootstrap.difference(scores.metrics[key], baseline.metrics[key])
            low, high = difference.interval
            mark = "*" if difference.is_certain else " "
            interval = f" [{low:+.4f}, {high:+.4f}]{mark}" if bootstrap.resamples else ""
            cells.append(f"{_cell(scores.metrics[key], bootstrap)}\n{difference.value:+.4f}{interval}")
        heading = f"{TITLES[key]} (low is good)" if key in LOW_IS_GOOD else TITLES[key]
        table.add_row(heading, *map(Text, cells))


def _cell(metric: Metric, bootstrap: Bootstrap) -> str:
    if not bootstrap.resamples:
        return _number(metric.value)
    return f"{_number(metric.value)} [{', '.join(map(_number, bootstrap.interval(metric)))}]"


DIVERSITY_ROWS: dict[str, Callable[[Diversity], str]] = {
    "different captions": lambda found: f"{found.different} of {found.captions}",
    "distinct words": lambda found: str(found.vocabulary_size),
    "commonest caption": lambda found: f"{found.commonest_count} times",
    "longest run of one caption": lambda found: str(found.longest_run),
    "words a caption": lambda found: f"{found.mean_words:.2f}",
    "self-BLEU": lambda found: "-" if found.self_bleu is None else _number(found.self_bleu),
}
"""Rows of the diversity of all captions, by heading: functions from the measures to the text of a cell."""
DOMAIN_DIVERSITY_ROWS = ("different captions", "distinct words")
"""Headings of :data:`DIVERSITY_ROWS` that the table has for each domain."""


def _add_diversity(table: Table, evaluation: Evaluation, headings: Iterable[str]) -> None:
    for heading in headings:
        show = DIVERSITY_ROWS[heading]
        table.add_row(heading, *(show(scores.diversity) for scores in evaluation.models.values()))


def _notes(evaluation: Evaluation, bootstrap: Bootstrap) -> list[str]:
    models = evaluation.models
    notes = []
    if bootstrap.resamples and any(scores.metrics for scores in models.values()):
        notes.append(
            f"{100 * CONFIDENCE:g} % intervals by {bootstrap.resamples} resamples of the images, seed {bootstrap.seed}"
        )
        if len(models) > 1:
            notes.append(f"second line: less {next(iter(models))}, paired by image; * where the interval leaves 0 out")
    notes.append(f"tokeniser: {evaluation.tokeniser}")
    notes += [
        f"commonest caption of {name}: {scores.diversity.commonest}"
        for name, scores in models.items()
        if scores.diversity.commonest_count > 1
    ]
    lacking: dict[str, list[str]] = {}
    for key, why in evaluation.unavailable.items():
        lacking.setdefault(why, []).append(TITLES.get(key, "PTB tokeniser"))
    notes += [f"{', '.join(metrics)} not available: {why}" for why, metrics in lacking.items()]
    return notes


def as_document(
    evaluation: Evaluation, bootstrap: Bootstrap, captions: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Build a JSON document of the scores, intervals and values of every image; undefined values are null.

    Args:
        bootstrap: with the evaluation's number of images.
        captions: captions by model and image, as written.
    """
    return {
        "images": len(evaluation.images),
        "tokeniser": evaluation.tokeniser,
        "bootstrap": {
            "resamples": bootstrap.resamples, "confidence": CONFIDENCE, "seed": bootstrap.seed,
        },
        "not_available": evaluation.unavailable,
        "models": {
            name: {
                **_scores(evaluation, bootstrap, name),
                "domains": {
                    domain: {
                        "images": len(part.images),
                        **_scores(part, bootstrap.of_size(len(part.images)), name),
                    }
                    for domain, part in evaluation.domains.items()
                },
                "per_image": _per_image(evaluation.images, scores, captions[name]),
            }
            for name, scores in evaluation.models.items()
        },
    }  # fmt: skip


def _scores(evaluation: Evaluation, bootstrap: Bootstrap, name: str) -> dict[str, Any]:
    baseline, scores = next(iter(evaluation.models)), evaluation.models[name]
    return {
        "scores": {key: _json_number(metric.value) for key, metric in scores.metrics.items()},
        "intervals": {key: _bounds(bootstrap.interval(metric)) for key, metric in scores.metrics.items()},
        **({} if name == baseline else {"differences": _differences(evaluation, bootstrap, name, baseline)}),
        "diversity": asdict(scores.diversity),
    }


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
    return [*map(_json_number, interval)]
