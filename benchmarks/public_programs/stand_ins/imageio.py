"""Stands in for imageio, which programs import for data that they are not asked to read."""
