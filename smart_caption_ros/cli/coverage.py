"""`smart-caption coverage`: Table IV of the SMArT paper for the user's frames, and the score of one caption."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.options import (
    Argument,
    EngineOption,
    JsonOption,
    Option,
    PipelineOption,
    WordVectorsOption,
    WorkerOptions,
    start_workers,
)
from smart_caption_ros.cli.terminal import (
    FAILED,
    bundle_files,
    check_output_file,
    console,
    input_files,
    log_to_terminal,
    print_json,
    print_line,
    print_table,
    progress_bar,
    report_error,
    status,
    write_json,
)
from smart_caption_ros.files import OutputError, check_output, write_text_atomically

if TYPE_CHECKING:
    from smart_caption_ros.evaluation.caption_cache import CaptionCache
    from smart_caption_ros.evaluation.coverage_benchmark import Captions, CoverageComparison
    from smart_caption_ros.evaluation.report import CoverageStatistics
    from smart_caption_ros.grounding import CoverageResult
    from smart_caption_ros.sources.ground_truth import GroundTruth

_GROUND_TRUTH = "ground truth"
_LISTED = 10


@dataclass(frozen=True)
class BenchmarkOptions:
    """The options that `acvr`, `coco` and `folder` share."""

    bundle: Annotated[
        list[Path] | None,
        Option(help="Folder of a bundle, the default bundle if omitted; several are compared."),
    ] = None
    every: Annotated[int, Option(min=1, help="Caption every Nth frame of each sequence.")] = 1
    json_file: Annotated[Path | None, Option("--json", help="JSON file to write the figures to.")] = None
    html: Annotated[Path | None, Option(help="HTML file to write: table, plot, classes, best and worst frames.")] = None
    captions: Annotated[
        list[Path] | None,
        Option(
            help='JSON file of captions to score instead of running a model, {"<sequence>/<frame>": "text"}; several '
            "are compared."
        ),
    ] = None
    word_vectors: WordVectorsOption = None
    pipeline: PipelineOption = None
    engine: EngineOption = "auto"
    keep: Annotated[
        Path | None,
        Option(help="File in which captions are kept for the next run; one in the user's cache by default."),
    ] = None
    fresh: Annotated[bool, Option("--fresh", help="Caption all frames again, even if captions were kept.")] = False


@dataclass(frozen=True)
class LabelledOptions(BenchmarkOptions, WorkerOptions):
    detections: Annotated[
        Path | None,
        Option(
            help="Score against detections instead of the ground truth: <sequence>.json in the challenge's format of "
            "submissions, or a folder of such files."
        ),
    ] = None
    detection_score: Annotated[
        float, Option(min=0, max=1, help="Minimum probability of the best class of a detection.")
    ] = 0.5


@dataclass(frozen=True)
class FolderOptions(BenchmarkOptions):
    every: Annotated[int, Option(min=1, help="Caption every Nth photograph.")] = 1
    detection_score: Annotated[
        float | None, Option(min=0, max=1, help="Minimum score of a detected object; 0.35 by default.")
    ] = None


def acvr(
    root: Annotated[
        Path | None,
        Argument(
            metavar="[ROOT]",
            help="Folder that contains <sequence>/labels.json; the household sequences in the package by default.",
        ),
    ] = None,
    *,
    options: LabelledOptions,
) -> None:
    """Measure coverage on sequences of the ACRV Robotic Vision Challenge."""
    _check(options, () if root is None else input_files([root]))
    from smart_caption_ros.sources.acvr import AcvrSequences
    from smart_caption_ros.sources.sequences import sample_sequences_path

    if root is None:
        root = sample_sequences_path()
        report_error(f"no ROOT was given: taking the household sequences in the package, {root}")
    _benchmark_labelled(AcvrSequences(root, objects=options.detections is None), options)


def coco(
    instances: Annotated[
        list[Path], Argument(metavar="INSTANCES", help="Files instances_*.json; each is one sequence.")
    ],
    images: Annotated[Path, Option(help="Folder of their images.")],
    *,
    options: LabelledOptions,
) -> None:
    """Measure coverage on images with ground truth in the COCO format."""
    _check(options, (*instances, *input_files([images])))
    from smart_caption_ros.evaluation.coco_instances import CocoInstances

    _benchmark_labelled(CocoInstances(instances, images), options)


def folder(
    photographs: Annotated[Path, Argument(metavar="FOLDER", help="Folder of photographs.")],
    detector: Annotated[
        Path, Option(help="ONNX detector whose objects are the reference for the captions.", show_default=False)
    ],
    *,
    options: FolderOptions,
) -> None:
    """Measure coverage on photographs without ground truth, against the objects that a detector finds."""
    _check(options, (detector, *input_files([photographs])))
    from smart_caption_ros.captioning import Detector
    from smart_caption_ros.detection.detector import MINIMUM_SCORE
    from smart_caption_ros.evaluation.detected_folder import DetectedFolder

    score = MINIMUM_SCORE if options.detection_score is None else options.detection_score
    loaded = Detector.from_onnx(detector, options.engine, minimum_score=score)
    objects = f"detections by {detector.name}, score {score:g} or more: a reference, not ground truth"
    _benchmark(DetectedFolder(photographs, loaded.detect), options, objects, loaded.class_names)


def score(
    caption: Annotated[str, Option(help="The caption.")],
    classes: Annotated[str, Option(help="Classes of the objects, separated by commas.")],
    *,
    as_json: JsonOption = False,
    pipeline: PipelineOption = None,
    word_vectors: WordVectorsOption = None,
    synonyms: Annotated[
        Path | None,
        Option(help="List of synonyms in the format published with CHAIR, each of which counts as its class."),
    ] = None,
    minimum_similarity: Annotated[float, Option(min=0, max=1, help="Count lower similarities as 0.")] = 0.0,
    class_counts: Annotated[bool, Option("--class-counts", help="Count each object, not each class once.")] = False,
) -> None:
    """Score a caption against the classes of objects, and print which noun was assigned to which class."""
    from smart_caption_ros.grounding import CoverageOptions, NounCoverage

    names = [name.strip() for name in classes.split(",") if name.strip()]
    coverage = NounCoverage.load(
        pipeline,
        word_vectors,
        synonyms=synonyms,
        class_names=tuple(names),
        options=CoverageOptions(
            minimum_similarity=minimum_similarity,
            synonyms=synonyms is not None,
            class_counts=class_counts,
        ),
    )
    result = coverage.score(caption, names)
    if as_json:
        print_json(result.to_json())
    else:
        _print_coverage(result)


def _check(options: BenchmarkOptions, inputs: Iterable[Path]) -> None:
    from smart_caption_ros.evaluation.caption_cache import default_caption_cache_path

    if options.bundle and options.captions:
        raise typer.BadParameter("Give bundles or captions, not both.", param_hint="--captions")
    if options.captions and isinstance(options, WorkerOptions) and options.has_workers:
        raise typer.BadParameter("Given captions need no workers.", param_hint="--jobs")
    if options.captions and (options.keep is not None or options.fresh):
        raise typer.BadParameter("Given captions are not kept.", param_hint="--keep, --fresh")
    if isinstance(options, LabelledOptions):
        if options.detections is None and options.detection_score != LabelledOptions.detection_score:
            raise typer.BadParameter("It needs --detections.", param_hint="--detection-score")
        if not options.has_workers and options.retries != WorkerOptions.retries:
            raise typer.BadParameter("It needs --jobs or --ray.", param_hint="--retries")
    inputs = [*inputs, *(options.captions or ()), *bundle_files(options.bundle or ())]
    if options.word_vectors is not None:
        inputs.append(options.word_vectors)
    if isinstance(options, LabelledOptions) and options.detections is not None:
        inputs += [options.detections, *options.detections.glob("*.json")]
    outputs = [path for path in (options.json_file, options.html, options.keep) if path and path != Path("/dev/null")]
    if len(set(map(os.path.realpath, outputs))) < len(outputs):
        raise OutputError("two of --json, --html and --keep are the same file: name another output")
    kept = options.keep or default_caption_cache_path()
    check_output_file(options.json_file, "--json", [*inputs, kept])
    check_output_file(options.html, "--html", [*inputs, kept])
    if options.keep is not None and options.keep.exists():
        if not options.keep.is_file():
            raise typer.BadParameter(f"{options.keep} is not a file.", param_hint="--keep")
        check_output(options.keep, inputs)


def _benchmark_labelled(frames: GroundTruth, options: LabelledOptions) -> None:
    from smart_caption_ros.evaluation.submissions import DetectedFrames

    if options.detections is None:
        _benchmark(frames, options)
        return
    objects = f"detections in {options.detections}, probability {options.detection_score:g} or more"
    _benchmark(DetectedFrames(frames, options.detections, options.detection_score), options, objects)


def _benchmark(
    frames: GroundTruth, options: BenchmarkOptions, objects: str = _GROUND_TRUTH, class_names: Sequence[str] = ()
) -> None:
    from smart_caption_ros.evaluation import coverage_benchmark
    from smart_caption_ros.evaluation.coverage_benchmark import CoverageComparison, distinguished
    from smart_caption_ros.grounding import NounCoverage

    log_to_terminal()
    coverage = NounCoverage.load(options.pipeline, options.word_vectors, class_names=tuple(class_names))
    outcomes = []
    passes = len(options.captions or options.bundle or [None])
    with progress_bar(passes * frames.count(options.every)) as bar:
        for captions in _captions(options):
            made = _caption_ahead(frames, captions, options)
            outcomes.append(coverage_benchmark.run(frames, captions, coverage, options.every, bar.update))
            if captions.reused > made:
                report_error(f"{captions.label}: {captions.reused - made} captions were kept from an earlier run")
    names = coverage.vectors.name, coverage.finder.name
    comparison = CoverageComparison(distinguished(outcomes), frames.spec, options.every, objects, *names)
    for sentence in comparison.skipped():
        report_error(sentence)
    # Files first: printing may end the command, when a reader such as `head` closes the pipe.
    if options.json_file is not None:
        write_json(options.json_file, comparison.to_json())
    if options.html is not None:
        from smart_caption_ros.evaluation.page import coverage_page

        write_text_atomically(options.html, coverage_page(comparison, report_error))
    if objects != _GROUND_TRUTH:
        print_line(f"objects: {objects}")
    _print_comparison(comparison)


def _caption_ahead(frames: GroundTruth, captions: Captions, options: BenchmarkOptions) -> int:
    """Let workers make the captions, if the options ask for workers; return how many they made.

    Exits with status 1 if frames are without captions after all attempts, because figures without them would look
    complete.
    """
    from smart_caption_ros.evaluation.coverage_benchmark import BundleCaptions

    if not (isinstance(options, WorkerOptions) and options.has_workers and isinstance(captions, BundleCaptions)):
        return 0
    from smart_caption_ros.bags.message_captioner import ModelSettings
    from smart_caption_ros.fleet.coverage import caption_ahead

    model = ModelSettings(Path(captions.source), engine=options.engine, threads=options.threads).absolute()
    done = 0

    def count(images: int) -> None:
        nonlocal done
        done += images
        show(f"captioning: {done} of at most {frames.count(options.every)} images")

    with closing(start_workers(options)) as workers, status("captioning") as show:
        made, failures = caption_ahead(frames, options.every, captions, model, workers, options.retries, count)
    for failure in failures:
        report_error(f"failed: {failure}")
    if failures:
        report_error(f"nothing is scored; the same command tries the {len(failures)} parts again, and keeps the others")
        raise typer.Exit(FAILED)
    return made


def _open_cache(path: Path | None) -> CaptionCache:
    """Open the file that keeps captions; keep none if no file was named and the user's cache cannot be written."""
    from smart_caption_ros.evaluation.caption_cache import (
        IN_MEMORY,
        CaptionCache,
        CaptionCacheError,
        default_caption_cache_path,
    )

    if path is not None:
        return CaptionCache(path)
    try:
        return CaptionCache(default_caption_cache_path())
    except CaptionCacheError as error:
        report_error(f"{error}; this run keeps none")
        return CaptionCache(IN_MEMORY)


