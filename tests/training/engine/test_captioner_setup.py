"""What a run knows of the objects in its photographs."""

from pathlib import Path

import pytest

from tests.training.small_coco_photographs import make_coco_photographs
from tests.training.small_flickr8k import SIZES, make_data, write_config
from training.engine.captioner_setup import set_up_captioner
from training.engine.experiment import load_run
from training.errors import DataError
from training.objectives.objective import ShownObjects

REWARDED = {
    "name": "rewarded", "epochs": 1, "learning_rate": 1e-5, "objective": "self_critical", "absent_objects_penalty": 0.3,
}  # fmt: skip
SYNONYMS = "person, man\ndog, puppy\ncat, kitten\nhorse\n"


def shown_objects(folder: Path, synonyms: str, **sources: dict[str, str]) -> ShownObjects | None:
    data = make_data(folder)
    make_coco_photographs(data)
    (data / "lexicon").mkdir(exist_ok=True)
    (data / "lexicon" / "chair_synonyms.txt").write_text(synonyms)
    options = {"sources": {"photos": {"dataset": "flickr8k"}, **sources}, "scored": ["photos"]}
    config = write_config(
        folder / "config.yaml",
        data={"dataset": "mixture", "options": options, "minimum_count": 1, "max_words": 8},
        phases=[REWARDED],
    )
    return set_up_captioner(load_run(config), data, folder / "features").captions.shown


def test_labelled_photographs_show_what_labels_and_captions_name_and_others_are_unknown(tmp_path: Path) -> None:
    shown = shown_objects(tmp_path, SYNONYMS, coco={"dataset": "coco_photographs"})
    assert shown is not None
    assert list(shown.classes) == [frozenset({"dog"}), *[None] * SIZES["train"]]


@pytest.mark.parametrize(
    ("synonyms", "sources", "complaint"),
    [
        (SYNONYMS, {}, "no training photograph is labelled with COCO's objects"),
        ("cat, kitten\n", {"coco": {"dataset": "coco_photographs"}}, "has no class 'dog', which photographs"),
        ("", {"coco": {"dataset": "coco_photographs"}}, "no class in the synonym list"),
    ],
)
def test_a_penalty_without_labels_or_words_is_refused(
    tmp_path: Path, synonyms: str, sources: dict[str, dict[str, str]], complaint: str
) -> None:
    with pytest.raises(DataError, match=complaint):
        shown_objects(tmp_path, synonyms, **sources)
