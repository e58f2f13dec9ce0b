"""Errors of the workstation's commands. Each message is one sentence: what is wrong, where, and what to do."""


class DataError(Exception):
    """A data file is missing or malformed; the message names the file, the place and the reason."""


class ConfigError(Exception):
    """An experiment file is malformed; the message names the file, the key and what is expected."""


class CheckpointError(Exception):
    """A checkpoint cannot be read; the message names the file and says what to do."""


class BackboneError(Exception):
    """Weights of a backbone or detector are missing, or belong to a different network; the message names the file."""


class TrainingError(Exception):
    """Training cannot continue; the message says why and what to do."""
