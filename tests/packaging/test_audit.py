"""The audit of the dependencies reports and never fails."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "audit.py"
sys.path.insert(0, str(SCRIPT.parent))
import audit  # noqa: E402  # a script, in no package

sys.path.remove(str(SCRIPT.parent))

OLD = {
    "name": "pillow",
    "version": "9.0.1",
    "vulns": [
        {"id": "PYSEC-2022-2", "fix_versions": ["9.1.1", "9.2"], "aliases": []},
        {"id": "PYSEC-2023-1", "fix_versions": [], "aliases": []},
    ],
}
SKIPPED = {"name": "own", "skip_reason": "Dependency not found on PyPI and could not be audited: own (1.0)"}


def prints(*packages: dict[str, object]) -> list[str]:
    """A command that prints what pip-audit prints with `--format json`, and fails as it does for a vulnerability."""
    text = json.dumps({"dependencies": packages, "fixes": []})
    return [sys.executable, "-c", f"import sys; print({text!r}); sys.exit(1)"]


def test_each_known_vulnerability_has_a_line() -> None:
    sound = {"name": "numpy", "version": "2.4.6", "vulns": []}
    assert audit.audit(prints(sound, OLD, SKIPPED), 20.0).splitlines() == [
        "2 packages, 2 known vulnerabilities",
        "  pillow 9.0.1: PYSEC-2022-2, fixed in 9.1.1, 9.2",
        "  pillow 9.0.1: PYSEC-2023-1, no fix yet",
        "  not known to the service: own",
    ]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (prints(SKIPPED), "the package index has no advisories of any of the 1 packages"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], "the advisory service did not answer within 0 s"),
        ([sys.executable, "-c", "raise SystemExit('ERROR: no connection')"], "ERROR: no connection"),
        ([sys.executable, "-I", "-S", "-m", "pip_audit"], "pip-audit is not installed: pip install 'smart_caption"),
    ],
    ids=["mirror", "hangs", "no-network", "not-installed"],
)
def test_where_nothing_can_be_audited_the_report_says_why(command: list[str], reason: str) -> None:
    with pytest.raises(audit.NothingAuditedError) as raised:
        audit.audit(command, 0.3 if "sleep" in command[-1] else 20.0)
    assert str(raised.value).startswith(reason)


def test_the_report_never_fails_and_ends_in_time() -> None:
    ran = subprocess.run([sys.executable, "-W", "error", SCRIPT, "1"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0
    assert ran.stdout.startswith("audit of ")
