"""The result of ``benchmarks.training`` as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.training_steps.parts import ORDER


def markdown(result: Mapping[str, Any]) -> str:
    """Write a table of speeds for all phases and, if measured, a table of parts for each phase.

    Args:
        result: as ``--json`` has it.
    """
    versions, hardware = result["versions"], result["hardware"]
    head = (
        f"{result['device']} ({hardware['processor']}, {hardware['cores']} cores), {result['threads']} threads, "
        f"{result['precision']}{', compiled' if result['compile'] else ''}, torch {versions['torch']}, "
        f"commit {result['commit']}, {result['date']}"
    )
    blocks = [head, _speeds(result["phases"])]
    for name, phase in result["phases"].items():
        sides = phase["sides"]
        if any("parts" in side for side in sides.values()):
            blocks += [f"`{name}`, milliseconds a step and share of the step:", _parts(sides)]
    return "\n\n".join(blocks) + "\n"


def _speeds(phases: Mapping[str, Any]) -> str:
    gpu = any("gpu" in side for phase in phases.values() for side in phase["sides"].values())
    header = ["phase", "code", "ms a step", "images a second", "ours is faster", "words a caption", "words decoded"]
    header += ["reward, ms", "reward is faster"]
    header += ["GPU busy", "kernels a step", "waits a step"] if gpu else []
    rows = []
    for name, phase in phases.items():
        for side, found in phase["sides"].items():
            activity = found.get("gpu", {})
            rows.append(
                [
                    name,
                    side,
                    _spread(found["step_ms"], 0),
                    _spread(found["images_per_second"], 1),
                    _spread(phase["times_faster_than"].get(side), 2, "x"),
                    str(found["caption_words"]["mean"]) if "caption_words" in found else "",
                    str(found.get("decoded_words_per_step", "")),
                    _spread(found.get("reward_ms"), 1),
                    _spread(phase["reward_times_faster_than"].get(side), 1, "x"),
                ]
                + ([_percent(activity.get("busy_share")), str(activity.get("kernels", "")),
                    str(activity.get("host_waits", ""))] if gpu else [])
            )  # fmt: skip
    return _table(header, rows)


def _parts(sides: Mapping[str, Any]) -> str:
    names = [name for name, side in sides.items() if "parts" in side]
    rows = []
    for part in ORDER:
        found = [sides[name]["parts"].get(part) for name in names]
        if any(found):
            cells = [(f"{each['ms']:.1f}", _percent(each["share"])) if each else ("", "") for each in found]
            rows.append([part, *(cell for pair in cells for cell in pair)])
    totals = [sum(each["ms"] for each in sides[name]["parts"].values()) for name in names]
    rows.append(["all", *(cell for total in totals for cell in (f"{total:.1f}", "100 %"))])
    return _table(["part", *(cell for name in names for cell in (f"{name}, ms", "share"))], rows)


def _spread(values: Mapping[str, float] | None, digits: int, unit: str = "") -> str:
    """Write median and range of the blocks."""
    if values is None:
        return ""
    median, least, most = (f"{values[key]:.{digits}f}" for key in ("median", "min", "max"))
    return f"{median}{unit} ({least} to {most})"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
