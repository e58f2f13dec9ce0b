#!/bin/sh
# Try a bundle on the GPU of this machine, a Jetson or a card: build the TensorRT engines, compare 100 frames with the CPU,
# measure latency and memory of every engine that uses the GPU, and write it all to one JSON file to send to the authors.
#
#   scripts/try_gpu.sh [FILE.json [BUNDLE]]     (default: try_gpu.json and the bundle in the package)
#
# Takes some minutes, most of it for TensorRT's build. A step that fails is part of the result; the exit status is then 1.
set -eu

case "${1:-}" in
-*)
    sed -n '2,6s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
output=${1:-try_gpu.json}
bundle=${2:-}
python=${PYTHON:-python3}

engines=$("$python" -c '
import sys
from smart_caption_ros.engines import available_engines
reports = [report for report in available_engines() if report.name != "onnxruntime-cpu"]
print(*(report.name for report in reports if report.available))
sys.exit(0 if any(report.available for report in reports) else "try_gpu.sh: no engine uses a GPU here:\n"
    + "\n".join(f"  {report.name}: {report.detail}" for report in reports))
') || exit 1

work=$(mktemp -d)
sampler=
# shellcheck disable=SC2329  # called by trap
finish() {
    [ -z "$sampler" ] || kill "$sampler" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Run a step; keep what it printed and its exit status, and say how it went.
step() {
    name=$1
    shift
    echo "$name ..." >&2
    status=0
    "$python" -c 'from smart_caption_ros.cli import main; main()' "$@" >"$work/$name.out" 2>"$work/$name.err" || status=$?
    echo "$status" >"$work/$name.status"
    [ "$status" -eq 0 ] || tail -n 1 "$work/$name.err" >&2
}

# Print the free memory of the machine, which a Jetson shares with its GPU, and the used memory of a card [MiB].
memory() {
    # One echo, so that a sampler that is stopped writes no incomplete line.
    echo "$(awk '/MemAvailable/ {printf "%d", $2 / 1024}' /proc/meminfo)" \
        "$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | grep -m 1 -x '[0-9]*')"
}

step doctor doctor --json
case " $engines " in
*" tensorrt "*) step build bundle build ${bundle:+"$bundle"} ;;
esac
step agreement bundle verify --engines --frames 100 --json ${bundle:+"$bundle"}
for engine in $engines; do
    memory >"$work/benchmark_$engine.memory"
    while :; do memory && sleep 0.2; done >>"$work/benchmark_$engine.memory" &
    sampler=$!
    step "benchmark_$engine" benchmark --engine "$engine" --json - ${bundle:+"$bundle"}
    kill "$sampler" && sampler=
done
{ cat /etc/nv_tegra_release 2>/dev/null || nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; } \
    >"$work/device" 2>/dev/null || true

"$python" - "$work" "$output" <<'END'
import json
import sys
from pathlib import Path

work, output = map(Path, sys.argv[1:])


def printed(text):
    try:
        return json.loads(text)
    except ValueError:
        return text.splitlines()


def memory_mib(file):
    """Return the maximum memory use of a step, from the free memory of the machine and the used memory of the card."""
    free, *used = zip(*(map(int, line.split()) for line in file.read_text().splitlines()))
    return {"machine": free[0] - min(free), "card": max(used[0]) - used[0][0] if used else None}


result = {"device": (work / "device").read_text().strip(), "steps": {}}
for status in sorted(work.glob("*.status"), key=lambda path: path.stat().st_mtime):
    step = {"exit_status": int(status.read_text()), "printed": printed(status.with_suffix(".out").read_text())}
    if step["exit_status"]:
        step["problem"] = status.with_suffix(".err").read_text().strip().splitlines()[-5:]
    if status.with_suffix(".memory").exists():
        step["memory_mib"] = memory_mib(status.with_suffix(".memory"))
    result["steps"][status.stem] = step
written = output.with_name(output.name + ".tmp")
written.write_text(json.dumps(result, indent=2) + "\n")
written.replace(output)
failed = [name for name, step in result["steps"].items() if step["exit_status"]]
print(f"{output}: {len(result['steps'])} steps, {', '.join(failed) + ' failed' if failed else 'all succeeded'}")
sys.exit(1 if failed else 0)
END
