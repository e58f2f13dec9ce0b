"""Java programs that are absent, fail or hang."""

import time

import pytest

from tests.training.evaluation.metrics.needs_java import fake_java
from training.evaluation.metrics.java import run_java
from training.evaluation.metrics.metric import MetricError


def test_absent_java_is_named_with_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MetricError, match="no Java here; install a Java runtime"):
        run_java("METEOR", ["-jar", "x.jar"], tmp_path, [], 1)


def test_a_program_that_never_answers_is_ended_in_time(tmp_path, monkeypatch):
    fake_java(tmp_path, "exec sleep 100", monkeypatch)
    started = time.monotonic()
    with pytest.raises(MetricError, match="METEOR was ended after 1 s without an answer"):
        run_java("METEOR", [], tmp_path, ["question"] * 100_000, 0.6)
    assert time.monotonic() - started < 30


def test_the_reason_of_a_failure_is_quoted_and_not_its_stack_trace(tmp_path, monkeypatch):
    trace = "Exception in thread main: file not found\\n\\tat Meteor.main(Unknown Source)\\n\\t... 3 more"
    fake_java(tmp_path, f"printf '{trace}\\n' >&2; exit 1", monkeypatch)
    with pytest.raises(MetricError, match=r"METEOR failed: Exception in thread main: file not found$"):
        run_java("METEOR", [], tmp_path, [], 20)
