"""One version, and every import declared and pinned."""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import smart_caption_ros
from smart_caption_ros.captioning import Bundle
from tests.packaging.imports import imports_of

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
PACKAGE_XML = ElementTree.parse(ROOT / "package.xml").getroot()
# Distributions whose module has another name.
MODULES = {
    "cuda-python": "cuda",
    "opencv-python-headless": "cv2",
    "pillow": "PIL",
    "pyyaml": "yaml",
    "scikit-image": "skimage",
}
ROS_MODULES = {"tf2_ros_py": "tf2_ros"}


def modules(requirements):
    names = (canonicalize_name(Requirement(requirement).name) for requirement in requirements)
    return {MODULES.get(name, name.replace("-", "_")) for name in names}


def foreign_imports(folder):
    """File and top-level module of every import of somebody else's code."""
    own = {"smart_caption_ros", "training", "export", "recipes", *sys.stdlib_module_names}
    return {(path, module.split(".")[0]) for path, module in imports_of(folder) if module.split(".")[0] not in own}


def ros_dependencies():
    names = (str(tag.text) for tag in PACKAGE_XML if tag.tag in ("depend", "exec_depend"))
    return {ROS_MODULES.get(name, name) for name in names}


def test_version_is_the_same_everywhere():
    newest = re.search(r"^(\d+\.\d+\.\d+)\n-+$", (ROOT / "CHANGELOG.rst").read_text(), re.MULTILINE)
    versions = {
        "pyproject.toml": PROJECT["version"],
        "package.xml": PACKAGE_XML.findtext("version"),
        "__version__": smart_caption_ros.__version__,
        "CHANGELOG.rst": newest[1],
    }
    assert len(set(versions.values())) == 1, versions


def test_the_licence_of_the_weights_names_every_source_whose_use_is_restricted():
    text = (ROOT / "smart_caption_ros" / "bundles" / "LICENSE").read_text()
    restricted = [source for source in Bundle.load().manifest["trained_on"] if "research" in source["terms"]]
    for source in restricted:
        names = re.findall(r"Flickr\d+k|NYU Depth v2|ADE20K|Places365|ImageNet|scanned rooms", source["name"])
        assert names, f"the test does not know {source['name']}"
        assert not [name for name in names if name not in text]


def test_robot_side_imports_only_what_it_declares():
    declared = modules(PROJECT["dependencies"])
    declared |= set().union(*(modules(EXTRAS[name]) for name in ("bags", "demo", "fleet", "serve", "tensorrt")))
    declared |= ros_dependencies() | {"yolo_msgs"}  # optional; it is built in the workspace, with yolo_ros
    assert not {(path, module) for path, module in foreign_imports("smart_caption_ros") if module not in declared}


@pytest.mark.parametrize("folder", ["training", "export", "recipes"])
def test_workstation_imports_only_what_it_declares(folder):
    declared = modules(PROJECT["dependencies"])
    declared |= set().union(*(modules(EXTRAS[name]) for name in ("training", "attribution", "metrics", "backbones")))
    assert not {(path, module) for path, module in foreign_imports(folder) if module not in declared}


def test_launch_files_import_only_what_package_xml_declares():
    known = ros_dependencies() | {"rosbag2_py"}  # this one is used where it is installed
    assert not {(path, module) for path, module in foreign_imports("launch") if module not in known}


def test_every_dependency_has_a_pin_that_its_range_allows():
    lines = (ROOT / "requirements" / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    versions = {canonicalize_name(name): version for name, version in pins.items()}
    for line in [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name != canonicalize_name(PROJECT["name"]):
            assert requirement.specifier.contains(versions[name]), line
