"""The ROS 2 nodes: the only rooms of this package that import rclpy."""
