"""How much memory a piece of code takes, in a process of its own."""

import subprocess
import sys


def peak_growth_mb(code: str, imports: str) -> float:
    """By how much ``code`` raises the peak of resident memory, after ``imports`` (``Path`` is there already)."""
    program = f"""
import resource
from pathlib import Path
{imports}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{code}
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)
