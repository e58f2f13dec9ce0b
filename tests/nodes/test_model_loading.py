"""What the caption node cannot load is refused with a sentence that names it."""

from __future__ import annotations

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from smart_caption_ros.grounding import CoverageError
from smart_caption_ros.nodes.model_loading import load_coverage

pytestmark = pytest.mark.needs_ros


@pytest.mark.parametrize(
    "chosen", [("", "/no/such/glove.txt", ""), ("", "", "/no/such/synonyms.txt"), ("no_such_pipeline", "", "")]
)
def test_what_coverage_cannot_load_is_refused_with_a_sentence(chosen: tuple[str, str, str]) -> None:
    with pytest.raises(CoverageError) as caught:
        load_coverage(*chosen, class_names=())
    assert "no_such" in str(caught.value) or "/no/such" in str(caught.value)
