"""CIDEr-D of 50 images with 5 beams: ours on word ids beside pycocoevalcap's, both with the corpus already counted.

    python -m benchmarks.reward [--json FILE]

Captions are drawn at random (lengths and word frequencies like Flickr8k's). The toolkit's time includes cutting
sentences into n-grams, which it does anew for every reward.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pycocoevalcap.cider.cider_scorer import CiderScorer

from benchmarks.environment import describe_environment, report
from training.evaluation.metrics.cider_d import CiderD

IMAGES, BEAMS, CORPUS, CAPTIONS_AN_IMAGE, WORDS, MAX_WORDS = 50, 5, 3000, 5, 3000, 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reward", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    result = {**describe_environment(arguments.seed), **measure(arguments.rounds, arguments.seed)}
    report(result, arguments.json)
    return 0


def measure(rounds: int, seed: int) -> dict[str, object]:
    """Median CPU milliseconds of both, taking turns."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(1, WORDS + 1)
    share /= share.sum()

    def caption() -> list[int]:
        return (random.choice(WORDS, p=share, size=random.integers(6, 18)) + 4).tolist()

    corpus = [[caption() for _ in range(CAPTIONS_AN_IMAGE)] for _ in range(CORPUS)]
    images = random.permutation(CORPUS)[:IMAGES]
    words = np.zeros((IMAGES, BEAMS, MAX_WORDS), np.int64)
    for row, image in enumerate(images):
        for beam in range(BEAMS):
            # The beginning of a human caption and other words behind it: some n-grams match, some do not.
            spoken = (corpus[image][beam][: random.integers(3, 16)] + caption()[:3])[:MAX_WORDS]
            words[row, beam, : len(spoken)] = spoken
    ours = CiderD(corpus, end_token=False)
    counted = CiderScorer()
    for group in corpus:
        counted.cook_append("", [_text(human) for human in group])
    counted.compute_doc_freq()
    references = [[_text(human) for human in corpus[image]] for image in images]
    hypotheses = [[_text(row) for row in group] for group in words.tolist()]

    def toolkit() -> None:
        scorer = CiderScorer()
        for sentences, group in zip(hypotheses, references, strict=True):
            for sentence in sentences:
                scorer.cook_append(sentence, group)
        scorer.document_frequency = counted.document_frequency
        scorer.compute_cider()

    def ids() -> None:
        ours.score(images, words)

    seconds: dict[str, list[float]] = {"toolkit": [], "ids": []}
    variants: dict[str, Callable[[], None]] = {"toolkit": toolkit, "ids": ids}
    for _ in range(rounds):
        for name, run in variants.items():
            started = time.process_time()
            run()
            seconds[name].append(time.process_time() - started)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    return {
        "images": IMAGES,
        "beams": BEAMS,
        "cpu_ms_median": {name: round(value * 1e3, 3) for name, value in medians.items()},
        "times_faster": round(medians["toolkit"] / medians["ids"], 1),
    }


def _text(ids: list[int]) -> str:
    return " ".join(str(index) for index in ids if index)


if __name__ == "__main__":
    sys.exit(main())
