"""Measure what the guidance of words by detected objects does to captions, and what it costs.

    python -m benchmarks.objects_guide BUNDLE --json benchmarks/objects_guide.json

Every setting captions the dev part of ``coco_photographs`` and every fourth frame of the household sequences in the
package, one frame after the other on one thread, the settings in turn on each frame. A setting is a mode (off, rank,
bias, both); after colons may follow the strength and the share by which absent classes are lowered. Reported for
each data set and setting:

- ``cider_d`` against the human captions (for ``household`` those of the renderer),
- ``classes_named``: share of the annotated classes of a frame that its caption names,
- ``noun_support``: share of the nouns of a caption that name an annotated class,
- ``objects_supported``: share of the mentions of COCO objects that are annotated or in a human caption, by CHAIR,
- ``process_ms``: median processor time of image to caption, and ``decode_ms``: median wall-clock time of the search,
  with the computation of the biases,
- ``steps``: mean number of decoding steps,
- ``changed``: share of the captions that differ from those of the first setting.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from tqdm import tqdm

from benchmarks.environment import describe_environment, report
from smart_caption_ros.captioning import BundleError, Captioner, EngineError, GuideMode
from smart_caption_ros.grounding import NounCoverage, ObjectsGuide
from smart_caption_ros.grounding.objects_guide import ABSENCE_SHARE, STRENGTH
from smart_caption_ros.sources.sequences import SAMPLE, Sequences, sample_sequences_path
from training.command_line import JsonOption, run_command
from training.data.coco import read_captions
from training.data.tokenizer import tokenize
from training.errors import DataError
from training.evaluation.metrics.chair import Synonyms, chair
from training.evaluation.metrics.cider_d import TextCiderD
from training.evaluation.references import References
from training.paths import data_folder

ENGINE = "onnxruntime-cpu"
SETTINGS = "off rank:2 bias:1 bias:2 bias:3 bias:4 bias:2:0 bias:2:1 both:2"
_HOUSEHOLD_STEP = 4  # neighbouring frames show the same objects


class Setting(NamedTuple):
    """A setting of the guide."""

    mode: GuideMode
    strength: float
    absence_share: float

    @classmethod
    def parse(cls, text: str) -> "Setting":
        """Read ``mode[:strength[:share]]``.

        Raises:
            ValueError: it is something else.
        """
        mode, *numbers = text.split(":")
        strength, share = [*map(float, numbers), *(STRENGTH, ABSENCE_SHARE)[len(numbers) :]]
        return cls(GuideMode(mode), strength, share)


@dataclass(frozen=True)
class Frames:
    """Frames with human captions and annotated objects."""

    images: Iterator[tuple[str, np.ndarray]]
    """Ids and frames, (H, W, 3) uint8 BGR."""
    references: Mapping[str, Sequence[str]]
    """By image id."""
    corpus: Sequence[Sequence[str]] | None
    """Captions by image, in which CIDEr-D counts documents; None: the references."""
    classes: Mapping[str, Sequence[str]]
    """Distinct class names of the annotated objects, by image id."""


@dataclass(frozen=True)
class Said:
    """What one setting says of a frame."""

    text: str
    process_ms: float
    decode_ms: float
    steps: int


def coco_photographs() -> Frames:
    """Open the dev part of ``coco_photographs``."""
    found = References.of_coco_photographs(data_folder(), "dev")
    read, objects = found.read_image, found.objects
    assert read is not None
    assert objects is not None
    return Frames(
        ((image, read(image)) for image in found.captions),
        found.captions,
        found.frequency_captions,
        {image: sorted(set(names)) for image, names in objects.items()},
    )


def household() -> Frames:
    """Open the household sequences in the package."""
    written = read_captions(sample_sequences_path() / "captions.json")
    ids = {str(Path(file).with_suffix("")): image for image, file in written.file_names.items()}
    frames = {ids[frame.name]: frame for frame in Sequences(SAMPLE).every(_HOUSEHOLD_STEP)}
    classes = {image: sorted({each.class_name for each in frame.objects or ()}) for image, frame in frames.items()}
    return Frames(
        ((image, frame.image_bgr) for image, frame in frames.items()),
        {image: written.captions[image] for image in frames},
        None,
        classes,
    )


DATASETS = {"coco_photographs": coco_photographs, "household": household}


def caption_frames(
    captioner: Captioner, frames: Frames, guides: Mapping[str, ObjectsGuide]
) -> dict[str, dict[str, Said]]:
    """Caption every frame with every setting; by setting and image id."""
    said: dict[str, dict[str, Said]] = {setting: {} for setting in guides}
    for image, image_bgr in tqdm(frames.images, total=len(frames.references), unit="frame"):
        for setting, guide in guides.items():
            captioner.guide = guide
            started_ns = time.process_time_ns()
            caption = captioner.caption(image_bgr)
            process_ms = (time.process_time_ns() - started_ns) / 1e6
            said[setting][image] = Said(caption.text, process_ms, 1000 * caption.timing.decode_s, caption.timing.steps)
    return said


def score(frames: Frames, said: Mapping[str, Mapping[str, Said]], coverage: NounCoverage) -> dict[str, object]:
    """Score the captions of every setting."""
    references = {image: [_words(text) for text in texts] for image, texts in frames.references.items()}
    corpus = None if frames.corpus is None else [[_words(text) for text in texts] for texts in frames.corpus]
    cider = TextCiderD(references, corpus)
    synonyms = Synonyms.load(data_folder() / "lexicon" / "chair_synonyms.txt")
    first = next(iter(said.values()))
    scores: dict[str, object] = {}
    for setting, of_images in said.items():
        texts = {image: _words(of_images[image].text) for image in references}
        results = [coverage.score(of_images[image].text, frames.classes[image]) for image in references]
        with_classes = [result for result in results if result.classes]
        supported = [result.noun_support for result in results if result.noun_support is not None]
        known = {
            image: [name for name in names if name in synonyms.class_of] for image, names in _spelt(frames).items()
        }
        mentions = {metric.name: metric.value for metric in chair(texts, references, known, synonyms)}
        scores[setting] = {
            "cider_d": round(cider.metric(texts).value, 4),
            "classes_named": round(
                float(np.mean([1 - len(each.missed_classes) / len(each.classes) for each in with_classes])), 4
            ),
            "noun_support": round(float(np.mean(supported)), 4),
            "objects_supported": round(mentions["objects_supported"], 4),
            "process_ms": round(float(np.median([each.process_ms for each in of_images.values()])), 2),
            "decode_ms": round(float(np.median([each.decode_ms for each in of_images.values()])), 2),
            "steps": round(float(np.mean([each.steps for each in of_images.values()])), 2),
            "changed": round(float(np.mean([of_images[image].text != first[image].text for image in references])), 3),
        }
    return scores


def _words(text: str) -> str:
    return " ".join(tokenize(text))


def _spelt(frames: Frames) -> dict[str, list[str]]:
    """The classes as the list of synonyms spells them."""
    return {
        image: ["tv" if name == "television" else name for name in names] for image, names in frames.classes.items()
    }


def objects_guide(
    bundle: Annotated[Path, typer.Argument(help="Bundle whose search can be guided.")],
    output: JsonOption = None,
    settings: Annotated[str, typer.Option(help="Settings, with spaces between them.")] = SETTINGS,
) -> None:
    """Measure what the guidance of words by objects does to captions, and what it costs."""
    coverage = NounCoverage.load()
    chosen = {text: Setting.parse(text) for text in settings.split()}
    guides = {
        text: ObjectsGuide(each.mode, each.strength, each.absence_share, finder=coverage.finder)
        for text, each in chosen.items()
    }
    captioner = Captioner.from_bundle(bundle, ENGINE, threads=1)
    result: dict[str, object] = {"benchmark": "objects_guide", "model": captioner.model, "engine": captioner.engine}
    for name, open_frames in DATASETS.items():
        frames = open_frames()
        result[name] = score(frames, caption_frames(captioner, frames, guides), coverage)
    report({**result, "environment": describe_environment(seed=0)}, output)


def main() -> int:
    """Run the command and return its exit status."""
    errors = (BundleError, DataError, EngineError, ValueError)
    return run_command(objects_guide, "python -m benchmarks.objects_guide", errors)


if __name__ == "__main__":
    sys.exit(main())
