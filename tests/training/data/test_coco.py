"""COCO's files: what is read, and what is refused."""

import json

import pytest

from training.data.coco import Karpathy, read_captions, read_objects, read_results, write_results
from training.errors import DataError


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


INSTANCES = {
    "images": [{"id": 7}, {"id": 8}],
    "categories": [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}],
    "annotations": [{"image_id": 7, "category_id": 18}, {"image_id": 7, "category_id": 18}],
}


def objects_with(changes):
    """Read the instances with the changes that a file has."""
    return read_objects([write(changes, {**INSTANCES, **json.loads(changes.read_text())})])


def image(number, split, **changes):
    return {
        "filepath": "val2014", "filename": f"COCO_val2014_{number:012}.jpg", "cocoid": number, "imgid": number - 1,
        "split": split, "sentids": [1, 2], **changes,
        "sentences": changes.get("sentences", [{"raw": "A dog. ", "tokens": ["a", "dog"]}, {"raw": "One dog"}]),
    }  # fmt: skip


def karpathy_of(images):
    """Read a file of images in Karpathy's format."""
    return Karpathy.load(write(images, {"images": json.loads(images.read_text())}))


def test_captions_are_grouped_by_image(tmp_path):
    path = write(
        tmp_path / "captions.json",
        {
            "images": [{"id": 7, "file_name": "000007.jpg"}],
            "annotations": [
                {"id": 1, "image_id": 7, "caption": "A dog."},
                {"id": 2, "image_id": "seven", "caption": "A cat."},
                {"id": 3, "image_id": 7, "caption": "One dog"},
            ],
        },
    )
    read = read_captions(path)
    assert read.captions == {"7": ["A dog.", "One dog"], "seven": ["A cat."]}
    assert read.file_names == {"7": "000007.jpg"}
    nameless = write(tmp_path / "n.json", {"images": None, "annotations": [{"image_id": 7, "caption": "A dog."}]})
    assert read_captions(nameless).file_names == {}


def test_results_may_be_empty_sentences(tmp_path):
    path = write(tmp_path / "r.json", [{"image_id": 7.0, "caption": "a dog"}, {"image_id": 8, "caption": ""}])
    assert read_results(path) == {"7": "a dog", "8": ""}


def test_written_results_have_numbers_for_ids_that_are_numbers_and_text_for_others(tmp_path):
    captions = {"7": "a dog", "007": "a cat"}
    write_results(tmp_path / "r.json", captions)
    assert read_results(tmp_path / "r.json") == captions
    assert json.loads((tmp_path / "r.json").read_text())[0]["image_id"] == 7


def test_objects_are_the_classes_of_each_image_of_several_files(tmp_path):
    one = write(tmp_path / "one.json", INSTANCES)
    two = write(tmp_path / "two.json", {**INSTANCES, "images": [{"id": 9}], "annotations": []})
    assert read_objects([one, two]) == {"7": {"dog"}, "8": set(), "9": set()}


@pytest.mark.parametrize(
    ("read", "content", "complaint"),
    [
        (read_captions, "{", "is not JSON"),
        (read_captions, {"images": []}, "list of annotations"),
        (
            read_captions,
            {"annotations": [{"image_id": 7, "caption": " "}]},
            "entry 0, image 7: caption is missing or empty",
        ),
        (read_results, {"annotations": []}, "is a list, not an object"),
        (read_results, [], "no caption"),
        (read_results, [{"image_id": 7}], "entry 0, image 7: caption is missing"),
        (read_results, [{"image_id": 7, "caption": "a"}] * 2, "entry 1: a second caption for image 7"),
        (objects_with, {"annotations": [{"image_id": 9, "category_id": 1}]}, "image 9 is not among"),
        (
            objects_with,
            {"annotations": [{"image_id": 7, "category_id": 2}]},
            "annotation 0, image 7: unknown category 2",
        ),
        (objects_with, {"annotations": [{"image_id": 7, "category_id": [2]}]}, "0, image 7: unknown category .2."),
        (objects_with, {"categories": [{"id": 1}]}, "lacks 'name'"),
        (Karpathy.load, {}, "list of images"),
        (karpathy_of, [image(1, "dev")], "image 1: split 'dev'"),
        (karpathy_of, [image(1, "test"), image(1, "test")], "image 1: it is in the file twice"),
        (karpathy_of, [image(1, "test", sentences=[])], "image 1: no captions"),
        (karpathy_of, [image(1, "test", sentences=[{"raw": "A dog"}, {"raw": " "}])], "image 1, sentence 1: .* empty"),
        (karpathy_of, [image(1, "test", cocoid=None)], "entry 0: no cocoid"),
        (karpathy_of, [image(1, "test", filename=None)], "image 1: no filename"),
        (karpathy_of, [image(1, "test", filepath=3)], "image 1: no filename, or filepath is no text"),
    ],
)
def test_wrong_files_are_refused_with_file_place_and_reason(tmp_path, read, content, complaint):
    with pytest.raises(DataError, match=rf"file\.json.*{complaint}"):
        read(write(tmp_path / "file.json", content))


def test_captions_files_and_splits_are_read(tmp_path):
    images = [image(1, "test"), image(2, "restval"), image(3, "train"), image(4, "val")]
    read = Karpathy.load(write(tmp_path / "dataset_coco.json", {"images": images, "dataset": "coco"}))
    assert read.captions["1"] == ["A dog.", "One dog"]
    assert read.files["1"] == "val2014/COCO_val2014_000000000001.jpg"
    assert read.split("test") == ["1"]
    assert read.split("val") == ["4"]
    assert read.split("train") == ["3", "2"]

    with pytest.raises(DataError, match="unknown split 'dev'"):
        read.split("dev")