def _captions(options: BenchmarkOptions) -> Iterator[Captions]:
    """Open the captions to score; all files or bundles are checked before the first is scored for hours."""
    from smart_caption_ros.captioning import Bundle, Captioner
    from smart_caption_ros.evaluation.coverage_benchmark import BundleCaptions, GivenCaptions
    from smart_caption_ros.grounding import guide_words

    if options.captions:
        yield from [GivenCaptions(file) for file in options.captions]
        return
    for path in options.bundle or ():
        Bundle.load(path)
    cache = _open_cache(options.keep)
    try:
        for bundle in options.bundle or (None,):
            captioner = guide_words(Captioner.from_bundle(bundle, engine=options.engine))
            yield BundleCaptions(captioner, cache, fresh=options.fresh)
    finally:
        cache.close()


def _print_comparison(comparison: CoverageComparison) -> None:
    console().print("Coverage of objects that cover more of the image than this, and in how many frames there are any:")
    _print_coverage_table(comparison)
    for outcome in comparison.outcomes:
        suffix = f" ({outcome.label})" if len(comparison.outcomes) > 1 else ""
        missed = [
            (statistics.class_name, str(statistics.missed), str(statistics.frames))
            for statistics in outcome.report.classes
            if statistics.missed
        ]
        near = [
            (miss.class_name, miss.noun, str(miss.frames), f"{miss.similarity:.3f}")
            for miss in outcome.report.near_misses
        ]
        for titles, rows in (
            ((f"most missed{suffix}", "missed", "of frames"), missed),
            ((f"near misses{suffix}", "noun assigned", "frames", "similarity"), near),
        ):
            if rows:
                print()
                print_table(titles, rows[:_LISTED])


