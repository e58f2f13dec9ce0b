"""Check what works on this machine by trying it, and suggest remedies for what does not."""

import importlib
import json
import os
import platform
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from smart_caption_ros import __version__
from smart_caption_ros.files import FAST_DDS_PROFILE, PROFILE_VARIABLE, config_file
from smart_caption_ros.text import error_line

if TYPE_CHECKING:
    from smart_caption_ros.captioning import Bundle

_ROS_TIMEOUT_S = 30
_FAST_DDS = "rmw_fastrtps_cpp"
_GET_ROS = "source /opt/ros/jazzy/setup.bash, or run `make demo` in a checkout, which makes an environment with ROS"


class Status(str, Enum):
    """Result of a check."""

    OK = "ok"
    ABSENT = "absent"
    """Not installed, and optional."""
    WARNING = "warning"
    """Works with a limitation."""
    BROKEN = "broken"


@dataclass(frozen=True)
class Check:
    """One check and its result.

    Attributes:
        remedy: what to do about it; empty where nothing needs to be done.
    """

    name: str
    status: Status
    found: str
    remedy: str = ""


def run_checks(on_check: Callable[[str], None] = lambda name: None) -> list[Check]:
    checks: list[Check] = []
    for name, check in (
        ("Python", _check_python),
        ("libraries", _check_libraries),
        ("engines", _check_engines),
        ("default bundle", _check_default_bundle),
        ("other bundles", _check_other_bundles),
        ("ROS 2", _check_ros),
        ("Fast DDS profile", _check_fast_dds_profile),
    ):
        on_check(name)
        try:
            checks += check()
        except ImportError as error:
            checks.append(Check(name, Status.BROKEN, error_line(error), "install the libraries above"))
    return checks


def is_healthy(checks: Iterable[Check]) -> bool:
    """Return whether no check found something broken."""
    return not any(check.status is Status.BROKEN for check in checks)


def _check_python() -> list[Check]:
    return [
        Check("Python", Status.OK, f"{platform.python_version()} ({sys.executable})"),
        Check("smart_caption_ros", Status.OK, f"{__version__} ({Path(__file__).resolve().parents[1]})"),
    ]


def _check_libraries() -> list[Check]:
    return [
        _check_library("numpy", "numpy"),
        _check_library("OpenCV", "cv2", "opencv-python-headless"),
        _check_library("Pillow", "PIL", "Pillow"),
        _check_library("ONNX Runtime", "onnxruntime"),
        _check_library("SciPy", "scipy", "scipy", "assigns nouns to objects"),
        _check_library("spaCy", "spacy", "spacy", "finds the nouns of captions"),
        _check_library("rosbags", "rosbags.rosbag2", "smart_caption_ros[bags]", "reads ROS 2 bags"),
    ]


def _check_library(name: str, module: str, package: str | None = None, optional_use: str = "") -> Check:
    """Check that a module can be imported.

    Args:
        package: what to install with pip; the module by default.
        optional_use: what an optional library is for; empty for a required one.
    """
    remedy = f"pip install '{package or module}'"
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if optional_use and error.name is not None and module.startswith(error.name):
            return Check(name, Status.ABSENT, f"not installed ({optional_use})", remedy)
        return Check(name, Status.BROKEN, error_line(error), remedy)
    except Exception as error:  # a damaged library may raise anything
        return Check(name, Status.BROKEN, f"cannot be imported: {error_line(error)}", remedy)
    version = getattr(imported, "__version__", None) or _installed_version(module.partition(".")[0])
    return Check(name, Status.OK, version)


def _installed_version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "version unknown"


def _check_engines() -> list[Check]:
    from smart_caption_ros.engines import available_engines

    reports = available_engines()
    # One engine is enough; the others are optional.
    otherwise = Status.ABSENT if any(report.available for report in reports) else Status.BROKEN
    return [
        Check(f"engine {report.name}", Status.OK if report.available else otherwise, report.detail, report.remedy)
        for report in reports
    ]


