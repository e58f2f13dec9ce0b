"""The user's own pictures: every format of captions, splits, and what is left out."""

import json

import cv2
import numpy as np
import pytest

from training.configs.schema import DataConfig
from training.data.caption_dataset import CaptionDataset
from training.data.checking import check_data, unusable_pictures
from training.data.datasets import open_dataset, provenance
from training.errors import DataError

CAPTIONS = {f"{place}.png": [f"a picture, number {place}", f"ein Bild {place}"] for place in range(10)}


def draw(path, grey):
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.full((24, 32, 3), grey, np.uint8))


@pytest.fixture
def pictures(tmp_path):
    for place, name in enumerate(CAPTIONS):
        draw(tmp_path / "own" / name, 20 * place)
    return tmp_path / "own"


def rows(keys):
    return [{keys[0]: name, keys[1]: text} for name, texts in CAPTIONS.items() for text in texts]


def delimited(delimiter):
    lines = [delimiter.join(('"' + value + '"') for value in row.values()) for row in rows(("image", "caption"))]
    return "\ufeff" + "\n".join([delimiter.join(("Image", "caption")), *lines])


def coco():
    images = [{"id": place, "file_name": name} for place, name in enumerate(CAPTIONS)]
    captions = [{"image_id": place, "caption": t} for place, texts in enumerate(CAPTIONS.values()) for t in texts]
    return json.dumps({"images": images, "annotations": captions})


def karpathy():
    return json.dumps(
        {"images": [{"filename": name, "sentences": [{"raw": t} for t in texts]} for name, texts in CAPTIONS.items()]}
    )


TABLES = {
    "captions.csv": lambda: delimited(","),
    "captions.tsv": lambda: delimited("\t"),
    "captions.jsonl": lambda: "\n".join(json.dumps({"file_name": n, "text": t}) for n, t in CAPTIONS.items()),
    "coco.json": coco,
    "karpathy.json": karpathy,
    "list.json": lambda: json.dumps(rows(("path", "description"))),
}


def opened(data, dataset="table", **options):
    return open_dataset(DataConfig(dataset=dataset, options=options), data)


def whole(dataset):
    return {name: list(dataset.captions[name]) for split in ("train", "dev") for name in dataset.split(split)}


@pytest.mark.parametrize("table", TABLES)
def test_every_format_of_a_table_has_the_same_pictures_and_captions(pictures, table):
    (pictures / table).write_text(TABLES[table](), encoding="utf-8")
    dataset = opened(pictures.parent, table=f"own/{table}")
    assert whole(dataset) == CAPTIONS
    assert dataset.read_images(["3.png"])[0, 0, 0].tolist() == [60, 60, 60]


def test_texts_beside_the_pictures_have_a_caption_a_line(pictures):
    for name, texts in CAPTIONS.items():
        (pictures / name).with_suffix(".txt").write_text("\n\n".join(texts), encoding="utf-8")
    assert whole(opened(pictures.parent, "folder", folder="own")) == CAPTIONS


def test_an_imagefolder_has_its_captions_in_metadata_and_its_splits_in_folders(tmp_path):
    for split in ("train", "validation"):
        draw(tmp_path / "set" / split / "1.jpg", 90)
        line = {"file_name": "1.jpg", "text": f"a picture to {split}"}
        (tmp_path / "set" / split / "metadata.jsonl").write_text(json.dumps(line))
    dataset = opened(tmp_path, "folder", folder="set")
    assert (dataset.split("train"), dataset.split("dev")) == (["train/1.jpg"], ["validation/1.jpg"])
    assert dataset.captions["validation/1.jpg"] == ["a picture to validation"]


def test_the_dev_split_is_drawn_by_the_seed_and_stays_when_a_picture_is_added(pictures):
    (pictures / "list.json").write_text(TABLES["list.json"]())
    first = opened(pictures.parent, table="own/list.json", dev_share=0.3)
    assert len(first.split("dev")) == 3
    assert opened(pictures.parent, table="own/list.json", dev_share=0.3).split("dev") == first.split("dev")
    assert opened(pictures.parent, table="own/list.json", dev_share=0.3, seed=5).split("dev") != first.split("dev")
    more = [*rows(("path", "description")), {"path": "new.png", "description": "a new one"}]
    (pictures / "list.json").write_text(json.dumps(more))
    again = opened(pictures.parent, table="own/list.json", dev_share=0.3)
    assert len(set(again.split("dev")) & set(first.split("dev"))) >= 2


@pytest.mark.parametrize("column", ["split", "Split"])
def test_the_file_says_the_split_by_a_column_or_by_a_file_for_each(pictures, column):
    table = [{"image": name, "caption": "a picture", column: "val" if name < "3" else "train"} for name in CAPTIONS]
    (pictures / "all.json").write_text(json.dumps(table))
    assert opened(pictures.parent, table="own/all.json").split("dev") == ["0.png", "1.png", "2.png"]
    for split, part in (("train", table[:6]), ("dev", table[6:])):
        part = [{key: value for key, value in row.items() if key != column} for row in part]
        (pictures / f"{split}.json").write_text(json.dumps(part))
    tables = {"train": "own/train.json", "dev": "own/dev.json"}
    assert opened(pictures.parent, table=tables).split("dev") == [*CAPTIONS][6:]


