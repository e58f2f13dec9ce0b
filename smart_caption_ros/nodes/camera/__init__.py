"""The camera node: publishes images from files, videos, bags or a webcam as a camera driver does."""