def _check_default_bundle() -> list[Check]:
    import numpy as np

    from smart_caption_ros.captioning import BundleError, Captioner, EngineError, default_bundle_path

    remedy = f"reinstall smart_caption_ros, or restore {default_bundle_path()} from the repository"
    try:
        captioner = Captioner.from_bundle()
    except BundleError as error:
        return [Check("default bundle", Status.BROKEN, str(error), remedy)]
    except EngineError as error:
        return [Check("default bundle", Status.BROKEN, str(error), "see the engines above")]
    checks = [Check("default bundle", Status.OK, f"{captioner.model}, every file verified")]
    try:
        captioner.warm_up()
        started = time.perf_counter()
        captioner.caption(np.full((480, 640, 3), 127, np.uint8))
        elapsed_ms = 1000 * (time.perf_counter() - started)
    except Exception as error:  # any exception is the result of the check
        checks.append(Check("captioning", Status.BROKEN, error_line(error), remedy))
    else:
        found = f"a grey 640x480 frame in {elapsed_ms:.0f} ms with {captioner.engine_choice}"
        checks.append(Check("captioning", Status.OK, found))
        if "cpu" in captioner.engine.lower():
            checks.append(_check_larger_captioners(elapsed_ms / 1000, _available_gb()))
    return checks


_LARGER_CAPTIONERS = (
    ("GIT-base", 10.3, 0.6), ("BLIP-base", 26.1, 0.7), ("SmolVLM-256M", 26.2, 0.9), ("Florence-2-base", 62.6, 1.2)
)  # fmt: skip
"""Published captioners in 8 bits: how many times as long as the default bundle's a caption takes, and GB of memory
(docs/published_models.md)."""


def _check_larger_captioners(default_s: float, available_gb: float) -> Check:
    """List the published captioners that fit into memory, with the estimated time of a caption."""
    fitting = [
        f"{name} {times * default_s:.1f} s a caption, {memory_gb:g} GB"
        for name, times, memory_gb in _LARGER_CAPTIONERS
        if memory_gb < available_gb
    ]
    found = "; ".join(fitting) or "none fits: the default bundle is the right one"
    return Check(
        "larger captioners", Status.OK, f"{available_gb:.1f} GB of memory are free; in 8 bits, by that time: {found}"
    )


