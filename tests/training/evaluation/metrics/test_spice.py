"""SPICE where its models are absent, and with a stand-in for its jar."""

import pytest

from tests.training.evaluation.metrics.needs_java import fake_java
from training.evaluation.metrics import java as module
from training.evaluation.metrics.java import MODELS, missing_models, spice
from training.evaluation.metrics.metric import MetricError

REFERENCES = {"a": ["a dog runs"], "b": ["a cat"]}
# Answers with f = 0.25 for the first question and 0.75, 0.5, 1.0 for those after it, as SPICE writes it.
ANSWER = """
while [ "$1" != -out ]; do shift; done
printf '[' > "$2"; n=0
for f in 0.25 0.75 0.5 1.0; do
  [ $n = 0 ] || printf ', ' >> "$2"
  printf '{"image_id": %s, "scores": {"All": {"pr": 1, "re": 1, "f": %s}}}' $n $f >> "$2"; n=$((n+1))
done
printf ']' >> "$2"
"""


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    folder = tmp_path / "spice"
    (folder / "lib").mkdir(parents=True)
    monkeypatch.setattr(module, "toolkit_folder", lambda part: tmp_path / part)
    return folder


def test_absent_models_are_named_with_how_to_get_them(toolkit):
    with pytest.raises(MetricError, match=r"pycocoevalcap\.spice\.get_stanford_models"):
        spice([({"a": "a dog", "b": "a cat"}, REFERENCES)])
    for name in MODELS:
        (toolkit / "lib" / name).touch()
    assert missing_models() is None


def test_scores_are_read_back_for_each_model(toolkit, tmp_path, monkeypatch):
    for name in MODELS:
        (toolkit / "lib" / name).touch()
    fake_java(tmp_path / "java", ANSWER, monkeypatch)
    first, second = spice([({"a": "a dog", "b": "a cat"}, REFERENCES), ({"a": "a", "b": "cat"}, REFERENCES)])
    assert first.per_image.tolist() == [0.25, 0.75]
    assert (first.value, second.value) == (0.5, 0.75)
