"""``python -m recipes.rooms``: sources of captions, splits, resuming and refusals."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from recipes.image_content import ContentTeacher
from recipes.rooms.__main__ import main
from tests.recipes.rooms.small_rooms import WITHHELD, make_rooms
from training.configs.schema import DataConfig
from training.data.coco_dataset import CocoDataset, CocoOptions
from training.data.datasets import open_dataset
from training.errors import DataError


def run(monkeypatch: pytest.MonkeyPatch, data: Path, output: Path, dev: int = 1) -> int:
    monkeypatch.setattr(sys, "argv", ["rooms", "-o", str(output), "--data", str(data), "--dev", str(dev)])
    return main()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return make_rooms(tmp_path / "data")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a data set, beside the data that it was made of; the tests do not write to it."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        assert run(patch, make_rooms(folder / "data"), folder / "out") == 0
    return folder / "out"


def captions(output: Path, split: str = "train") -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for entry in json.loads((output / f"captions_{split}.json").read_text())["annotations"]:
        found.setdefault(entry["image_id"], []).append((entry["source"], entry["caption"]))
    return found


def everything(output: Path) -> dict[str, list[tuple[str, str]]]:
    return captions(output) | captions(output, "dev")


def test_every_photograph_gets_captions_of_its_best_sources(made: Path) -> None:
    found = everything(made)
    assert found["coco_val2017_captions-000000000007"] == [("human_caption", "a dog on a couch")]
    assert ("questions", "a room with a brown table and two chairs") in found["nyu_rooms-image1"]
    assert ("questions", "a lamp and a book on a table in a room") in found["nyu_rooms-image1"]
    assert ("human_sentences", "a kitchen with a sink under the window and white walls") in found["scenes-000001"]
    assert found["scenes-000003"][0] == ("retrieved", "a bed next to a window in a bedroom")
    # Nobody has said anything about the beach, and no teacher knows more than sky and grass.
    assert "scenes-000002" not in found
    # Captions of photographs that are reserved for measuring are never used.
    withheld = WITHHELD.lower().rstrip(".")
    assert all(sentence != withheld for pairs in found.values() for _, sentence in pairs)
    held_out = captions(made, "dev")
    assert len(held_out) == 1
    assert {source for pairs in held_out.values() for source, _ in pairs} <= {"human_caption", "human_sentences"}


def test_the_result_is_a_coco_data_set_for_training(made: Path) -> None:
    names = {split: f"out/captions_{split}.json" for split in ("train", "dev")}
    dataset = CocoDataset.open(made.parent, CocoOptions(captions=names, photographs="out/images"))
    for split in names:
        images = dataset.split(split)
        dataset.check_photographs(images)
        assert dataset.read_images(images).shape == (len(images), 224, 224, 3)
    record = json.loads((made / "captions_train.json").read_text())["images"]
    assert {image["origin"] for image in record} <= {"nyu_rooms", "scenes", "coco_val2017_captions"}
    assert all((image["width"], image["height"]) == (120, 100) for image in record)


def test_an_experiment_reads_the_training_captions_of_the_sources_that_it_names(made: Path) -> None:
    options = {"folder": str(made), "sources": ["human_caption", "questions"]}
    dataset = open_dataset(DataConfig(dataset="rooms", options=options), made.parent / "data")
    assert {image: list(dataset.captions[image]) for image in dataset.split("train")} == {
        image: [sentence for source, sentence in pairs if source in options["sources"]]
        for image, pairs in captions(made).items()
        if any(source in options["sources"] for source, _ in pairs)
    }
    assert dataset.split("dev") == list(captions(made, "dev"))
    unknown = {"folder": str(made), "sources": ["people"]}
    with pytest.raises(DataError, match=r"no caption has the source 'people'; the file has .*human"):
        open_dataset(DataConfig(dataset="rooms", options=unknown), made.parent / "data")


def test_captions_of_dev_photographs_are_not_retrieved_for_others(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coco = data / "coco_val2017_captions" / "images"
    shutil.copy(coco / "000000000007.jpg", coco / "000000000008.jpg")  # the pool's captions are about photograph 8
    assert run(monkeypatch, data, tmp_path / "out", dev=100) == 0
    dev, train = captions(tmp_path / "out", "dev"), captions(tmp_path / "out")
    described = {sentence for pairs in dev.values() for _, sentence in pairs}
    assert "a bed next to a window in a bedroom" in described
    assert train
    assert not described & {sentence for pairs in train.values() for _, sentence in pairs}


def test_a_second_run_gives_the_same_and_asks_no_teacher_twice(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, output = made.parent / "data", shutil.copytree(made, tmp_path / "out")
    (output / "teachers" / "scenes" / "000003.json").unlink()
    asked: list[object] = []
    find = ContentTeacher.find
    monkeypatch.setattr(ContentTeacher, "find", lambda self, image: asked.append(image) or find(self, image))
    assert run(monkeypatch, data, output) == 0
    assert "1 photographs have no caption" in capsys.readouterr().out
    assert len(asked) == 1
    assert (output / "captions_train.json").read_bytes() == (made / "captions_train.json").read_bytes()
    assert not list(output.rglob("*.unfinished"))
    # Answers of other teachers are not reused.
    (output / "teachers" / "teachers.json").write_text('{"answers": 0}')
    (output / "teachers" / "scenes" / "000003.json").write_text('{"objects": [], "areas": []}')
    run(monkeypatch, data, output)
    assert json.loads((output / "teachers" / "scenes" / "000003.json").read_text())["areas"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("nyu_rooms/questions.jsonl", '{"file": "image1.jpg"}', "entry 1: questions is missing"),
        ("nyu_rooms/questions.jsonl", "nonsense", "line 1: not JSON"),
        ("nyu_rooms/images.zip", "no archive", "cannot be read"),
        ("scenes/scenes.jsonl", '{"file": "a.jpg", "scene": "b", "captions": [], "descriptions": 1}', "descriptions"),
        ("coco_val2017_captions/captions_val2017.json", "{}", "has a list of annotations; this one has none"),
        ("coco_mini/captions_val2017.json", "[]", "a COCO annotation file is an object"),
        ("detectors/ade20k_classes.txt", "wall\nbed\n", "fifth column"),
        ("detectors/yolox_nano.onnx", "no graph", "yolox_nano.onnx"),
        ("scenes/scenes.jsonl", None, "scenes.jsonl"),
        ("nyu_rooms/images.zip", None, "nyu_rooms"),
    ],
)
def test_missing_and_malformed_data_is_refused_in_a_sentence(
    name: str,
    text: str | None,
    message: str,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (data / name).unlink()
    if text is not None:
        (data / name).write_text(text)
    assert run(monkeypatch, data, tmp_path / "out") == 1
    error = capsys.readouterr().err
    assert "error: " in error
    assert message in error
    assert not (tmp_path / "out" / "captions_train.json").exists()


def test_a_missing_data_folder_is_refused_with_the_variable_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, tmp_path / "nowhere", tmp_path / "out") == 1
    assert "SMART_CAPTION_DATA" in capsys.readouterr().err
