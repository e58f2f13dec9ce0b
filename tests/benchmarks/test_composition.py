"""Camera node and caption node run in one process as well, and both layouts are measured."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.needs_ros


@pytest.mark.long
@pytest.mark.parametrize("layout", ["one process", "two processes"])
def test_a_layout_is_measured(layout: str, tiny_bundle: Path) -> None:
    from benchmarks.composition import LAYOUTS, measure

    found = measure(LAYOUTS[layout], (64, 48), rate_hz=10.0, seconds=1.0, bundle=tiny_bundle)
    assert found["captions_per_second"] > 0
    assert found["waiting_ms"] > 0
    assert found["cpu_ms_per_caption"] > 0
    assert found["resident_mb"] > 50
