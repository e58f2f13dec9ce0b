"""The rooms that are kept aside for measuring: whole rooms, of every kind, the same in every run."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.rooms.kept_aside import MAX_RUN, SEED, WANTED, choose_kept_aside, number_of, rooms_by_number
from training.data.held_out import kept_aside_rooms
from training.data.json_files import read_json_lines


def names(numbers: list[int]) -> list[str]:
    return [f"image{number}.jpg" for number in numbers]


@given(st.lists(st.integers(1, 400), min_size=1, max_size=120, unique=True), st.integers(1, 60), st.integers(0, 3))
def test_photographs_with_consecutive_numbers_stay_together(numbers: list[int], wanted: int, seed: int) -> None:
    chosen = {number_of(file) for file in choose_kept_aside(names(numbers), wanted, seed)}
    assert len(chosen) <= wanted
    for number in numbers:
        if number + 1 in numbers:
            assert (number in chosen) == (number + 1 in chosen)


def test_the_committed_list_is_what_the_seed_chooses(data_dir: Path) -> None:
    files = [entry["file"] for entry in read_json_lines(data_dir / "nyu_rooms" / "questions.jsonl")]
    assert tuple(choose_kept_aside(files, WANTED, SEED)) == kept_aside_rooms()
    assert {number_of(file) for file in files} == set(rooms_by_number())


def test_a_hundred_photographs_of_every_frequent_kind_of_room_are_kept_aside() -> None:
    kinds = [rooms_by_number()[number_of(file)] for file in kept_aside_rooms()]
    assert len(kinds) == len(set(kept_aside_rooms())) == WANTED
    for kind in ("bedroom", "kitchen", "living room", "bathroom", "dining room", "office"):
        share = list(rooms_by_number().values()).count(kind) / len(rooms_by_number())
        assert kinds.count(kind) == pytest.approx(WANTED * share, abs=5)
    assert MAX_RUN < WANTED
