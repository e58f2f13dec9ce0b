"""`smart-caption coverage acvr`, `coco` and `folder`: Table IV of the SMArT paper on one's own frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.options import Argument, EngineOption, Option, PipelineOption, WordVectorsOption
from smart_caption_ros.cli.terminal import (
    FAILED,
    check_engine,
    check_output_file,
    console,
    errors_in_a_sentence,
    input_files,
    log_to_terminal,
    printable,
    progress_bar,
    report_error,
    status,
    write_json,
)
from smart_caption_ros.cli.workers import WorkerOptions, start_workers
from smart_caption_ros.files import write_text_atomically

if TYPE_CHECKING:
    from smart_caption_ros.evaluation.caption_cache import CaptionCache
    from smart_caption_ros.evaluation.coverage_benchmark import Captions
    from smart_caption_ros.sources.ground_truth import GroundTruth

GROUND_TRUTH = "ground truth"


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
    """The options of `acvr` and `coco`."""

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
    """The options of `folder`."""

    every: Annotated[int, Option(min=1, help="Caption every Nth photograph.")] = 1
    detection_score: Annotated[
        float | None, Option(min=0, max=1, help="Minimum score of a detected object; 0.35 by default.")
    ] = None


@dataclass(frozen=True)
class _Reference:
    """The objects that captions are scored against.

    Attributes:
        frames: the frames with their objects.
        objects: where the objects come from.
        class_names: class names beside COCO's.
    """

    frames: GroundTruth
    objects: str = GROUND_TRUTH
    class_names: Sequence[str] = ()


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
    with errors_in_a_sentence():
        _check(options, () if root is None else root.glob("*/labels.json"))
        from smart_caption_ros.sources.acvr import AcvrSequences
        from smart_caption_ros.sources.sequences import sample_sequences_path

        if root is None:
            root = sample_sequences_path()
            report_error(f"no ROOT was given: taking the household sequences in the package, {root}")
        _benchmark(_reference(AcvrSequences(root, objects=options.detections is None), options), options)


def coco(
    instances: Annotated[
        list[Path], Argument(metavar="INSTANCES", help="Files instances_*.json; each is one sequence.")
    ],
    images: Annotated[Path, Option(help="Folder of their images.")],
    *,
    options: LabelledOptions,
) -> None:
    """Measure coverage on images with ground truth in the COCO format."""
    with errors_in_a_sentence():
        _check(options, (*instances, *input_files([images])))
        from smart_caption_ros.evaluation.coco_instances import CocoInstances

        _benchmark(_reference(CocoInstances(instances, images), options), options)


def folder(
    photographs: Annotated[Path, Argument(metavar="FOLDER", help="Folder of photographs.")],
    detector: Annotated[
        Path, Option(help="ONNX detector whose objects are the reference for the captions.", show_default=False)
    ],
    *,
    options: FolderOptions,
) -> None:
    """Measure coverage on photographs without ground truth, against the objects that a detector finds."""
    with errors_in_a_sentence():
        _check(options, (detector, *input_files([photographs])))
        from smart_caption_ros.captioning import Detector
        from smart_caption_ros.detection.detector import MINIMUM_SCORE
        from smart_caption_ros.engines import load_with
        from smart_caption_ros.evaluation.detected_folder import DetectedFolder

        score = MINIMUM_SCORE if options.detection_score is None else options.detection_score
        loaded, _ = load_with(options.engine, None, lambda created: Detector(detector, created, minimum_score=score))
        objects = f"detections by {detector.name}, score {score:g} or more: a reference, not ground truth"
        reference = _Reference(DetectedFolder(photographs, loaded.detect), objects, loaded.class_names)
        _benchmark(reference, options)


def _check(options: BenchmarkOptions, inputs: Iterable[Path]) -> None:
    if options.bundle and options.captions:
        raise typer.BadParameter("Give bundles or captions, not both.", param_hint="--captions")
    if options.captions and isinstance(options, WorkerOptions) and options.has_workers:
        raise typer.BadParameter("Given captions need no workers.", param_hint="--jobs")
    check_engine(options.engine)
    inputs = [*inputs, *(options.captions or ())]
    if options.word_vectors is not None:
        inputs.append(options.word_vectors)
    if isinstance(options, LabelledOptions) and options.detections is not None:
        inputs += [options.detections, *options.detections.glob("*.json")]
    check_output_file(options.json_file, "--json", inputs)
    check_output_file(options.html, "--html", inputs)


def _reference(frames: GroundTruth, options: LabelledOptions) -> _Reference:
    from smart_caption_ros.evaluation.submissions import DetectedFrames

    if options.detections is None:
        return _Reference(frames)
    objects = f"detections in {options.detections}, probability {options.detection_score:g} or more"
    return _Reference(DetectedFrames(frames, options.detections, options.detection_score), objects)


def _benchmark(reference: _Reference, options: BenchmarkOptions) -> None:
    from smart_caption_ros.cli.coverage_table import print_comparison
    from smart_caption_ros.detection.class_names import COCO_CLASSES
    from smart_caption_ros.evaluation import coverage_benchmark
    from smart_caption_ros.evaluation.comparison import BenchmarkFacts, Comparison
    from smart_caption_ros.grounding import NounCoverage

    log_to_terminal()
    frames = reference.frames
    class_list = (*COCO_CLASSES, *reference.class_names)
    coverage = NounCoverage.load(options.pipeline, options.word_vectors, class_list=class_list)
    outcomes = []
    passes = len(options.captions or options.bundle or [None])
    with progress_bar(passes * frames.count(options.every), delay_s=1) as advance:
        for captions in _captions(options):
            made = _caption_ahead(frames, captions, options)
            outcomes.append(coverage_benchmark.run(frames, captions, coverage, options.every, advance))
            if captions.reused > made:
                report_error(f"{captions.label}: {captions.reused - made} captions were kept from an earlier run")
    facts = BenchmarkFacts(frames.spec, options.every, reference.objects, coverage.vectors.name, coverage.finder.name)
    comparison = Comparison(outcomes, facts)
    for sentence in comparison.skipped():
        report_error(sentence)
    # Files first: printing may end the command, when a reader such as `head` closes the pipe.
    if options.json_file is not None:
        write_json(options.json_file, comparison.to_json())
    if options.html is not None:
        write_text_atomically(options.html, comparison.page(report_error))
    if reference.objects != GROUND_TRUTH:
        console().print(f"objects: {printable(reference.objects)}", markup=False, soft_wrap=True)
    print_comparison(comparison)


def _caption_ahead(frames: GroundTruth, captions: Captions, options: BenchmarkOptions) -> int:
    """Let workers make the captions, if the options say so; return how many they made.

    Exits with a status if a part of the frames has no captions in spite of all attempts: figures without them would be
    taken for the whole.
    """
    from smart_caption_ros.evaluation.coverage_benchmark import ModelCaptions

    if not (isinstance(options, WorkerOptions) and options.has_workers and isinstance(captions, ModelCaptions)):
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
    """Open the file that keeps captions; where none was named and the user's cache cannot be written, keep none."""
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
    """Open the captions to score; all files or bundles are checked before the first is scored, which may take hours."""
    from smart_caption_ros.captioning import Bundle, Captioner
    from smart_caption_ros.evaluation.coverage_benchmark import GivenCaptions, ModelCaptions
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
            yield ModelCaptions(captioner, cache, fresh=options.fresh)
    finally:
        cache.close()
