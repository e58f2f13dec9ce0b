"""The source distribution can be built from: it holds all that CMake and pip read."""

import sys
import tarfile

import pytest


@pytest.mark.long
def test_source_distribution_holds_all_that_a_build_reads(source_tree, tmp_path, run):
    build = f"import os; os.chdir({str(source_tree)!r}); import setuptools.build_meta as b; b.build_sdist(os.pardir)"
    run(sys.executable, "-c", build)
    (made,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    top = {"CMakeLists.txt", "LICENSE", "README.md", "package.xml", "pyproject.toml", "setup.py"}
    folders = ("cmake", "config", "launch", "msg", "scripts", "smart_caption_ros", "srv")
    inside = {
        str(path.relative_to(source_tree))
        for folder in folders
        for path in (source_tree / folder).rglob("*")
        if path.is_file()
    }
    assert top | inside <= names
