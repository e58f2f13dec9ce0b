"""The benchmark of threads measures captioning and the process beside it."""

from pathlib import Path

import pytest

from benchmarks.thread_pools import POOLS, BusyProcess, caption_in_process


def test_captioning_and_the_work_of_the_process_beside_it_are_measured(tiny_bundle: Path) -> None:
    with BusyProcess() as busy:
        found = caption_in_process("global pool", tiny_bundle, 2, rate_hz=20.0, seconds=0.3, busy=busy)
    assert found["captions"] >= 1
    assert found["work_ms"]["median"] > 0
    assert found["busy_units_per_s"] > 0
    assert "global pool" in POOLS


@pytest.mark.needs_ros
def test_the_medians_of_each_setting_are_in_the_table() -> None:
    from benchmarks.thread_budget import medians_of, table_of

    runs = [
        {"setting": "sleeping", "beside": beside, "work_ms": {"median": ms}, "cpu_ms_per_caption": 2 * ms, **shares}
        for beside, ms, shares in (
            ("nothing", 10.0, {}),
            ("busy process", 20.0, {"busy_share": 0.4}),
            ("busy process", 40.0, {"busy_share": 0.5}),
            ("busy process", 30.0, {"busy_share": 0.9}),
        )
    ]
    medians = medians_of(runs)
    assert medians == [
        {"setting": "sleeping", "beside": "nothing", "work_ms": 10.0, "cpu_ms_per_caption": 20.0},
        {"setting": "sleeping", "beside": "busy process", "work_ms": 30.0, "cpu_ms_per_caption": 60.0,
         "busy_share": 0.5},
    ]  # fmt: skip
    assert table_of(medians).row_count == 2
