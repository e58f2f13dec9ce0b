"""Checks of a written bundle before it gets its name: captions and objects as torch gives them, both forms alike."""

from collections.abc import Callable

import numpy as np

from export.bundle import ExportError
from export.options import ExportOptions
from export.source import Source
from export.verify import compare, compare_detections, compare_forms, synthetic_images
from smart_caption_ros.captioning import Bundle, Captioner
from smart_caption_ros.captioning.bundle import VISION_GRAPH
from smart_caption_ros.engines import create_engine
from smart_caption_ros.imaging import resize_image
from training.data.flickr8k import Flickr8k
from training.errors import DataError
from training.paths import data_folder

CPU = "onnxruntime-cpu"
MINIMUM_AGREEMENT = {"float32": 0.99, "float16": 0.9, "int8": 0.95}
"""Share of captions that must be torch's, by precision. A tie between two beams may fall either way. In float16 the
visual tokens differ as well; int8 has passed a bar of its own (:mod:`export.passes.int8`) on many more images."""
TRAINED_AGREEMENT = 0.9
"""The same for a captioner with all layers in 8 bits. Its graph computes what torch computes, but where an input lies
in the middle of two of its 256 values, the last bit of a sum decides which of them it becomes, and then between beams
of nearly the same score: of 400 captions 379 were torch's."""
FORMS_AGREEMENT = {"float32": 0.99, "float16": 0.9, "int8": 0.7}
"""Share of captions that both forms give alike, by precision. The static form of a captioner that was trained in 8 bits
has its weights, but its products take their inputs as they are."""
DETECTION_TOLERANCE = {"float32": 0.005, "float16": 0.05, "int8": 0.005}
"""Largest difference of class scores and of box edges (fractions of the frame) from torch's, by precision."""
_STATIC_IMAGES = 10  # to compare the two forms on; the static one decodes each to the longest length


def check_of(source: Source, options: ExportOptions) -> Callable[[Bundle], None]:
    """Return the check that :func:`export.bundle.write_bundle` calls with the unfinished bundle; it prints what it
    finds and raises ExportError if the bundle disagrees with torch.
    """
    images, description = _images(options.check_images, source.image_size)
    minimum = TRAINED_AGREEMENT if source.trained.eight_bits else MINIMUM_AGREEMENT[options.precision]

    def check_captions(bundle: Bundle) -> None:
        robot = Captioner(bundle, create_engine(CPU))
        captions = [robot.caption(image) for image in images]
        agreement = compare(source.trained, images, captions, bundle.beam_size, bundle.max_words, source.visual)
        print(
            f"torch and {robot.engine}: {agreement.identical_captions} of {agreement.images} captions of {description} "
            f"identical, log probabilities within {agreement.largest_log_probability_difference:.1e}"
        )
        if options.rounded:
            unrounded = compare(source.unrounded, images, captions, bundle.beam_size, bundle.max_words, source.visual)
            print(f"unrounded weights give {unrounded.identical_captions} of {unrounded.images} of the same captions")
        if agreement.identical_captions < minimum * agreement.images:
            raise ExportError("the exported graphs do not say what torch says; no bundle was written")

    def check_objects(bundle: Bundle) -> None:
        difference = compare_detections(source.trained, create_engine(CPU).load(bundle.path / VISION_GRAPH), images)
        print(f"objects: class scores within {difference.score:.1e} of torch's, boxes within {difference.box:.1e}")
        if max(difference) > DETECTION_TOLERANCE[options.precision]:
            raise ExportError("the exported graph does not find what torch finds; no bundle was written")

    def check_forms(bundle: Bundle) -> None:
        forms = compare_forms(bundle, create_engine(CPU), images[:_STATIC_IMAGES])
        print(
            f"static and Loop form: {forms.identical_captions} of {forms.images} captions identical, "
            f"log probabilities within {forms.largest_log_probability_difference:.1e}"
        )
        if forms.identical_captions < FORMS_AGREEMENT[options.precision] * forms.images:
            raise ExportError("the static form does not say what the Loop form says; no bundle was written")

    def check(bundle: Bundle) -> None:
        check_captions(bundle)
        if source.detects:
            check_objects(bundle)
        if bundle.static_graph is not None:
            check_forms(bundle)

    return check


def _images(count: int, size: tuple[int, int]) -> tuple[np.ndarray, str]:
    """Frames of the vision graph's size to compare on, (count, H, W, 3) uint8, and what they are."""
    try:
        dataset = Flickr8k(data_folder() / "flickr8k")
        photographs = dataset.read_images(dataset.split("dev")[:count])
        return np.stack([resize_image(photograph, size) for photograph in photographs]), "dev photographs"
    except DataError:
        images = synthetic_images(count, max(size))
        return np.stack([resize_image(image, size) for image in images]), "synthetic images"
