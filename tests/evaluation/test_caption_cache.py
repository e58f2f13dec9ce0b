"""Captions on disk: there for the next run, whatever happens to this one."""

import subprocess
import sys
from pathlib import Path

import pytest

from smart_caption_ros.evaluation.caption_cache import KeptCaptions, KeptCaptionsError, default_kept_captions_path


def test_a_caption_belongs_to_its_model_and_image(tmp_path: Path) -> None:
    kept = KeptCaptions(tmp_path / "new" / "captions.sqlite")
    kept.keep("a", "1.png", "a dog")
    kept.keep("a", "2.png", "")
    kept.keep("b", "1.png", "ein Hund ✓")
    kept.keep("a", "1.png", "a cat")
    kept.close()
    kept = KeptCaptions(tmp_path / "new" / "captions.sqlite")
    assert kept.get("a", "1.png") == "a cat"
    assert kept.get("a", "2.png") == ""
    assert kept.get("b", "1.png") == "ein Hund ✓"
    assert kept.get("b", "2.png") is None


def test_what_was_kept_survives_a_process_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from smart_caption_ros.evaluation.caption_cache import KeptCaptions\n"
        "kept = KeptCaptions(Path(sys.argv[1]))\n"
        "for number in range(50): kept.keep('a', str(number), f'caption {number}')\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = tmp_path / "captions.sqlite"
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    kept = KeptCaptions(path)
    assert [kept.get("a", str(number)) for number in range(50)] == [f"caption {number}" for number in range(50)]


def test_two_runs_share_a_file(tmp_path: Path) -> None:
    first, second = KeptCaptions(tmp_path / "captions.sqlite"), KeptCaptions(tmp_path / "captions.sqlite")
    first.keep("a", "1", "one")
    second.keep("b", "1", "two")
    assert (second.get("a", "1"), first.get("b", "1")) == ("one", "two")


def test_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database at all, but long enough to be taken for one" * 20)
    with pytest.raises(KeptCaptionsError, match=r"notes\.txt: captions cannot be kept there \(file is not a database"):
        KeptCaptions(tmp_path / "notes.txt")
    with pytest.raises(KeptCaptionsError, match="captions cannot be kept there"):
        KeptCaptions(tmp_path / "notes.txt" / "captions.sqlite")


def test_the_default_is_in_the_cache_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_kept_captions_path() == tmp_path / "smart_caption_ros" / "captions.sqlite"
