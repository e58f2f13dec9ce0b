"""Captioners of single families inside another captioner."""

from dataclasses import asdict
from typing import Any, TypedDict

from training.models.captioner import Captioner, CaptionerConfig
from training.models.families import SINGLE_FAMILIES


class MemberConfig(TypedDict):
    """A captioner of a single family inside another one."""

    family: str
    """A key of :data:`training.models.families.SINGLE_FAMILIES`."""
    model: dict[str, Any]
    """Its hyper-parameters, without vocabulary size and token width."""


def check_family(key: str, member: MemberConfig) -> None:
    """Check that a member is of a single family.

    Raises:
        ValueError: it is not; the message begins with ``key``.
    """
    if member["family"] not in SINGLE_FAMILIES:
        raise ValueError(f"{key}: family must be one of {', '.join(SINGLE_FAMILIES)}, not {member['family']!r}")


def construct_member(member: MemberConfig, config: CaptionerConfig) -> Captioner:
    """Construct a member with the vocabulary size and token width of the captioner that it is inside of."""
    family = SINGLE_FAMILIES[member["family"]]
    return family(family.Config(config.vocabulary_size, config.token_width, **member["model"]))


def member_config(family: str, captioner: Captioner) -> MemberConfig:
    """Describe a captioner as a member: its family, and the hyper-parameters that only this family has."""
    shared = CaptionerConfig.__dataclass_fields__
    options = {name: value for name, value in asdict(captioner.config).items() if name not in shared}
    return MemberConfig(family=family, model=options)
