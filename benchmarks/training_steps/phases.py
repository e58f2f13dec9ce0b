"""The phases of an experiment file that are measured, each as an experiment of its own on generated data."""

from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.training_steps.generated_data import STORE
from training.configs.schema import DataConfig, ExperimentConfig, FeaturesConfig, PhaseConfig
from training.engine.experiment import load_experiment
from training.engine.recipe import Recipe
from training.errors import BackboneError
from training.paths import data_folder
from training.vision.released_weights import locate

TEACHING = PhaseConfig(name="teaching", epochs=1, learning_rate=3e-4, schedule="constant")
"""The phase that teaches a captioner to end its captions, before self-critical training is measured."""
_NEVER = 1e6
"""Minutes between checkpoints: none is written while steps are measured."""


@dataclass(frozen=True)
class MeasuredPhase:
    """A phase and the experiment that consists of it."""

    kind: str
    """Its objective, with ``_end_to_end`` if the backbone learns, ``_views`` if a frozen one sees random crops."""
    experiment: ExperimentConfig
    """Its ``data`` is that of the experiment file."""

    @property
    def phase(self) -> PhaseConfig:
        return self.experiment.phases[0]

    @property
    def on_photographs(self) -> bool:
        """Whether the phase reads photographs; all others read stored features."""
        return not self.experiment.features

    @property
    def is_self_critical(self) -> bool:
        return self.phase.objective == "self_critical"

    def teaching(self) -> "MeasuredPhase":
        """Return the same experiment with the phase :data:`TEACHING`."""
        phase = replace(TEACHING, images_per_batch=self.phase.images_per_batch)
        return replace(self, experiment=replace(self.experiment, phases=[phase]))

    def in_precision(self, precision: str) -> "MeasuredPhase":
        """Return the same experiment in another precision."""
        return replace(self, experiment=replace(self.experiment, precision=precision))

    def options(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the experiment as plain keys and values, without those that have their default.

        An experiment file of another commit therefore has every option that this one has, unless it needs an option
        that the commit does not know.

        Args:
            data: the ``data`` section on generated data.
        """
        kept = {key: getattr(self.experiment.data, key) for key in ("max_words", "max_caption_words")}
        experiment = replace(self.experiment, data=DataConfig(**data, **kept), checkpoint_minutes=_NEVER)
        return _changed(experiment)


def measured_phases(path: Path, precision: str | None, compiled: bool) -> list[MeasuredPhase]:
    """List the phases of an experiment file, the last one of each kind.

    Args:
        path: experiment file; of a recipe, all runs.
        precision: in place of that of the file; None: that of the file.
        compiled: whether to compile, even if the experiment does not.

    Raises:
        ConfigError: the file is malformed.
    """
    phases: dict[str, MeasuredPhase] = {}
    for experiment in _experiments(path):
        for phase in experiment.phases:
            kind = _kind(phase)
            changes: dict[str, Any] = {
                "phases": [replace(phase, from_best=False)],  # nothing comes before the phase
                "start_from": "",
                "data": replace(experiment.data, extend_vocabulary=False),
                "precision": precision or experiment.precision,
                "compile": compiled or experiment.compile,
            }
            if not phase.trains_backbone and (phase.crop == 1 or experiment.features):
                changes |= {"backbone": "", "more_backbones": [], "yolox": "", "features": FeaturesConfig(store=STORE)}
            phases[kind] = MeasuredPhase(kind, replace(experiment, **changes))
    return list(phases.values())


def missing_networks(experiment: ExperimentConfig) -> str:
    """Say which networks of a phase on photographs do not exist here; empty if all do."""
    folder = data_folder()
    names = [(name, "backbones") for name in (experiment.backbone, *experiment.more_backbones)]
    try:
        paths = [locate(name, folder / kind) for name, kind in [*names, (experiment.yolox, "detectors")] if name]
    except BackboneError as error:
        return str(error)
    return ", ".join(f"{path}: no such file" for path in paths if not path.exists())


def _experiments(path: Path) -> list[ExperimentConfig]:
    """List the runs; a backbone that an earlier run trains is replaced by the one that it starts with."""
    config = load_experiment(path)
    if isinstance(config, ExperimentConfig):
        return [config]
    experiments = []
    first_backbones: dict[str, str] = {}  # of each run, by the path of its result
    for run in Recipe(config, Path("/recipe"), str(path)).runs:
        backbone = first_backbones.get(run.config.backbone, run.config.backbone)
        experiments.append(replace(run.config, backbone=backbone))
        first_backbones[str(run.result)] = backbone
    return experiments


def _kind(phase: PhaseConfig) -> str:
    if phase.trains_backbone:
        return f"{phase.objective}_end_to_end"
    return f"{phase.objective}_views" if phase.crop < 1 else phase.objective


def _changed(config: Any) -> dict[str, Any]:
    """Return the fields of a configuration whose values are not their defaults, with nested ones as dictionaries."""
    changed = {}
    for field in fields(config):
        value = getattr(config, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if value != default:
            changed[field.name] = _plain(value)
    return changed


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return _changed(value)
    return [_plain(item) for item in value] if isinstance(value, list) else value
