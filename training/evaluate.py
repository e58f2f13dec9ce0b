"""Score a captioner: ``python -m training.evaluate --bundle FOLDER --split dev|test [--json FILE] [--record]``."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from smart_caption_ros.captioning import BundleError, Captioner, EngineError
from smart_caption_ros.captioning.bundle import write_manifest
from training.data.flickr8k import SPLITS, DataError, Flickr8k
from training.data.tokenizer import tokenize
from training.metrics.coco import score_captions
from training.train import data_folder

TOKENISER = "spaCy English tokeniser, lower case, without punctuation (references and captions alike)"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m training.evaluate", description=__doc__)
    parser.add_argument("--bundle", type=Path, help="bundle folder (default: the one that ships)")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--dataset", choices=("flickr8k",), default="flickr8k")
    parser.add_argument("--split", choices=SPLITS, default="dev")
    parser.add_argument("--json", type=Path, help="write scores and captions here")
    parser.add_argument("--record", action="store_true", help="write the scores into the bundle's manifest")
    arguments = parser.parse_args()
    try:
        captioner = Captioner.from_bundle(arguments.bundle, engine=arguments.engine)
        dataset = Flickr8k(data_folder() / "flickr8k")
        result = evaluate(captioner, dataset, arguments.split)
    except (BundleError, DataError, EngineError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{captioner.model} on {arguments.dataset} {arguments.split}, {result['images']} images")
    print("  ".join(f"{name} {value:.4f}" for name, value in result["scores"].items()))
    if arguments.json:
        unfinished = arguments.json.with_name(f"{arguments.json.name}.unfinished")
        unfinished.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        unfinished.replace(arguments.json)
    if arguments.record:
        record(captioner, f"{arguments.dataset}_{arguments.split}", result)
    return 0


def evaluate(captioner: Captioner, dataset: Flickr8k, split: str, batch_size: int = 16) -> dict[str, Any]:
    """Captions and corpus scores of a split, as the robot would say them."""
    names = dataset.split(split)
    captions: dict[str, str] = {}
    for start in tqdm(range(0, len(names), batch_size), desc=split, unit="batch"):
        batch = names[start : start + batch_size]
        captions.update(zip(batch, captioner.caption_batch(list(dataset.read_images(batch))), strict=True))
    candidates = {name: " ".join(tokenize(caption)) for name, caption in captions.items()}
    references = {name: [" ".join(tokenize(caption)) for caption in dataset.captions[name]] for name in names}
    return {
        "model": captioner.model,
        "engine": captioner.engine,
        "split": split,
        "images": len(names),
        "beam_size": captioner.bundle.beam_size,
        "scores": score_captions(candidates, references),
        "mean_words": float(np.mean([len(caption.split()) for caption in candidates.values()])),
        "distinct_words": len({word for caption in candidates.values() for word in caption.split()}),
        "tokeniser": TOKENISER,
        "captions": captions,
    }


def record(captioner: Captioner, key: str, result: dict[str, Any]) -> None:
    """Put the scores into the manifest, where ``smart-caption bundle inspect`` shows them."""
    manifest = dict(captioner.bundle.manifest)
    scores = {name: round(value, 4) for name, value in result["scores"].items()}
    facts = {key: result[key] for key in ("images", "beam_size", "tokeniser", "engine")}
    manifest["scores"] = {
        **manifest.get("scores", {}),
        key: {**scores, **facts, "date": time.strftime("%Y-%m-%d")},
    }
    write_manifest(captioner.bundle.path, manifest)


if __name__ == "__main__":
    sys.exit(main())
