"""Stands in for h5py, which programs import for data that they are not asked to read."""
