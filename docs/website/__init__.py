"""How the site is made: `make docs` runs `build.py`; the tests run the code blocks of the pages with `blocks.py`."""
