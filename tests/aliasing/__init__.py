"""Random programs over views, in-place writes and backward passes, and what they are compared with."""
