"""The page on the architecture shows the rooms and the imports that there are."""

import re

from tests.packaging.architecture import PAGE, PICTURE, ROOMS_DRAWN, arrows, picture


def test_the_picture_is_that_of_the_imports():
    """`python -m tests.packaging.architecture` draws it anew."""
    drawn = PICTURE.search(PAGE.read_text(encoding="utf-8"))
    assert drawn[0] == picture()


def test_every_room_has_its_line_and_every_line_its_room():
    robot_side, training = PAGE.read_text(encoding="utf-8").split("**Training**:")
    for package, part in zip(ROOMS_DRAWN, (training, robot_side), strict=True):
        rooms = {name for owner, name in arrows() if owner == package}
        assert set(re.findall(r"^- \*\*(\w+)\*\*:", part, re.MULTILINE)) == rooms
