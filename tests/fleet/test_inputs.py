"""Which inputs are found, and what they are called."""

import pytest

from smart_caption_ros.fleet.inputs import find_inputs
from smart_caption_ros.sources import SourceError


@pytest.fixture
def runs(tmp_path):
    """Two days with a bag, files of bags in a heap, a sequence, photographs, and an empty folder."""
    root = tmp_path / "runs"
    for name in ("day_1/run", "day_2/run"):
        (root / name).mkdir(parents=True)
        (root / name / "metadata.yaml").touch()
    for name in ("heap/a.mcap", "heap/b.db3", "rooms/000000/labels.json", "photos/1.jpg", "empty/notes.txt",
                 ".ipynb_checkpoints/1.jpg", "heap/._a.mcap"):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def names(*specs, **given):
    return [shard.name for shard in find_inputs([str(spec) for spec in specs], **given)]


def test_a_folder_is_searched_and_its_inputs_keep_their_places(runs):
    found = find_inputs([str(runs)])
    assert {shard.name: shard.is_bag for shard in found} == {
        "day_1/run": True,
        "day_2/run": True,
        "heap/a": True,
        "heap/b": True,
        "photos": False,
        "rooms/000000": False,
    }
    assert {shard.name: shard.path for shard in found}["day_2/run"] == runs / "day_2" / "run"


def test_pictures_beside_bags_are_an_input_and_hide_none(runs):
    for name in ("map.png", "heap/plot.png"):
        (runs / name).touch()
    assert names(runs) == ["runs", "day_1/run", "day_2/run", "heap", "heap/a", "heap/b", "photos", "rooms/000000"]


def test_patterns_files_and_list_files_name_inputs(runs, tmp_path):
    assert names(runs / "day_*") == ["day_1/run", "day_2/run"]
    assert names(runs / "*s") == ["photos", "rooms/000000"]
    assert names(runs / "*" / "run") == ["day_1/run", "day_2/run"]
    assert names(runs / "heap" / "*.mcap", runs / "day_1" / "run") == ["a", "run"]
    listed = tmp_path / "list.txt"
    listed.write_bytes(b"\xef\xbb\xbf" + f"# the second day\n\n{runs / 'day_2'}\n".encode())  # as some editors do
    assert names(list_file=listed) == ["run"]


def test_the_folder_of_the_outputs_is_not_searched(runs):
    assert names(runs, leave_out=runs / "heap") == ["day_1/run", "day_2/run", "photos", "rooms/000000"]


def test_inputs_that_cannot_be_found_or_told_apart_are_refused(runs, tmp_path):
    with pytest.raises(SourceError, match="there is no file or folder nowhere"):
        names("nowhere")
    for nothing in ("empty", "*.bag"):
        with pytest.raises(SourceError, match="no bag, sequence or image was found in"):
            names(runs / "photos", runs / nothing)
    assert names(runs / "photos", runs / "heap", leave_out=runs / "heap") == ["photos"]
    with pytest.raises(SourceError, match="would have the same output, run: name a folder that holds both"):
        names(runs / "day_1" / "run", runs / "day_2" / "run")
    with pytest.raises(SourceError, match=r"the list .* cannot be read: No such file"):
        names(list_file=tmp_path / "none.txt")
