"""The published formats by name. A new one is one module and one line here."""

from export.import_checkpoint.m2 import read_m2
from export.import_checkpoint.published import PublishedFormat

FORMATS: dict[str, PublishedFormat] = {"m2": read_m2}
