"""`smart-caption describe` into bags of captions: one with --output, many with --shards."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from smart_caption_ros.cli.options import start_workers
from smart_caption_ros.cli.terminal import (
    FAILED,
    check_output_file,
    log_to_terminal,
    print_json,
    printable,
    progress_bar,
    report_error,
    status,
)
from smart_caption_ros.text import counted

if TYPE_CHECKING:
    from smart_caption_ros.bags.caption_bag import BagOptions, BagReport
    from smart_caption_ros.bags.message_captioner import ModelSettings
    from smart_caption_ros.cli.describe import DescribeOptions
    from smart_caption_ros.fleet.shards import FramesReport
    from smart_caption_ros.fleet.workers import Attempt

CUT_OFF = 3
"""Exit status if a bag was cut off and everything that can be read of it was captioned."""


def describe_one_bag(paths: Sequence[str], output: Path, options: DescribeOptions) -> None:
    """Caption a bag into a bag; exits with a status other than 0 if not everything was captioned."""
    from smart_caption_ros.bags.caption_bag import caption_bag, check_bag_output
    from smart_caption_ros.bags.message_captioner import MessageCaptioner
    from smart_caption_ros.sources.bag import image_topics
    from smart_caption_ros.sources.bag_storage import BagStorage, is_bag

    if len(paths) != 1:
        raise typer.BadParameter("Name one bag, or a folder for many with --shards.", param_hint="--output")
    bag = Path(paths[0])
    if not is_bag(bag):
        raise typer.BadParameter(f"{bag} is not a ROS 2 bag.", param_hint="PATH")
    log_to_terminal()
    check_output_file(output, "--output", (bag, *bag.glob("*")))
    check_bag_output(output, force=options.force)
    with BagStorage(bag, salvage=True) as storage:  # before the model is loaded
        total = sum(image_topics(storage).values())
    with status("loading the model"):
        captioner = MessageCaptioner(model_settings(options).load_captioner(), options.trust)
    with progress_bar(total, "image") as bar:
        report = caption_bag(bag, output, captioner, _bag_options(options), bar.update)
    if options.as_json:
        print_json(report.to_json())
    else:
        for sentence in report.sentences():
            print(printable(sentence))
    _exit_with_status([report])


def describe_shards(paths: Sequence[str], folder: Path, options: DescribeOptions) -> None:
    """Caption many inputs into a folder of files; exits with a status other than 0 if not everything was captioned."""
    from smart_caption_ros.fleet.inputs import find_inputs
    from smart_caption_ros.fleet.shards import shards
    from smart_caption_ros.fleet.workers import run_all

    log_to_terminal()
    inputs = find_inputs(paths, options.list_file, leave_out=folder)
    all_works = shards(inputs, folder, model_settings(options, options.threads).absolute(), _bag_options(options))
    works = [work for work in all_works if options.force or not work.output.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    ended: dict[str, Attempt] = {}
    with closing(start_workers(options)) as workers, status(f"captioning: 0 of {len(works)} inputs") as show:
        for work, attempt in run_all(works, workers, options.retries):
            ended[work.name] = attempt
            show(f"captioning: {len(ended)} of {len(works)} inputs")
    attempts = [(work.name, ended[work.name]) for work in works]
    reports = [(name, attempt.value) for name, attempt in attempts if not attempt.error]
    failures = {name: attempt.error for name, attempt in attempts if attempt.error}
    if options.as_json:
        print_json({"done": {name: report.to_json() for name, report in reports}, "failed": failures})
    else:
        _print_summary(reports, folder, skipped=len(all_works) - len(works))
    for name, error in failures.items():
        report_error(f"{name} failed: {error}")
    if failures:
        report_error(f"{len(failures)} of {len(works)} failed; the same command tries them again, and skips the others")
        raise typer.Exit(FAILED)
    _exit_with_status([report for _, report in reports])


def model_settings(options: DescribeOptions, threads: int | None = None) -> ModelSettings:
    """Return the settings of the captioner."""
    from smart_caption_ros.bags.message_captioner import ModelSettings

    return ModelSettings(
        bundle=options.bundle,
        engine=options.engine,
        detector=options.detector,
        objects_guide=options.objects_guide,
        guide_strength=options.guide_strength,
        threads=threads,
        trust=options.trust,
    )


def _bag_options(options: DescribeOptions) -> BagOptions:
    from smart_caption_ros.bags.caption_bag import BagOptions

    return BagOptions(tuple(options.topic or ()), options.every, options.with_images, options.force)


def _print_summary(reports: Sequence[tuple[str, BagReport | FramesReport]], folder: Path, skipped: int) -> None:
    for name, report in reports:
        if report.failed:
            images = counted(report.failed, "image")
            report_error(f"{name}: {images} without a caption; the first: {report.first_problem}")
        for sentence in report.left_out:
            report_error(f"{name}: {sentence}")
        if report.damage:
            report_error(f"{name}: {report.damage}")
    images = counted(sum(report.images - report.failed for _, report in reports), "image")
    existing = f"; {counted(skipped, 'input')} skipped, whose files exist" if skipped else ""
    print(printable(f"{counted(len(reports), 'file')} with the captions of {images} in {folder}{existing}"))


def _exit_with_status(reports: Sequence[BagReport | FramesReport]) -> None:
    if any(report.damage for report in reports):
        raise typer.Exit(CUT_OFF)
    if any(report.failed for report in reports):
        raise typer.Exit(FAILED)
