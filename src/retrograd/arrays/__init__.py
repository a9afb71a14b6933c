"""Arrays that are not NumPy's: those of CUDA devices, by CuPy. Nothing of it is imported before a device is asked
for."""
