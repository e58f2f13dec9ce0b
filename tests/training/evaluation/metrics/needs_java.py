"""Helpers of tests that run the toolkit's Java programs."""

import pytest

from training.evaluation.metrics.java import HOW_TO_GET_JAVA, find_java

needs_java = pytest.mark.skipif(find_java() is None, reason=f"needs Java: {HOW_TO_GET_JAVA}")


def fake_java(folder, script, monkeypatch):
    """Make a shell script the ``java`` command."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))
