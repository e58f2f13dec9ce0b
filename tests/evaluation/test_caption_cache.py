"""Captions on disk: there for the next run, whatever happens to this one."""

import subprocess
import sys

from smart_caption_ros.evaluation.caption_cache import CaptionCache


def test_a_caption_belongs_to_its_model_and_image(tmp_path):
    cache = CaptionCache(tmp_path / "new" / "captions.sqlite")
    cache.put("a", "1.png", "a dog")
    cache.put("a", "2.png", "")
    cache.put("b", "1.png", "ein Hund ✓")
    cache.put("b", "caf\udce9.png", "a name that is not UTF-8")
    cache.put("a", "1.png", "a cat")
    cache.close()
    cache = CaptionCache(tmp_path / "new" / "captions.sqlite")
    assert cache.get("a", "1.png") == "a cat"
    assert cache.get("a", "2.png") == ""
    assert cache.get("b", "1.png") == "ein Hund ✓"
    assert cache.get("b", "2.png") is None
    assert cache.get("b", "caf\udce9.png") == "a name that is not UTF-8"
    assert cache.get("b", "caf\udce8.png") is None


def test_what_was_kept_survives_a_process_that_is_killed(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from smart_caption_ros.evaluation.caption_cache import CaptionCache\n"
        "cache = CaptionCache(Path(sys.argv[1]))\n"
        "for number in range(50): cache.put('a', str(number), f'caption {number}')\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = tmp_path / "captions.sqlite"
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    cache = CaptionCache(path)
    assert [cache.get("a", str(number)) for number in range(50)] == [f"caption {number}" for number in range(50)]
