"""The images can be built from what is sent to the build, and their services start commands that exist."""

import importlib.util
import re
import threading
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILES = sorted(ROOT.glob("docker/Dockerfile*"))
SERVICES = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8"))["services"]
IGNORING = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
ALLOWED = [line[1:] for line in IGNORING if line.startswith("!")]
"""What .dockerignore lets the build read; it leaves out all else."""


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_copied_files_exist_and_are_sent_to_the_build(path):
    text = re.sub(r"\\\n\s*", " ", path.read_text(encoding="utf-8"))
    copied = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY ") and "--from=" not in line]
    assert copied
    for source in (part for parts in copied for part in parts if not part.startswith("--")):
        assert (ROOT / source).exists(), source
        assert source == "." or source in ALLOWED or Path(source).parts[0] in ALLOWED, f"{source} is not sent"


def test_the_services_of_compose_build_files_and_start_commands_that_exist():
    commands = re.findall(r"^(smart-caption[\w-]*) = ", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    for name, service in SERVICES.items():
        program, *_, image = service["command"]
        assert (program in commands, image) == (True, "image:=${IMAGE_TOPIC:-/image}")
        assert service["network_mode"] == service["ipc"] == "host", f"{name} cannot find the other nodes"
        if "build" in service:
            assert (ROOT / "docker" / service["build"]["context"] / service["build"]["dockerfile"]).is_file()


@pytest.mark.needs_ros
def test_the_health_check_says_what_the_node_reports(monkeypatch):
    rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
    from rclpy.context import Context
    from rclpy.node import Node

    from smart_caption_ros.nodes.demo.processes import free_domain_id

    spec = importlib.util.spec_from_file_location("healthcheck", ROOT / "docker" / "healthcheck.py")
    healthcheck = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(healthcheck)

    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    context = Context()
    rclpy.init(context=context, domain_id=free_domain_id())
    reporter = Node("reporter", context=context)
    publisher = reporter.create_publisher(DiagnosticArray, "/diagnostics", 10)
    ended = threading.Event()
    status = DiagnosticStatus(name="left/caption_node: captions", message="captioning")

    def report():
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
