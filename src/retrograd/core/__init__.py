"""What everything stands on: dtypes, devices, the thread's state, what autograd knows of a tensor."""