def _available_gb() -> float:
    """Return the memory that is free for another process; 0 where the system does not say."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024 / 1e9
    except (OSError, KeyError, ValueError):
        return 0.0


_BYTES_PER_PARAMETER = {"float32": 4, "float16": 2, "int8": 1}
"""By the precision that a bundle computes in."""


def _check_other_bundles(folder: Path | None = None) -> list[Check]:
    """Check the bundles beside the default one, and those in the working directory (or ``folder``) and up to two
    folders below it.
    """
    from smart_caption_ros.captioning import Bundle, BundleError, default_bundle_path
    from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH, MANIFEST

    here = folder or Path.cwd()
    manifests = [*default_bundle_path().parent.glob(f"*/{MANIFEST}")]
    for below in ("", "*/", "*/*/"):
        manifests += sorted(here.glob(f"{below}{MANIFEST}"))
    folders = dict.fromkeys(path.parent.resolve() for path in manifests)
    folders.pop(default_bundle_path().resolve(), None)
    checks = []
    for path in folders:
        if not (path / CAPTIONER_GRAPH).is_file():
            continue  # a manifest of something else
        name = f"bundle {path.name}"
        try:
            bundle = Bundle.load(path)
        except BundleError as error:
            checks.append(Check(name, Status.WARNING, str(error), f"leave {path} alone, or copy or export it again"))
        else:
            checks.append(Check(name, Status.OK, f"{path}: {_needs(bundle)}"))
    return checks


def _needs(bundle: "Bundle") -> str:
    """Describe what a bundle needs: space on the disk, memory and an engine."""
    disk = sum(file["bytes"] for file in bundle.manifest["files"].values()) / 1e6
    memory = max(disk, bundle.parameters * _BYTES_PER_PARAMETER.get(bundle.precision, 4) / 1e6)
    engine = "a GPU" if bundle.precision == "float16" else "any CPU"
    if bundle.static_graph is not None:
        engine += ", or TensorRT"
    return (
        f"{bundle.name}, {disk:.0f} MB; needs {memory:.0f} MB of memory for its weights, and {engine} "
        f"({bundle.precision})"
    )


def _check_ros() -> list[Check]:
    if find_spec("rclpy") is None:
        return [Check("rclpy", Status.ABSENT, "not installed: all but the nodes and the demo works", _GET_ROS)]
    rclpy = Check("rclpy", Status.OK, _installed_version("rclpy"))
    report = _make_node()
    failed, error = report.get("failed"), report.get("error", "")
    if failed == "rclpy":
        return [Check("rclpy", Status.BROKEN, f"cannot be imported: {error}", _GET_ROS), _ros_environment()]
    if failed == "middleware":
        return [rclpy, _ros_environment(), Check("middleware", Status.BROKEN, error, _middleware_remedy())]
    middleware = Check("middleware", Status.OK, f"{report['middleware']}, a node was made")
    messages = Check("messages", Status.OK, "smart_caption_ros/Caption can be published")
    if failed == "messages":
        remedy = "install the package where rclpy is: pip install . in the checkout, or colcon build"
        messages = Check("messages", Status.BROKEN, error, remedy)
    return [rclpy, _ros_environment(), middleware, messages]


def _make_node() -> dict[str, str]:
    """Create a node in a new process, because a middleware may abort it; return what failed, if anything did."""
    command = [sys.executable, "-m", "smart_caption_ros.nodes.self_check"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ROS_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": "middleware", "error": f"making a node took more than {_ROS_TIMEOUT_S} s"}
    last_line = (done.stdout.strip().splitlines() or [""])[-1]
    if last_line.startswith("{"):
        return dict(json.loads(last_line))
    said = (done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"])[-1]
    return {"failed": "middleware", "error": said.strip()}


def _ros_environment() -> Check:
    names = [
        "ROS_DISTRO",
        "ROS_DOMAIN_ID",
        "ROS_AUTOMATIC_DISCOVERY_RANGE",
        "ROS_LOCALHOST_ONLY",
        "RMW_IMPLEMENTATION",
    ]
    found = ", ".join(f"{name}={os.environ[name]}" for name in names if name in os.environ)
    return Check("ROS environment", Status.OK, found or "no variables set: the defaults hold")


def _middleware_remedy() -> str:
    chosen = os.environ.get("RMW_IMPLEMENTATION")
    if chosen and chosen != _FAST_DDS:
        return f"install {chosen}, or choose the tested one: export RMW_IMPLEMENTATION={_FAST_DDS}"
    return "check the ROS_ variables above, HOME or ROS_LOG_DIR, and the Fast DDS profile"


def _check_fast_dds_profile() -> list[Check]:
    """Check the profile that passes images through shared memory; the launch file, the nodes and the demo set it."""
    name = "Fast DDS profile"
    if find_spec("rclpy") is None or os.environ.get("RMW_IMPLEMENTATION", _FAST_DDS) != _FAST_DDS:
        return [Check(name, Status.ABSENT, "not needed without Fast DDS")]
    try:
        remedy = f"export {PROFILE_VARIABLE}={config_file(FAST_DDS_PROFILE)}"
    except FileNotFoundError as error:
        return [Check(name, Status.BROKEN, str(error), "reinstall smart_caption_ros")]
    value = os.environ.get(PROFILE_VARIABLE)
    if not value:
        found = (
            f"{PROFILE_VARIABLE} is not set: our nodes set it unless the environment isolates them, other programs "
            "may lose large images"
        )
        if os.environ.get("FASTDDS_DEFAULT_PROFILES_FILE"):
            found = f"FASTDDS_DEFAULT_PROFILES_FILE is set, but ROS 2 Jazzy reads {PROFILE_VARIABLE}"
        return [Check(name, Status.WARNING, found, remedy)]
    path = Path(value)
    if not path.is_file():
        return [Check(name, Status.BROKEN, f"{PROFILE_VARIABLE} names {value}, which is not there", remedy)]
    try:
        segment_bytes = _shared_memory_bytes(path)
    except (ElementTree.ParseError, OSError, ValueError) as error:
        return [Check(name, Status.BROKEN, f"{value} cannot be read: {error_line(error)}", remedy)]
    if not segment_bytes:
        return [Check(name, Status.WARNING, f"{value} sets up no shared memory", remedy)]
    return [Check(name, Status.OK, f"{value}, {segment_bytes / 2**20:.0f} MiB of shared memory")]


def _shared_memory_bytes(path: Path) -> int:
    """Return the size in bytes of the largest shared-memory segment in a profile; 0 for none."""
    sizes = [0]
    for element in ElementTree.parse(path).iter():
        # Profiles exist with and without an XML namespace.
        if element.tag.rpartition("}")[2] == "transport_descriptor":
            values = {child.tag.rpartition("}")[2]: (child.text or "").strip() for child in element}
            if values.get("type") == "SHM":
                sizes.append(int(values.get("segment_size", "524288")))  # Fast DDS's default
    return max(sizes)
