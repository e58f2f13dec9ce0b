"""A soak of the caption node: good and bad images, disturbances, records of what happens, and their checks."""
