"""The log as a table: each key of the record is a column."""

import base64
import csv
import json

import pytest

from smart_caption_ros.caption_log import CaptionLog, LogReader
from smart_caption_ros.caption_log.results import export_csv
from smart_caption_ros.record import CaptionRecord
from tests.caption_log.rows import JPEG, START_MS, caption, full, rows_of


@pytest.fixture
def log(tmp_path):
    with CaptionLog(tmp_path / "captions.db") as opened:
        opened.append(full(), JPEG)
        opened.append(caption('a "cup",\n=1+1', 1))
        return opened.path


@pytest.mark.parametrize("in_a_folder", [True, False])
def test_a_table_has_the_records_and_their_pictures(log, tmp_path, in_a_folder):
    table = tmp_path / "log.csv"
    with LogReader(log) as reader:
        assert export_csv(reader.all_rows(), table, tmp_path / "pictures" if in_a_folder else None) == 2
    with table.open(newline="", encoding="utf-8") as stream:
        first, second = csv.DictReader(stream)
    assert (first["id"], first["time"]) == (str(START_MS), "2026-09-21T14:13:20.000Z")
    assert [item["class_name"] for item in json.loads(first["objects"])] == ["cup", "dining table"]
    if in_a_folder:
        assert (tmp_path / first["picture_file"]).read_bytes() == JPEG
    else:
        assert base64.b64decode(first["picture_base64"]) == JPEG
    texts = {"camera", "source", "robot", "image", "stamp", "frame_id", "status", "status_message", "text", "model"}
    texts |= {"engine", "coverage_reason", "coverage_message"}
    written = rows_of(log)[1].values
    cells = {name: second[name] for name in written}
    values = {name: cell if name in texts else json.loads(cell or "null") for name, cell in cells.items()}
    assert CaptionRecord.from_json(values).to_json() == written
