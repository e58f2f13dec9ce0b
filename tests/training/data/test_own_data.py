"""The user's own pictures: every format of captions, splits, and what is left out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from training.configs.schema import DataConfig
from training.data.caption_dataset import CaptionDataset
from training.data.checking import check_data, unusable_pictures
from training.data.datasets import open_dataset, provenance
from training.errors import DataError

CAPTIONS = {f"{place}.png": [f"a picture, number {place}", f"ein Bild {place}"] for place in range(10)}


def draw(path: Path, grey: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.full((24, 32, 3), grey, np.uint8))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for place, name in enumerate(CAPTIONS):
        draw(tmp_path / "own" / name, 20 * place)
    return tmp_path / "own"


def rows(keys: tuple[str, str]) -> list[dict[str, str]]:
    return [{keys[0]: name, keys[1]: text} for name, texts in CAPTIONS.items() for text in texts]


def delimited(delimiter: str) -> str:
    lines = [delimiter.join(('"' + value + '"') for value in row.values()) for row in rows(("image", "caption"))]
    return "\ufeff" + "\n".join([delimiter.join(("Image", "caption")), *lines])


def coco() -> str:
    images = [{"id": place, "file_name": name} for place, name in enumerate(CAPTIONS)]
    captions = [{"image_id": place, "caption": t} for place, texts in enumerate(CAPTIONS.values()) for t in texts]
    return json.dumps({"images": images, "annotations": captions})


def karpathy() -> str:
    return json.dumps(
        {"images": [{"filename": name, "sentences": [{"raw": t} for t in texts]} for name, texts in CAPTIONS.items()]}
    )


TABLES: dict[str, Callable[[], str]] = {
    "captions.csv": lambda: delimited(","),
    "captions.tsv": lambda: delimited("\t"),
    "captions.jsonl": lambda: "\n".join(json.dumps({"file_name": n, "text": t}) for n, t in CAPTIONS.items()),
    "coco.json": coco,
    "karpathy.json": karpathy,
    "list.json": lambda: json.dumps(rows(("path", "description"))),
}


def opened(data: Path, dataset: str = "table", **options: Any) -> CaptionDataset:
    return open_dataset(DataConfig(dataset=dataset, options=options), data)


def whole(dataset: CaptionDataset) -> dict[str, list[str]]:
    return {name: list(dataset.captions[name]) for split in ("train", "dev") for name in dataset.split(split)}


@pytest.mark.parametrize("table", TABLES)
def test_every_format_of_a_table_has_the_same_pictures_and_captions(pictures: Path, table: str) -> None:
    (pictures / table).write_text(TABLES[table](), encoding="utf-8")
    dataset = opened(pictures.parent, table=f"own/{table}")
    assert whole(dataset) == CAPTIONS
    assert dataset.read_images(["3.png"])[0, 0, 0].tolist() == [60, 60, 60]


def test_texts_beside_the_pictures_have_a_caption_a_line(pictures: Path) -> None:
    for name, texts in CAPTIONS.items():
        (pictures / name).with_suffix(".txt").write_text("\n\n".join(texts), encoding="utf-8")
    assert whole(opened(pictures.parent, "folder", folder="own")) == CAPTIONS


def test_an_imagefolder_has_its_captions_in_metadata_and_its_splits_in_folders(tmp_path: Path) -> None:
    for split in ("train", "validation"):
        draw(tmp_path / "set" / split / "1.jpg", 90)
        line = {"file_name": "1.jpg", "text": f"a picture to {split}"}
        (tmp_path / "set" / split / "metadata.jsonl").write_text(json.dumps(line))
    dataset = opened(tmp_path, "folder", folder="set")
    assert (dataset.split("train"), dataset.split("dev")) == (["train/1.jpg"], ["validation/1.jpg"])
    assert dataset.captions["validation/1.jpg"] == ["a picture to validation"]


def test_the_dev_split_is_drawn_by_the_seed_and_stays_when_a_picture_is_added(pictures: Path) -> None:
    (pictures / "list.json").write_text(TABLES["list.json"]())
    first = opened(pictures.parent, table="own/list.json", dev_share=0.3)
    assert len(first.split("dev")) == 3
    assert opened(pictures.parent, table="own/list.json", dev_share=0.3).split("dev") == first.split("dev")
    assert opened(pictures.parent, table="own/list.json", dev_share=0.3, seed=5).split("dev") != first.split("dev")
    more = [*rows(("path", "description")), {"path": "new.png", "description": "a new one"}]
    (pictures / "list.json").write_text(json.dumps(more))
    again = opened(pictures.parent, table="own/list.json", dev_share=0.3)
    assert len(set(again.split("dev")) & set(first.split("dev"))) >= 2


def test_the_file_says_the_split_by_a_column_or_by_a_file_for_each(pictures: Path) -> None:
    table = [{"image": name, "caption": "a picture", "split": "val" if name < "3" else "train"} for name in CAPTIONS]
    (pictures / "all.json").write_text(json.dumps(table))
    assert opened(pictures.parent, table="own/all.json").split("dev") == ["0.png", "1.png", "2.png"]
    for split, part in (("train", table[:6]), ("dev", table[6:])):
        part = [{key: value for key, value in row.items() if key != "split"} for row in part]
        (pictures / f"{split}.json").write_text(json.dumps(part))
    tables = {"train": "own/train.json", "dev": "own/dev.json"}
    assert opened(pictures.parent, table=tables).split("dev") == [*CAPTIONS][6:]


def test_a_caption_with_commas_and_without_quotes_is_one_caption(pictures: Path) -> None:
    (pictures / "c.csv").write_text("file_name,caption\n0.png,a cat, a dog\n1.png,a bird\n")
    assert whole(opened(pictures.parent, table="own/c.csv"))["0.png"] == ["a cat, a dog"]


@pytest.mark.parametrize(
    ("table", "content", "message"),
    [
        ("a.csv", "url,words\nx,y\n", "line 2: expected the columns or keys one of file_name, .*; it has url, words"),
        ("a.csv", "", "no entry in it"),
        ("a.xlsx", "", "ending in .csv"),
        ("a.json", '{"a": 1}', "expected a list of objects"),
        ("a.csv", "image,caption,split\n0.png,a cat,holdout\n", "split 'holdout' is none of train"),
        ("a.csv", "image,caption\n0.png,a cat\n", "1 pictures with captions to train on; 2 are needed"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(pictures: Path, table: str, content: str, message: str) -> None:
    (pictures / table).write_text(content)
    with pytest.raises(DataError, match=message):
        opened(pictures.parent, table=f"own/{table}")


@pytest.fixture
def bad(pictures: Path) -> DataConfig:
    """Ten pictures: one without text, one with an empty text, one broken, one missing, one twice, a letterless text."""
    for name, texts in CAPTIONS.items():
        (pictures / name).with_suffix(".txt").write_text("\n".join(texts))
    (pictures / "0.txt").unlink()
    (pictures / "1.txt").write_text(" \n")
    (pictures / "2.png").write_bytes(b"no picture")
    (pictures / "3.png").write_bytes((pictures / "4.png").read_bytes())
    (pictures / "5.png").unlink()
    (pictures / "5.png").symlink_to("nowhere.png")
    (pictures / "6.txt").write_text("...\na picture\na picture")
    (pictures / "lonely.txt").write_text("a picture of nothing")
    rows = [{"file_name": p.name, "text": p.with_suffix(".txt").read_text().splitlines() if p.stem != "0" else []}
            for p in sorted(pictures.glob("*.png"))]  # fmt: skip
    (pictures / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return DataConfig(dataset="table", options={"table": "own/t.jsonl"})


def test_a_check_lists_everything_that_is_wrong(pictures: Path, bad: DataConfig) -> None:
    _, issues = check_data(bad, pictures.parent)
    assert sorted((issue.kind, issue.where.count("0.png") > 0) for issue in issues) == [
        ("captions twice for one picture", False), ("captions without a letter or digit", False),
        ("empty captions", False), ("missing pictures", False), ("pictures that are there twice", False),
        ("pictures that cannot be read", False), ("pictures without a caption", True),
    ]  # fmt: skip
    assert "3.png = 4.png" in {issue.where for issue in issues}


def test_unusable_pictures_are_left_out_with_a_sentence_or_refused(pictures: Path, bad: DataConfig) -> None:
    left_out, sentence = unusable_pictures(bad, pictures.parent)
    assert left_out == {"2.png", "5.png"}
    assert "1 pictures that cannot be read" in sentence
    assert "1 empty captions" in sentence
    refusing = DataConfig(dataset="table", options=bad.options, bad_data="refuse")
    with pytest.raises(DataError, match=r"bad data: .*1 missing pictures"):
        unusable_pictures(refusing, pictures.parent)


def test_a_folder_reports_texts_without_a_picture(pictures: Path, bad: DataConfig) -> None:
    kinds = [kind for kind, _ in opened(pictures.parent, "folder", folder="own").issues]
    assert "texts without a picture" in kinds
    assert "pictures without a caption" in kinds


def test_the_manifest_says_what_the_data_was() -> None:
    options = {"folder": "own", "name": "our kitchen", "terms": "not for publication"}
    assert provenance(DataConfig(dataset="folder", options=options)) == [
        {"name": "our kitchen", "terms": "not for publication"}
    ]
