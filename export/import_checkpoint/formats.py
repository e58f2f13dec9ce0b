"""The published formats by name. A new one is one module and one line here."""

from export.import_checkpoint.m2 import read_m2
from export.import_checkpoint.published import PublishedFormat
from export.import_checkpoint.x_linear import read_x_lan, read_x_transformer

FORMATS: dict[str, PublishedFormat] = {
    "m2": read_m2,
    "x-lan": read_x_lan,
    "x-transformer": read_x_transformer,
}
