"""The Dockerfiles read files that exist and that the build sends, pin what they install, and do not run as root."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILES = sorted(ROOT.glob("docker/Dockerfile*"))
COMPOSE = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
ALLOWED = [
    line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")
]
"""What .dockerignore lets the build read; it leaves out all else."""

each_dockerfile = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)


def instructions(path: Path) -> list[tuple[str, str]]:
    """Keyword and arguments of each instruction, lines joined, comments left out."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(keyword, rest.strip()) for keyword, _, rest in (line.partition(" ") for line in lines if line)]


def arguments(path: Path, keyword: str) -> list[str]:
    return [rest for each, rest in instructions(path) if each == keyword]


def test_there_is_one_for_each_platform() -> None:
    assert [path.name for path in DOCKERFILES] == ["Dockerfile", "Dockerfile.jetson"]


@each_dockerfile
def test_copied_files_exist_and_are_sent_to_the_build(path: Path) -> None:
    copied = [rest for rest in arguments(path, "COPY") if "--from=" not in rest]
    assert copied
    for rest in copied:
        *sources, _ = (part for part in rest.split() if not part.startswith("--"))
        for source in sources:
            assert (ROOT / source).exists(), source
            assert source == "." or source in ALLOWED or Path(source).parts[0] in ALLOWED, f"{source} is not sent"


def test_everything_that_is_sent_exists_and_suffices_for_the_build() -> None:
    assert all((ROOT / name).exists() for name in ALLOWED)
    read = {"CMakeLists.txt", "package.xml", "pyproject.toml", "cmake", "config", "launch", "msg", "scripts", "srv"}
    assert read | {"smart_caption_ros"} <= set(ALLOWED)


@each_dockerfile
def test_stages_are_named_before_they_are_used(path: Path) -> None:
    stages: list[str] = []
    for keyword, rest in instructions(path):
        if keyword == "FROM":
            base, _, name = rest.partition(" AS ")
            assert base in stages or re.fullmatch(r"[\w./-]+:[\w.-]+", base), "a stage, or an image with its version"
            assert not base.endswith(":latest")
            stages.append(name)
        for source in re.findall(r"--from=(\S+)", rest):
            assert source in stages
    assert len(stages) >= 3


@each_dockerfile
def test_pip_installs_what_the_constraint_files_pin(path: Path) -> None:
    (command,) = (each for rest in arguments(path, "RUN") for each in rest.split("&&") if " -m pip install" in each)
    pins = ""
    for name in re.findall(r"/tmp/requirements/(\S+)", command):
        assert any(f"requirements/{name}" in rest for rest in arguments(path, "COPY"))
        pins += (ROOT / "requirements" / name).read_text(encoding="utf-8")
    assert "--constraint" in command
    wanted = re.sub(r"--?[\w-]+(?: /tmp\S+)?", "", command.split("pip install")[1]).split()
    assert {"onnxruntime", "spacy"} <= set(wanted)
    for package in wanted:
        assert re.search(rf"^{package}==", pins, re.MULTILINE), package


@each_dockerfile
def test_the_node_runs_as_a_user_with_a_health_check_and_without_secrets(path: Path) -> None:
    assert arguments(path, "USER")[-1] not in ("root", "0")
    (check,) = arguments(path, "HEALTHCHECK")
    copied = " ".join(arguments(path, "COPY"))
    for script in re.findall(r'"/([\w.]+\.(?:py|sh))"', check + arguments(path, "ENTRYPOINT")[0]):
        assert f"docker/{script}" in copied
    assert not re.search(r"password|secret|token", path.read_text(encoding="utf-8"), re.IGNORECASE)


def test_the_entry_point_hands_over_to_the_command() -> None:
    script = ROOT / "docker" / "entrypoint.sh"
    assert script.read_text(encoding="utf-8").rstrip().endswith('exec "$@"'), "signals reach the node"
    subprocess.run(["bash", "-n", script], check=True)


def test_the_services_of_compose_can_find_the_other_nodes() -> None:
    for name, service in SERVICES.items():
        assert service["network_mode"] == service["ipc"] == "host", name
        assert service["restart"] == "unless-stopped"
        if "build" in service:
            assert (ROOT / "docker" / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert SERVICES["caption-jetson"]["runtime"] == "nvidia"
    assert SERVICES["caption-jetson"]["environment"]["ROS_DOMAIN_ID"], "it keeps the variables of the others"
    assert any("/dev/video0" in device for device in SERVICES["camera"]["devices"])
    commands = re.findall(r"^(smart-caption[\w-]*) = ", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert {service["command"][0] for service in SERVICES.values()} <= set(commands)


@pytest.mark.needs_ros
def test_the_health_check_says_what_the_node_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
    from rclpy.context import Context
    from rclpy.node import Node

    from smart_caption_ros.nodes.demo.processes import free_domain_id

    spec = importlib.util.spec_from_file_location("healthcheck", ROOT / "docker" / "healthcheck.py")
    assert spec is not None
    assert spec.loader is not None
    healthcheck = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(healthcheck)

    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    context = Context()
    rclpy.init(context=context, domain_id=free_domain_id())
    reporter = Node("reporter", context=context)
    publisher = reporter.create_publisher(DiagnosticArray, "/diagnostics", 10)
    ended = threading.Event()
    status = DiagnosticStatus(name="left/caption_node: captions", message="captioning")

    def report() -> None:
        while not ended.wait(0.05):
            publisher.publish(DiagnosticArray(status=[status]))

    reporting = threading.Thread(target=report)
    reporting.start()
    assert healthcheck.problem(context, "/left/caption_node", 20.0) == ""
    status.level, status.message = DiagnosticStatus.ERROR, "no image on /image for 9.0 s"
    assert healthcheck.problem(context, "/left/caption_node", 20.0) == "no image on /image for 9.0 s"
    assert healthcheck.problem(context, "/caption_node", 0.3) == "no diagnostics of /caption_node for 0.3 s"
    ended.set()
    reporting.join()
    reporter.destroy_node()
    context.try_shutdown()
