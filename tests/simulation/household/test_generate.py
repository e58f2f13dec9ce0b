"""How the parent process combines the reports of the rendering processes; Blender is not needed."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from simulation.household import generate
from simulation.household.dataset_folder import DatasetFolder
from simulation.household.sequences import RenderSettings, plan_sequence
from tests.simulation.household.convex_renderer import render_instances


def test_sequence_whose_tasks_end_at_the_same_moment_is_finished_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = RenderSettings(seed=3, frames=4, width=64, height=48, samples=1, step=0.5)

    def render_at_once(
        folder: Path, settings: RenderSettings, missing: dict[int, list[int]], processes: int
    ) -> Iterator[tuple[int, int]]:
        sequence, grey = plan_sequence(settings, 0), np.full((48, 64, 3), 90, np.uint8)
        for frame in missing[0]:
            instances = render_instances(sequence.scene, settings.camera, sequence.poses[frame])
            DatasetFolder(folder).write_frame(sequence, frame, grey, instances)
        yield 0, 2
        yield 0, 2

    monkeypatch.setattr(generate, "require_bpy", lambda: None)
    monkeypatch.setattr(generate, "_render_missing", render_at_once)
    report = generate.generate(tmp_path / "root", settings, 1, processes=2, quiet=True)
    assert (report.rendered, report.skipped) == (4, 0)
    labels = json.loads((tmp_path / "root" / "000000" / "labels.json").read_text())
    assert sorted(labels) == [f"{frame:06d}" for frame in range(4)]
