"""Time the CIDEr-D reward of self-critical training beside that of pycocoevalcap.

    python -m benchmarks.reward [--json FILE]

Both score 50 images with 5 beams each; the document frequencies are counted beforehand. Ours works on word ids.
pycocoevalcap's time includes splitting the sentences into n-grams, which it repeats for every reward. The captions are
random, with lengths and word frequencies as in Flickr8k.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Annotated

import numpy as np
import typer
from pycocoevalcap.cider.cider_scorer import CiderScorer

from benchmarks.environment import describe_environment, report
from training.command_line import JsonOption, run_command
from training.evaluation.metrics.cider_d import CiderD

IMAGES, BEAMS, MAX_WORDS = 50, 5, 20
CORPUS_IMAGES, REFERENCES, VOCABULARY = 3000, 5, 3000
"""Images of the corpus, reference captions of each, and number of words."""

Caption = list[int]


def measure(rounds: int, seed: int) -> dict[str, object]:
    """Compare the median CPU milliseconds of both implementations over ``rounds``, called in turn."""
    corpus, images, words = _random_captions(np.random.default_rng(seed))
    ours = CiderD(corpus, end_token=False)
    variants: dict[str, Callable[[], object]] = {
        "toolkit": _toolkit_reward(corpus, images, words),
        "ids": lambda: ours.score(images, words),
    }
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, score in variants.items():
            started = time.process_time()
            score()
            seconds[name].append(time.process_time() - started)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    return {
        "images": IMAGES,
        "beams": BEAMS,
        "cpu_ms_median": {name: round(value * 1e3, 3) for name, value in medians.items()},
        "times_faster": round(medians["toolkit"] / medians["ids"], 1),
    }


def _random_captions(random: np.random.Generator) -> tuple[list[list[Caption]], np.ndarray, np.ndarray]:
    """Return the reference captions of the corpus, the scored images (IMAGES,) and their beams' words.

    The words are ids (IMAGES, BEAMS, MAX_WORDS), padded with 0.
    """
    probabilities = 1 / np.arange(1, VOCABULARY + 1)
    probabilities /= probabilities.sum()

    def caption() -> Caption:
        return (random.choice(VOCABULARY, p=probabilities, size=random.integers(6, 18)) + 4).tolist()

    corpus = [[caption() for _ in range(REFERENCES)] for _ in range(CORPUS_IMAGES)]
    images = random.permutation(CORPUS_IMAGES)[:IMAGES]
    words = np.zeros((IMAGES, BEAMS, MAX_WORDS), np.int64)
    for row, image in enumerate(images):
        for beam in range(BEAMS):
            # The beginning of a reference and other words after it, so that some n-grams match and some do not.
            ids = (corpus[image][beam][: random.integers(3, 16)] + caption()[:3])[:MAX_WORDS]
            words[row, beam, : len(ids)] = ids
    return corpus, images, words


def _toolkit_reward(corpus: list[list[Caption]], images: np.ndarray, words: np.ndarray) -> Callable[[], None]:
    """Return a function that computes the reward by pycocoevalcap."""
    counted = CiderScorer()
    for captions in corpus:
        counted.cook_append("", [_text(caption) for caption in captions])
    counted.compute_doc_freq()
    references = [[_text(caption) for caption in corpus[image]] for image in images]
    hypotheses = [[_text(caption) for caption in beams] for beams in words.tolist()]

    def score() -> None:
        scorer = CiderScorer()
        for sentences, texts in zip(hypotheses, references, strict=True):
            for sentence in sentences:
                scorer.cook_append(sentence, texts)
        scorer.document_frequency = counted.document_frequency
        scorer.compute_cider()

    return score


def _text(ids: Caption) -> str:
    return " ".join(str(index) for index in ids if index)


def reward(
    rounds: Annotated[int, typer.Option(min=1, help="Number of times that each is called.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the captions.")] = 0,
    output: JsonOption = None,
) -> None:
    """Time the CIDEr-D reward of self-critical training beside that of pycocoevalcap."""
    report({**describe_environment(seed), **measure(rounds, seed)}, output)


def main() -> int:
    """Run the command and return its exit status."""
    return run_command(reward, "python -m benchmarks.reward")


if __name__ == "__main__":
    sys.exit(main())
