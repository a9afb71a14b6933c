"""Stands in for OpenCV, which programs import for data that they are not asked to read."""
