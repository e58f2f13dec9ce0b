"""How each bundle that ships was made: data preparation, experiment files, and a journal of what was tried."""
