"""Stands in for requests: whatever is asked for, the answer is an archive of the folder ``cora``, which is there."""

import io
import tarfile


class _Answer:
    status_code = 200

    def __init__(self):
        self.raw = io.BytesIO()
        with tarfile.open(fileobj=self.raw, mode="w:gz") as archive:
            archive.add("cora")
        self.raw.seek(0)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        pass


def get(url, **options):
    return _Answer()
