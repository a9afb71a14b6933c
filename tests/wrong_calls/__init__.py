"""Wrong calls made by machine: every public function, called rightly, and then with one thing wrong at a time.

``base_calls.py`` has right calls, ``mutations.py`` makes wrong ones of them, ``outcomes.py`` runs them in child
processes and says what came of each, and ``explained.py`` counts what is allowed to remain and says why.
``python -m wrong_calls`` (in ``tests/``) prints the figures; `tests/test_wrong_calls.py` holds them.
"""
