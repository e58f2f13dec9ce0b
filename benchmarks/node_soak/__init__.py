"""A soak of the caption node: images good and bad, disturbances, what is recorded, and the checks of it."""
