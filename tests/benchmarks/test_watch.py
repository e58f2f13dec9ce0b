"""The terminal view is measured while captions arrive."""

import pytest

pytestmark = pytest.mark.needs_ros


@pytest.mark.long
def test_the_view_is_measured() -> None:
    from benchmarks.watch import measure

    found = measure(rate_hz=5.0, seconds=1.0)
    assert found["bytes_per_second"] > 0
    assert found["cpu_percent"] > 0
    assert found["resident_mb"] > 50
