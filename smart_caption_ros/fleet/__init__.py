"""The same work on many inputs: in worker processes of one machine, or as tasks on a Ray cluster."""
