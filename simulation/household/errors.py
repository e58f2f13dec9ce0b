"""The error of the generator of household scenes."""


class HouseholdError(Exception):
    """Scenes cannot be rendered: settings or folder are wrong, Blender is missing, or a process died."""
