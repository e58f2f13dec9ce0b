"""A writer that is killed at any moment leaves no torn row."""

import json
import subprocess
import sys

KILLS = 10
# One process imports the log once and starts the writers by fork, which takes a tenth of the time.
SCRIPT = """
import json, os, random, signal, sqlite3, sys, time
from pathlib import Path
from smart_caption_ros.caption_log import Bounds, CaptionLog, LogReader
from tests.caption_log.rows import JPEG, check_integrity, full

path, kills = Path(sys.argv[1]), int(sys.argv[2])
random.seed(20)
acknowledged = lost = inside = 0
for kill in range(kills):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with CaptionLog(path, Bounds(max_bytes=10**6)) as log:
            for number in range(10**6):
                record = full(at_s=1000 * kill + number * 0.001)
                os.write(writing, b"%d\\n" % log.append(record, JPEG))
        os._exit(0)
    os.close(writing)
    os.read(reading, 1)  # the first row is written
    time.sleep(random.uniform(0.0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    told = b""
    while part := os.read(reading, 1 << 16):
        told += part
    os.close(reading)
    ids = [int(line) for line in told.split()[:-1]]
    inside += Path(f"{path}-wal").exists()
    check_integrity(path)
    connection = sqlite3.connect(path)
    (pictures,) = connection.execute("SELECT count(*) FROM picture").fetchone()
    connection.close()
    with LogReader(path) as reader:
        rows = list(reader.all_rows())
        assert len(rows) == pictures == reader.overview().captions
    assert all(row.picture and row.pose and row.text for row in rows)
    kept = {row.id for row in rows}
    lost += sum(number not in kept for number in ids if number >= min(kept))
    acknowledged += len(ids)
print(json.dumps({"acknowledged": acknowledged, "lost": lost, "killed_while_open": inside}))
"""


def test_kills_at_random_moments_leave_whole_rows_and_lose_none_that_was_written(tmp_path):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "captions.db"), str(KILLS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["lost"] == 0
    assert result["killed_while_open"] == KILLS
    assert result["acknowledged"] > KILLS
