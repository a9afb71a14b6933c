"""What tests of CUDA devices are made of (tests/cuda has the tests): a simulated library, samples on a device, the
GPU run."""
