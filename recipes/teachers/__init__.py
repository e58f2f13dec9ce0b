"""Labels for photographs by teacher networks: boxes for detector training, image contents for captions."""
