"""The second generator of random programs: whole scripts, written before they run (see grammar.py)."""
