"""How pytest-xdist shares the tests out to processes: whole files, and what takes long first.

The marks of pytest-xdist 3.8 for groups (``--dist loadgroup``) have no effect with pytest 9.2.
"""

from xdist.scheduler import LoadScopeScheduling

GRAPHS = "graphs"
_SHARING_GRAPHS = ("tests/export/", "tests/training/models/test_conformance.py")
_LONG = ("tests/packaging/test_colcon.py", "tests/benchmarks/", "tests/training/engine/")
"""Begun early, so that no process works alone at the end."""


def unit_of(nodeid):
    """What one process runs whole: a file, or all files that share traced graphs."""
    return GRAPHS if nodeid.startswith(_SHARING_GRAPHS) else nodeid.partition("::")[0]


def place_of(nodeid):
    """When a test is begun; those of one place keep their order."""
    if unit_of(nodeid) == GRAPHS:
        return 0
    return 1 if nodeid.startswith(_LONG) else 2


class WholeUnits(LoadScopeScheduling):
    """Gives each process a unit after the other, in the order of the collection."""

    def _split_scope(self, nodeid):
        return unit_of(nodeid)