def _print_coverage_table(comparison: CoverageComparison) -> None:
    """Print the table of coverage, one row per sequence and model; only the row "all" for a single sequence."""
    from smart_caption_ros.evaluation.report import AREA_THRESHOLDS

    figures = [*(f"> {100 * threshold:g} %" for threshold in AREA_THRESHOLDS), "noun support"]
    rows: list[Sequence[str]] = []
    sequences = list(dict.fromkeys(name for outcome in comparison.outcomes for name in outcome.report.sequences))
    for sequence in sequences if len(sequences) > 1 else []:
        for outcome in comparison.outcomes:
            if sequence in outcome.report.sequences:
                rows.append((sequence, outcome.label, *_cells(outcome.report.sequences[sequence])))
    rows += [("all", outcome.label, *_cells(outcome.report.overall)) for outcome in comparison.outcomes]
    print_table(("sequence", "captions", *figures), rows, figures=figures)


def _cells(figures: CoverageStatistics) -> list[str]:
    def figure(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    cells = [f"{figure(value)} ({figures.frames[threshold]})" for threshold, value in figures.coverage.items()]
    return [*cells, f"{figure(figures.noun_support)} ({figures.noun_support_frames})"]


def _print_coverage(result: CoverageResult) -> None:
    rows = []
    nouns = {match.class_index: match for match in result.matches}
    for index, name in zip(result.class_indices, result.classes, strict=True):
        match = nouns.get(index)
        rows.append((name, match.noun.text if match else "-", f"{match.similarity:.3f}" if match else "-"))
    if rows:
        print_table(("class", "noun", "similarity"), rows)
    for label, value in (("coverage", result.coverage), ("noun support", result.noun_support)):
        print_line(f"{label}: {'undefined' if value is None else f'{value:.3f}'}")
    for label, words in (
        ("missed classes", result.missed_classes),
        ("unsupported nouns", result.unsupported_nouns),
        ("nouns without a word vector", result.out_of_vocabulary_nouns),
        ("classes without a word vector", result.out_of_vocabulary_classes),
    ):
        if words:
            print_line(f"{label}: {', '.join(words)}")
