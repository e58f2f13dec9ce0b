"""Report the known vulnerabilities of the pinned packages; a report only, whose exit status is always 0.

    python .ci/audit.py [SECONDS]

pip-audit asks PyPI for the advisories of every version in requirements/. Without a network, or where PyPI is a mirror
without advisories, the report says that nothing was audited.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements"
TIMEOUT_S = 120.0
_NO_MODULE = "No module named pip_audit"


class NothingAuditedError(Exception):
    """No package was looked up; one sentence says why."""


def command(file: Path) -> list[str]:
    """Return the command that audits a requirement file, whose versions are all pinned."""
    # Nothing is installed or resolved. Each request waits for a few seconds alone.
    options = ["--no-deps", "--disable-pip", "--format", "json", "--desc", "off", "--progress-spinner", "off"]
    return [sys.executable, "-m", "pip_audit", *options, "--timeout", "5", "--requirement", str(file)]


def audit(pip_audit: Sequence[str], timeout_s: float) -> str:
    """Run pip-audit and return the report in words.

    Args:
        pip_audit: its command.
        timeout_s: longest time that it may take.

    Raises:
        NothingAuditedError: the service cannot be reached, or pip-audit cannot be run.
    """
    try:
        ran = subprocess.run(pip_audit, capture_output=True, text=True, timeout=timeout_s)
        packages: list[dict[str, Any]] = json.loads(ran.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        raise NothingAuditedError(f"the advisory service did not answer within {timeout_s:.0f} s") from None
    except (ValueError, KeyError):
        last = (ran.stderr.strip().splitlines() or ["no output"])[-1]
        if last.endswith(_NO_MODULE):
            last = "pip-audit is not installed: pip install 'smart_caption_ros[audit]'"
        raise NothingAuditedError(last) from None
    audited = [package for package in packages if "vulns" in package]
    left_out = sorted(package["name"] for package in packages if "vulns" not in package)
    if not audited:
        raise NothingAuditedError(f"the package index has no advisories of any of the {len(left_out)} packages")
    lines = [
        f"  {package['name']} {package['version']}: {vulnerability['id']}, "
        + (f"fixed in {', '.join(vulnerability['fix_versions'])}" if vulnerability["fix_versions"] else "no fix yet")
        for package in audited
        for vulnerability in package["vulns"]
    ]
    unknown = [f"  not known to the service: {', '.join(left_out)}"] if left_out else []
    return "\n".join([f"{len(audited)} packages, {len(lines)} known vulnerabilities", *sorted(lines), *unknown])


def main() -> None:
    """Print the report of all requirement files."""
    end_s = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else TIMEOUT_S)
    for file in sorted(REQUIREMENTS.glob("*.txt")):
        try:
            print(f"audit of {file.name}: {audit(command(file), max(1.0, end_s - time.monotonic()))}", flush=True)
        except NothingAuditedError as error:
            print(f"audit of {file.name}: nothing was audited: {error}")
            return


if __name__ == "__main__":
    main()
