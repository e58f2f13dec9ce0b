"""What can go wrong."""


class HouseholdError(Exception):
    """Scenes cannot be made; the message says what is wrong and what to do."""
