"""The training loop: experiments, tasks, steps, processes, checkpoints, averages, schedules and reports."""
