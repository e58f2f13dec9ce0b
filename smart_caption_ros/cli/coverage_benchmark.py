"""`smart-caption coverage acvr`, `coco` and `folder`: SMArT's Table IV for pictures with known or detected objects."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smart_caption_ros.cli.terminal import (
    check_engine,
    complain,
    console,
    failures_in_a_sentence,
    log_to_terminal,
    printable,
)
from smart_caption_ros.files import write_text_atomically

if TYPE_CHECKING:
    from smart_caption_ros.evaluation.coverage_benchmark import Captions, Outcome, ScoredFrame
    from smart_caption_ros.evaluation.page import Picture
    from smart_caption_ros.evaluation.report import Figures
    from smart_caption_ros.sources.ground_truth import GroundTruth

_LISTED = 10
GROUND_TRUTH = "ground truth"

BundleOption = Annotated[
    list[Path] | None,
    typer.Option(help="A bundle's folder, the one shipped by default; several are set side by side."),
]
EveryOption = Annotated[int, typer.Option(min=1, help="Caption every Nth frame of each sequence.")]
JsonFileOption = Annotated[Path | None, typer.Option("--json", help="A JSON file for the figures.")]
HtmlOption = Annotated[Path | None, typer.Option(help="An HTML file: table, plot, classes, best and worst frames.")]
CaptionsOption = Annotated[
    list[Path] | None,
    typer.Option(help='Score these captions, no model runs: a JSON file {"<sequence>/<frame>": "text"}.'),
]
DetectionsOption = Annotated[
    Path | None,
    typer.Option(
        help="Score against detections, not ground truth: <sequence>.json in the challenge's format of submissions, "
        "or a folder of such files."
    ),
]
DetectionScoreOption = Annotated[
    float, typer.Option(min=0, max=1, help="Detections whose best class is less probable do not count.")
]
WordVectorsOption = Annotated[Path | None, typer.Option(help="A GloVe text file; the table shipped by default.")]
PipelineOption = Annotated[
    str | None, typer.Option(help="Name or folder of a spaCy pipeline; the one shipped by default.")
]
EngineOption = Annotated[str, typer.Option(help="What runs the model; `doctor` lists the engines.")]
KeepOption = Annotated[
    Path | None,
    typer.Option(help="The file in which captions are kept for the next run; one in the user's cache by default."),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Caption all frames anew, whatever was kept.")]


def acvr(
    root: Annotated[
        Path | None,
        typer.Argument(
            metavar="[ROOT]",
            help="The folder that holds <sequence>/labels.json; the household sequences in the package by default.",
        ),
    ] = None,
    bundle: BundleOption = None,
    every: EveryOption = 1,
    json_file: JsonFileOption = None,
    html: HtmlOption = None,
    captions: CaptionsOption = None,
    detections: DetectionsOption = None,
    detection_score: DetectionScoreOption = 0.5,
    word_vectors: WordVectorsOption = None,
    pipeline: PipelineOption = None,
    engine: EngineOption = "auto",
    keep: KeepOption = None,
    fresh: FreshOption = False,
) -> None:
    """Coverage on sequences of the ACRV Robotic Vision Challenge."""
    with failures_in_a_sentence():
        from smart_caption_ros.sources.acvr import AcvrSequences
        from smart_caption_ros.sources.sequences import sample_sequences_path

        if root is None:
            root = sample_sequences_path()
            complain(f"no ROOT was given: taking the household sequences in the package, {root}")
        frames = AcvrSequences(root, objects=detections is None)
        options = _Options(bundle, captions, detections, detection_score, every, engine, keep, fresh)
        _benchmark(frames, options, pipeline, word_vectors, json_file, html)


def coco(
    instances: Annotated[
        list[Path], typer.Argument(metavar="INSTANCES", help="Files instances_*.json; each counts as a sequence.")
    ],
    images: Annotated[Path, typer.Option(help="The folder of their images.")],
    bundle: BundleOption = None,
    every: EveryOption = 1,
    json_file: JsonFileOption = None,
    html: HtmlOption = None,
    captions: CaptionsOption = None,
    detections: DetectionsOption = None,
    detection_score: DetectionScoreOption = 0.5,
    word_vectors: WordVectorsOption = None,
    pipeline: PipelineOption = None,
    engine: EngineOption = "auto",
    keep: KeepOption = None,
    fresh: FreshOption = False,
) -> None:
    """Coverage on images with ground truth in COCO's format."""
    with failures_in_a_sentence():
        from smart_caption_ros.evaluation.coco_instances import CocoInstances

        frames = CocoInstances(instances, images)
        options = _Options(bundle, captions, detections, detection_score, every, engine, keep, fresh)
        _benchmark(frames, options, pipeline, word_vectors, json_file, html)


