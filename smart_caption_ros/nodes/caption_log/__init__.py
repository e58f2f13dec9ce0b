"""The log node: writes captions into a database when their meaning changes, and finds them again."""
