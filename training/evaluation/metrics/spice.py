"""SPICE 1.0 by the COCO toolkit's jar; needs Java and the Stanford CoreNLP models, which are not in the toolkit."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from training.evaluation.metrics.java import run_java, toolkit_folder
from training.evaluation.metrics.metric import Captions, Metric, MetricError, References, check_same_images, mean_metric

MODELS = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")
LIMIT_S, LIMIT_PER_CAPTION_S = 900.0, 1.0


def missing_models() -> str | None:
    """Return why SPICE cannot run and how to get its models; None if they are installed."""
    library = toolkit_folder("spice") / "lib"
    if all((library / name).is_file() for name in MODELS):
        return None
    return (
        "its models are not here; `python -m pycocoevalcap.spice.get_stanford_models` downloads them (about 500 MB), "
        "or copy " + " and ".join(MODELS) + f" of stanford-corenlp-full-2015-12-09.zip into {library}; "
        "its jar was written for Java 8"
    )


def spice(models: Sequence[tuple[Captions, References]]) -> list[Metric]:
    """Compute SPICE of several models' captions with one process, because parsing the references takes most time.
    ``models``: for each model and image a caption, and for each image the human captions, space-joined tokens.

    Raises:
        MetricError: there is no Java, the models are missing, or SPICE failed or took too long.
        ValueError: captions and references do not name the same images.
    """
    if reason := missing_models():
        raise MetricError(reason)
    questions = []
    for candidates, references in models:
        check_same_images(candidates, references)
        questions += [{"test": caption, "refs": list(references[image])} for image, caption in candidates.items()]
    numbered = [{"image_id": number, **question} for number, question in enumerate(questions)]
    with tempfile.TemporaryDirectory(prefix="spice-") as folder:
        asked, answered = Path(folder) / "in.json", Path(folder) / "out.json"
        asked.write_text(json.dumps(numbered), encoding="utf-8")
        run_java(
            "SPICE",
            ["-Xmx8G", "-jar", "spice-1.0.jar", str(asked), "-out", str(answered), "-subset", "-silent"],
            toolkit_folder("spice"),
            [],
            LIMIT_S + LIMIT_PER_CAPTION_S * len(questions),
        )
        try:
            answers = json.loads(answered.read_text(encoding="utf-8"))
            scores = {answer["image_id"]: float(answer["scores"]["All"]["f"]) for answer in answers}
            found = np.array([scores[number] for number in range(len(questions))])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MetricError(f"SPICE left no scores ({type(error).__name__}: {error})") from None
    return [mean_metric("spice", part) for part in np.split(found, len(models))]
