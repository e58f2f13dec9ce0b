"""Image messages and encoded images <-> pixels, without ROS."""
