"""`smart-caption coverage`: how much of what is there a caption names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.terminal import JsonOption, console, failures_in_a_sentence, printable

if TYPE_CHECKING:
    from smart_caption_ros.grounding import CoverageResult


def score(
    caption: Annotated[str, typer.Option(help="The sentence.")],
    classes: Annotated[str, typer.Option(help="The classes of the objects that are there, with commas between.")],
    as_json: JsonOption = False,
    pipeline: Annotated[
        str | None, typer.Option(help="Name or folder of a spaCy pipeline; the one shipped by default.")
    ] = None,
    word_vectors: Annotated[Path | None, typer.Option(help="A GloVe text file; the table shipped by default.")] = None,
    synonyms: Annotated[
        Path | None, typer.Option(help="A list of synonyms as published with CHAIR; they count as the class then.")
    ] = None,
    minimum_similarity: Annotated[float, typer.Option(min=0, max=1, help="Count lower similarities as 0.")] = 0.0,
    class_counts: Annotated[
        bool, typer.Option("--class-counts", help="Count every object, also of the same class.")
    ] = False,
) -> None:
    """Score a caption against the objects that are there, and print which noun was assigned to which class."""
    with failures_in_a_sentence():
        from smart_caption_ros.grounding import CoverageOptions, NounCoverage

        options = CoverageOptions(
            minimum_similarity=minimum_similarity, synonyms=synonyms is not None, class_counts=class_counts
        )
        coverage = NounCoverage.load(pipeline, word_vectors, synonyms=synonyms, options=options)
        names = [name.strip() for name in classes.split(",") if name.strip()]
        result = coverage.score(caption, names)
        if as_json:
            print(json.dumps(result.to_json(), indent=2))
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
