"""Networks whose answers are labels."""
