"""Rules by which rooms are furnished: what a room contains, where it stands and what lies on it."""
