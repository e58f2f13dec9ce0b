"""The training loop and what it needs: steps, processes, checkpoints, averages, schedules."""