def folder(
    photographs: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder of photographs.")],
    detector: Annotated[
        Path, typer.Option(help="The ONNX detector whose objects the captions are scored against.", show_default=False)
    ],
    bundle: BundleOption = None,
    every: Annotated[int, typer.Option(min=1, help="Caption every Nth photograph.")] = 1,
    json_file: JsonFileOption = None,
    html: HtmlOption = None,
    captions: CaptionsOption = None,
    detection_score: Annotated[
        float | None, typer.Option(min=0, max=1, help="Objects of a lower score do not count; 0.35 by default.")
    ] = None,
    word_vectors: WordVectorsOption = None,
    pipeline: PipelineOption = None,
    engine: EngineOption = "auto",
    keep: KeepOption = None,
    fresh: FreshOption = False,
) -> None:
    """Coverage on photographs without ground truth: a detector's objects are the reference."""
    with failures_in_a_sentence():
        from smart_caption_ros.captioning import Detector
        from smart_caption_ros.detection.detector import MINIMUM_SCORE
        from smart_caption_ros.engines import load_with
        from smart_caption_ros.evaluation.detected_folder import DetectedFolder

        check_engine(engine)
        score = MINIMUM_SCORE if detection_score is None else detection_score
        loaded, _ = load_with(engine, None, lambda created: Detector(detector, created, minimum_score=score))
        frames = DetectedFolder(photographs, loaded.detect)
        options = _Options(bundle, captions, None, score, every, engine, keep, fresh)
        reference = f"detections by {detector.name}, score {score:g} or more: a reference, not ground truth"
        _benchmark(frames, options, pipeline, word_vectors, json_file, html, reference, loaded.class_names)


@dataclass(frozen=True)
class _Options:
    """What is scored, and against what."""

    bundles: Sequence[Path] | None
    caption_files: Sequence[Path] | None
    detections: Path | None
    detection_score: float
    every: int
    engine: str
    keep: Path | None
    fresh: bool


def _benchmark(
    ground_truth: GroundTruth,
    options: _Options,
    pipeline: str | None,
    word_vectors: Path | None,
    json_file: Path | None,
    html: Path | None,
    objects: str = GROUND_TRUTH,
    class_names: Sequence[str] = (),
) -> None:
    from smart_caption_ros.detection.class_names import COCO_CLASSES
    from smart_caption_ros.evaluation import coverage_benchmark
    from smart_caption_ros.evaluation.submissions import DetectedFrames
    from smart_caption_ros.grounding import NounCoverage

    if options.bundles and options.caption_files:
        raise typer.BadParameter("Give bundles or captions, not both.", param_hint="--captions")
    check_engine(options.engine)
    for path in (json_file, html):
        if path is not None and not path.parent.is_dir():
            raise typer.BadParameter(f"There is no folder {path.parent} to write {path.name} into.")
    log_to_terminal()
    if options.detections is not None:
        ground_truth = DetectedFrames(ground_truth, options.detections, options.detection_score)
        objects = f"detections in {options.detections}, probability {options.detection_score:g} or more"
    coverage = NounCoverage.load(pipeline, word_vectors, class_list=(*COCO_CLASSES, *class_names))
    facts = {
        "data": ground_truth.spec,
        "every": options.every,
        "objects": objects,
        "word_vectors": coverage.vectors.name,
        "pipeline": coverage.finder.name,
    }
    outcomes = []
    passes = len(options.caption_files or options.bundles or [None])
    with _progress(passes * ground_truth.count(options.every)) as advance:
        for captions in _captions(options):
            outcomes.append(coverage_benchmark.run(ground_truth, captions, coverage, options.every, advance))
            if captions.reused:
                complain(f"{captions.label}: {captions.reused} captions were kept from an earlier run")
    labels = _labels(outcomes)
    for label, outcome in zip(labels, outcomes, strict=True):
        for sentence in outcome.oddities.sentences():
            complain(sentence if len(outcomes) == 1 else f"{label}: {sentence}")
    if json_file is not None:
        results = [
            {"label": label, **coverage_benchmark.to_json(each)} for label, each in zip(labels, outcomes, strict=True)
        ]
        content = {**results[0], **facts} if len(results) == 1 else {"results": results, **facts}
        write_text_atomically(json_file, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    if html is not None:
        write_text_atomically(html, _page(labels, outcomes, facts))
    if objects != GROUND_TRUTH:
        console().print(f"objects: {printable(objects)}", markup=False, soft_wrap=True)
    _print_outcomes(labels, outcomes)  # after the files, which a closed pipe (`| head`) would prevent


def _captions(options: _Options) -> Iterator[Captions]:
    """The columns of the table; a bad file or bundle is found before the good ones are scored for hours."""
    from smart_caption_ros.captioning import Bundle, Captioner
    from smart_caption_ros.evaluation.caption_cache import KeptCaptions, default_kept_captions_path
    from smart_caption_ros.evaluation.coverage_benchmark import GivenCaptions, ModelCaptions

    if options.caption_files:
        yield from [GivenCaptions(file) for file in options.caption_files]
        return
    for folder in options.bundles or ():
        Bundle.load(folder)
    kept = KeptCaptions(options.keep or default_kept_captions_path())
    try:
        for bundle in options.bundles or (None,):
            yield ModelCaptions(Captioner.from_bundle(bundle, engine=options.engine), kept, fresh=options.fresh)
    finally:
        kept.close()


def _labels(outcomes: Sequence[Outcome]) -> list[str]:
    """Names of the columns; bundles of one name are told apart by their folders."""
    names = [outcome.label for outcome in outcomes]
    return [
        name if names.count(name) == 1 else f"{name} ({outcome.source})"
        for name, outcome in zip(names, outcomes, strict=True)
    ]


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], object]]:
    """A progress bar on stderr after a second, where that is a terminal."""
    from tqdm import tqdm

    with tqdm(total=total, unit="frame", delay=1, leave=False, disable=not sys.stderr.isatty()) as bar:
        yield bar.update


