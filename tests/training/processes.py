"""The processes of a distributed run, as torchrun starts them; they are forked, so PyTorch is loaded once.

    python -m tests.training.processes COUNT MODULE [ARGUMENT ...]

runs ``python -m MODULE ARGUMENT ...`` in COUNT processes. Its status is 0 if all of them have ended with 0.
"""

import os
import runpy
import signal
import socket
import subprocess
import sys

PATIENCE_S = 100
"""How long processes may go on after one of them has failed."""


def run_in_processes(count, module, *arguments, **variables):
    """Run a module in processes that find each other, one thread each, with environment variables."""
    command = [sys.executable, "-m", "tests.training.processes", str(count), module, *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def main(count, module, arguments):
    import training.train  # noqa: F401  # with it, all that the processes need

    # torch.distributed.is_torchelastic_launched() tells by the id of the run.
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "TORCHELASTIC_RUN_ID": "test"}
    left = set()
    for rank in range(count):
        if (child := os.fork()) == 0:
            os.environ |= shared | {"RANK": str(rank), "WORLD_SIZE": str(count)}
            os.environ |= {"LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count)}
            sys.argv = [module, *arguments]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
            return 0
        left.add(child)

    def end_all(*_):
        for process in left:
            os.kill(process, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end_all)
    failed = False
    while left:
        ended, status = os.wait()
        left.remove(ended)
        if status and not failed:
            failed = True
            signal.alarm(PATIENCE_S)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
