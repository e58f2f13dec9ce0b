"""How each bundle that ships was made: data preparation, experiment files, and a journal of what was tried."""

from training.missing_packages import report_missing_packages

report_missing_packages("training")