def _print_outcomes(labels: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    from rich.table import Table
    from rich.text import Text

    from smart_caption_ros.evaluation.report import AREA_THRESHOLDS

    def figure(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    def row(figures: Figures) -> list[str]:
        cells = [f"{figure(figures.coverage[each])} ({figures.frames[each]})" for each in AREA_THRESHOLDS]
        return [*cells, f"{figure(figures.noun_support)} ({figures.noun_support_frames})"]

    table = Table("sequence", "captions", box=None, pad_edge=False)
    for threshold in AREA_THRESHOLDS:
        table.add_column(f"> {100 * threshold:g} %", justify="right")
    table.add_column("noun support", justify="right")
    sequences = list(dict.fromkeys(name for outcome in outcomes for name in outcome.report.sequences))
    for sequence in sequences if len(sequences) > 1 else []:
        for label, outcome in zip(labels, outcomes, strict=True):
            if sequence in outcome.report.sequences:
                cells = row(outcome.report.sequences[sequence])
                table.add_row(Text(printable(sequence)), Text(printable(label)), *cells)
    for label, outcome in zip(labels, outcomes, strict=True):
        table.add_row("all", Text(printable(label)), *row(outcome.report.overall))
    terminal = console()
    terminal.print("Coverage of objects that cover more of the image than this, and in how many frames there are any:")
    terminal.print(table)
    for label, outcome in zip(labels, outcomes, strict=True):
        of_whom = f" ({printable(label)})" if len(outcomes) > 1 else ""
        missed = Table("most missed", "missed", "of frames", box=None, pad_edge=False)
        for each in [each for each in outcome.report.classes if each.missed][:_LISTED]:
            missed.add_row(Text(printable(each.class_name)), str(each.missed), str(each.frames))
        near = Table("near misses", "noun assigned", "frames", "similarity", box=None, pad_edge=False)
        for miss in outcome.report.near_misses[:_LISTED]:
            similarity = f"{miss.similarity:.3f}"
            near.add_row(Text(printable(miss.class_name)), Text(printable(miss.noun)), str(miss.frames), similarity)
        for listed in (missed, near):
            if listed.row_count:
                listed.columns[0].header = Text(f"{listed.columns[0].header}{of_whom}")
                terminal.print()
                terminal.print(listed)


def _page(labels: Sequence[str], outcomes: Sequence[Outcome], facts: dict[str, Any]) -> str:
    from smart_caption_ros.evaluation.page import Column, coverage_page

    columns = [
        Column(
            label=label,
            facts={key.replace("_", " "): value for key, value in outcome.captions.items()},
            report=outcome.report,
            skipped=outcome.oddities.sentences(),
            best=_pictures(outcome.best),
            worst=_pictures(outcome.worst),
        )
        for label, outcome in zip(labels, outcomes, strict=True)
    ]
    shown = {
        "data": f"{facts['data']}, every frame" if facts["every"] == 1 else f"{facts['data']}, 1 of {facts['every']}",
        "objects": facts["objects"],
        "captions": ", ".join(labels),
        "word vectors": facts["word_vectors"],
        "pipeline": facts["pipeline"],
    }
    return coverage_page("Noun coverage", shown, columns)


def _pictures(frames: Sequence[ScoredFrame]) -> list[Picture]:
    """The frames drawn, but for those whose image cannot be read (with given captions, nothing has read it yet)."""
    from smart_caption_ros.evaluation.page import picture
    from smart_caption_ros.imaging import ImageError

    pictures = []
    for scored in frames:
        try:
            image_bgr = scored.frame.read_image()
        except ImageError as error:
            complain(f"{scored.frame.image_path} is not shown in the report: {error}")
            continue
        pictures.append(picture(scored.frame.name, image_bgr, scored.objects, scored.caption, scored.result))
    return pictures
