"""Registry of the tasks that can be trained. A new task is one file and one line here."""

from training.engine.tasks.captioning import CaptioningTask
from training.engine.tasks.detection import DetectionTask
from training.engine.tasks.task import Task

TASKS: dict[str, type[Task]] = {"captioning": CaptioningTask, "detection": DetectionTask}
"""By the name that an experiment gives as ``task``."""

__all__ = ["TASKS"]