def test_a_caption_with_commas_and_without_quotes_is_one_caption(pictures):
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
def test_a_table_that_cannot_be_read_is_refused(pictures, table, content, message):
    (pictures / table).write_text(content)
    with pytest.raises(DataError, match=message):
        opened(pictures.parent, table=f"own/{table}")


@pytest.fixture
def bad(pictures):
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


def test_a_check_lists_everything_that_is_wrong(pictures, bad):
    _, issues = check_data(bad, pictures.parent)
    assert sorted((issue.kind, issue.where.count("0.png") > 0) for issue in issues) == [
        ("captions twice for one picture", False), ("captions without a letter or digit", False),
        ("empty captions", False), ("missing pictures", False), ("pictures that are there twice", False),
        ("pictures that cannot be read", False), ("pictures without a caption", True),
    ]  # fmt: skip
    assert "3.png = 4.png" in {issue.where for issue in issues}


def test_unusable_pictures_are_left_out_with_a_sentence_or_refused(pictures, bad, tmp_path):
    left_out, sentence = unusable_pictures(bad, pictures.parent, tmp_path / "cache")
    assert left_out == {"2.png", "5.png"}
    assert "1 pictures that cannot be read" in sentence
    assert "1 empty captions" in sentence
    refusing = DataConfig(dataset="table", options=bad.options, bad_data="refuse")
    with pytest.raises(DataError, match=r"bad data: .*1 missing pictures"):
        unusable_pictures(refusing, pictures.parent, tmp_path / "cache")


def test_the_manifest_says_what_the_data_was():
    options = {"folder": "own", "name": "our kitchen", "terms": "not for publication"}
    assert provenance(DataConfig(dataset="folder", options=options)) == [
        {"name": "our kitchen", "terms": "not for publication"}
    ]


def test_a_picture_is_in_one_split_and_is_decoded_once(pictures, tmp_path, monkeypatch):
    (pictures / "3.png").write_bytes((pictures / "4.png").read_bytes())
    table = [
        {"image": name, "caption": "a picture", "split": "val" if name == "3.png" else "train"} for name in CAPTIONS
    ]
    (pictures / "all.json").write_text(json.dumps(table))
    config = DataConfig(dataset="table", options={"table": "own/all.json"})
    for _ in range(2):
        left_out, sentence = unusable_pictures(config, tmp_path, tmp_path / "cache")
        assert left_out == {"4.png"}
        assert "1 training pictures that are in dev or test as well, for example 4.png = 3.png" in sentence
        monkeypatch.setattr(CaptionDataset, "read_image", None)  # all are known
    monkeypatch.undo()
    assert "4.png = 3.png" in {issue.where for issue in check_data(config, tmp_path)[1]}


@pytest.mark.parametrize("column", ["group", "Place", "scene"])
def test_pictures_of_one_group_stay_in_one_split(pictures, column):
    table = [{"image": name, "caption": "a picture", column: int(name[0]) // 3} for name in CAPTIONS]
    (pictures / "all.json").write_text(json.dumps(table))
    for seed in range(5):
        dataset = opened(pictures.parent, table="own/all.json", seed=seed)
        sides = [{int(name[0]) // 3 for name in dataset.split(split)} for split in ("train", "dev")]
        assert not sides[0] & sides[1]
    for row, split in zip(table, ["train", "dev"] * 5, strict=True):
        row["split"] = split
    (pictures / "all.json").write_text(json.dumps(table))
    _, issues = check_data(DataConfig(dataset="table", options={"table": "own/all.json"}), pictures.parent)
    assert "0: dev, train" in {issue.where for issue in issues if issue.kind == "groups in two splits"}
    one = [{**row, column: "drive", "split": ""} for row in table]
    (pictures / "all.json").write_text(json.dumps(one))
    with pytest.raises(DataError, match="all pictures are of one group"):
        opened(pictures.parent, table="own/all.json")


def test_a_check_names_neighbours_that_look_alike_on_both_sides(tmp_path):
    (tmp_path / "own").mkdir()
    random = np.random.default_rng(0)
    room = random.integers(0, 256, (8, 9, 3)).astype(np.uint8)
    for frame in range(6):
        view = room[:, :8] if frame < 4 else random.integers(0, 256, (8, 8, 3)).astype(np.uint8)
        picture = cv2.resize(view, (160, 120), interpolation=cv2.INTER_CUBIC)
        cv2.imwrite(str(tmp_path / "own" / f"frame{frame + 8}.png"), np.roll(picture, frame, axis=1))
    rows = [
        {"image": f"frame{f + 8}.png", "caption": "a room", "split": "dev" if f in (2, 5) else "train"}
        for f in range(6)
    ]
    (tmp_path / "own" / "all.json").write_text(json.dumps(rows))
    _, issues = check_data(DataConfig(dataset="table", options={"table": "own/all.json"}), tmp_path)
    assert sorted(issue.where for issue in issues) == [
        "frame10.png (dev) ~ frame11.png (train)", "frame9.png (train) ~ frame10.png (dev)",
    ]  # fmt: skip
