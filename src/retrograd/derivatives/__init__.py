"""The table of derivatives and the helpers that its formulas call."""
