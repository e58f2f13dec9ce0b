"""The error that the generator of household scenes reports."""


class HouseholdError(Exception):
    """Scenes cannot be rendered: wrong settings or folder, no Blender, a dead process; the message says what to do."""
