"""What a user asks of his machine: does it work, how fast is it, do its engines agree."""
