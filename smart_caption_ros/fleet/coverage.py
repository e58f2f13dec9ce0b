"""Caption the frames of a coverage benchmark on many workers, before they are scored.

Captioning takes nearly all of the time. The captions go into the benchmark's cache, and one process scores them in the
order of the frames, so that the figures do not depend on the number of workers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from smart_caption_ros.bags.message_captioner import ModelSettings
from smart_caption_ros.evaluation.coverage_benchmark import BundleCaptions, model_key
from smart_caption_ros.fleet.shards import loaded_captioner
from smart_caption_ros.fleet.workers import Workers, run_all
from smart_caption_ros.imaging import ImageError, read_image
from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.ground_truth import GroundTruth

_SHARD_FRAMES = 200


@dataclass(frozen=True)
class CaptionImages:
    """Images of one sequence. Images that cannot be read get no caption; the process that scores reports them."""

    name: str
    model: ModelSettings
    paths: tuple[Path, ...]

    def run(self) -> tuple[str, dict[Path, str]]:
        """Return the key of the model, and the captions by image."""
        captioner = loaded_captioner(self.model)
        captions = {}
        for path in self.paths:
            try:
                captions[path] = captioner.caption(read_image(path)).text
            except ImageError:
                continue
        return model_key(captioner), captions


def caption_ahead(
    frames: GroundTruth,
    every: int,
    captions: BundleCaptions,
    model: ModelSettings,
    workers: Workers,
    retries: int,
    progress: Callable[[int], object] = lambda images: None,
) -> tuple[int, list[str]]:
    """Caption the images whose captions are not in the cache yet.

    Args:
        progress: called with the number of images of each shard that ended.

    Returns:
        The number of captions that were made, and a sentence for each shard that failed.

    Raises:
        SourceError: the workers run another model or engine than this process.
    """
    made, failures = 0, []
    for work, ended in run_all(list(_shards(frames, every, captions, model)), workers, retries):
        progress(len(work.paths))
        if ended.error:
            failures.append(f"{work.name}: {ended.error}")
            continue
        key, texts = ended.value
        if key != captions.key:
            raise SourceError(
                f"the workers run another model, engine or version than this process: {key} instead of "
                f"{captions.key}; install the same there, and name the engine with --engine"
            )
        captions.keep(texts)
        made += len(texts)
    captions.take_all_from_cache()
    return made, failures


def _shards(frames: GroundTruth, every: int, captions: BundleCaptions, model: ModelSettings) -> Iterator[CaptionImages]:
    for sequence in frames.lengths:
        paths = [frame.image_path.absolute() for frame in frames.sequence_frames(sequence, every)]
        paths = [path for path in paths if captions.lacks(path)]
        for start in range(0, len(paths), _SHARD_FRAMES):
            part = paths[start : start + _SHARD_FRAMES]
            yield CaptionImages(f"{sequence}, {part[0].name} to {part[-1].name}", model, tuple(part))
