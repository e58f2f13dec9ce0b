"""What the parent of the rendering processes does with what they report; the renderer is a painter here."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.training.datagen.household.painting import paint_index
from training.datagen.household import generate
from training.datagen.household.files import Root
from training.datagen.household.sequences import Settings, plan


def test_a_sequence_whose_parts_are_done_at_the_same_moment_is_finished_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(seed=3, frames=4, width=64, height=48, samples=1, step=0.5)

    def painted(
        folder: Path, settings: Settings, missing: dict[int, list[int]], processes: int
    ) -> Iterator[tuple[int, int]]:
        sequence, grey = plan(settings, 0), np.full((48, 64, 3), 90, np.uint8)
        for frame in missing[0]:
            index = paint_index(sequence.scene, settings.camera, sequence.poses[frame])
            Root(folder).write_frame(sequence, frame, grey, index)
        yield 0, 2
        yield 0, 2

    monkeypatch.setattr(generate, "require_bpy", lambda: None)
    monkeypatch.setattr(generate, "_rendered", painted)
    report = generate.generate(tmp_path / "root", settings, 1, processes=2, quiet=True)
    assert (report.rendered, report.skipped) == (4, 0)
    labels = json.loads((tmp_path / "root" / "000000" / "labels.json").read_text())
    assert sorted(labels) == [f"{frame:06d}" for frame in range(4)]
