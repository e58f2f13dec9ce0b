"""Captions of recorded bags, written as bags. Needs rosbags (the extra ``bags``), and no ROS."""
