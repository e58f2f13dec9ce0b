"""The benchmark of the page measures a captioner with real browsers' requests and without."""

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")


@pytest.mark.long
def test_captions_are_counted_with_browsers_that_read_and_one_that_does_not(tiny_bundle, monkeypatch):
    from benchmarks import serve
    from benchmarks.page_browsers import Load
    from benchmarks.timing import medians_of
    from smart_caption_ros.captioning import Captioner

    monkeypatch.setattr(serve, "WARM_UP_S", 0.3)
    captioner = Captioner.from_bundle(tiny_bundle)
    alone = serve.measure_load(captioner, None, "sample:household", 20.0, Load(0, 0), 0.5)
    assert alone["captions_per_second"] > 0
    assert alone["frames_encoded_per_caption"] == 0, "nobody looks"
    watched = serve.measure_load(captioner, None, "sample:household", 20.0, Load(3, 1), 1.0, 2)
    assert watched["captions_per_second"] > 0
    assert watched["frames_per_second_and_browser"] > 0
    assert watched["frame_age_in_browser_ms"]["p50"] > 0
    assert medians_of([watched, watched, watched]) == watched
