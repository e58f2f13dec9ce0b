"""`smart-caption coverage score`: score one caption."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from smart_caption_ros.cli.options import JsonOption, Option, PipelineOption, WordVectorsOption
from smart_caption_ros.cli.terminal import console, errors_in_a_sentence, print_json, printable

if TYPE_CHECKING:
    from smart_caption_ros.grounding import CoverageResult


@dataclass(frozen=True)
class ScoreOptions:
    """The options of `coverage score` beside the caption and the classes."""

    as_json: JsonOption = False
    pipeline: PipelineOption = None
    word_vectors: WordVectorsOption = None
    synonyms: Annotated[
        Path | None,
        Option(help="List of synonyms in the format published with CHAIR, each of which counts as its class."),
    ] = None
    minimum_similarity: Annotated[float, Option(min=0, max=1, help="Count lower similarities as 0.")] = 0.0
    class_counts: Annotated[bool, Option("--class-counts", help="Count each object, not each class once.")] = False


def score(
    caption: Annotated[str, Option(help="The caption.")],
    classes: Annotated[str, Option(help="Classes of the objects, separated by commas.")],
    *,
    options: ScoreOptions,
) -> None:
    """Score a caption against the classes of objects, and print which noun was assigned to which class."""
    with errors_in_a_sentence():
        from smart_caption_ros.detection.class_names import COCO_CLASSES
        from smart_caption_ros.grounding import CoverageOptions, NounCoverage

        names = [name.strip() for name in classes.split(",") if name.strip()]
        coverage = NounCoverage.load(
            options.pipeline,
            options.word_vectors,
            synonyms=options.synonyms,
            class_list=(*COCO_CLASSES, *names),
            options=CoverageOptions(
                minimum_similarity=options.minimum_similarity,
                synonyms=options.synonyms is not None,
                class_counts=options.class_counts,
            ),
        )
        result = coverage.score(caption, names)
        if options.as_json:
            print_json(result.to_json())
        else:
            _print_coverage(result)


def _print_coverage(result: CoverageResult) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("class", "noun", "similarity", box=None, pad_edge=False)
    nouns = {match.class_index: match for match in result.matches}
    for index, name in zip(result.class_indices, result.classes, strict=True):
        match = nouns.get(index)
        table.add_row(
            Text(printable(name)),
            Text(printable(match.noun.text) if match else "-"),
            f"{match.similarity:.3f}" if match else "-",
        )
    terminal = console()
    if result.classes:
        terminal.print(table)
    for label, value in (("coverage", result.coverage), ("noun support", result.noun_support)):
        terminal.print(f"{label}: {'undefined' if value is None else f'{value:.3f}'}")
    for label, words in (
        ("missed classes", result.missed_classes),
        ("unsupported nouns", result.unsupported_nouns),
        ("nouns without a word vector", result.out_of_vocabulary_nouns),
        ("classes without a word vector", result.out_of_vocabulary_classes),
    ):
        if words:
            terminal.print(Text(f"{label}: {printable(', '.join(words))}"), soft_wrap=True)
