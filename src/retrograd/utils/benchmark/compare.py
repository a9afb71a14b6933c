"""Several measurements as a table."""

from __future__ import annotations

from collections.abc import Iterable

from .measurement import Measurement, select_unit, trim_sigfig


class Compare:
    """A table of measurements: a row for each statement, a column for each description, a part for each label.

    >>> from retrograd.utils.benchmark import Measurement, measurement
    >>> rows = [Measurement(1, [t], measurement.TaskSpec("f", label="sum", sub_label=str(n), description="here"))
    ...         for n, t in ((10, 1e-3), (20, 2e-3))]
    >>> Compare(rows).print()
    [------- sum -------]
              |    here
    1 threads: ----------
          10  |     1.0
          20  |     2.0
    <BLANKLINE>
    Times are in milliseconds (ms).
    <BLANKLINE>
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = False
        self._warn = False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
            self._results.append(result)

    def trim_significant_figures(self) -> None:
        """Show only figures that the spread lets stand."""
        self._trim = True

    def highlight_warnings(self) -> None:
        """Mark measurements whose spread is large."""
        self._warn = True

    def colorize(self, rowwise: bool = False) -> None:
        """Torch colours good and bad ones here; a table without colours says as much."""

    def print(self) -> None:
        """Print the table."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = list(dict.fromkeys(m.label for m in merged))
        return "\n".join(self._table(label, [m for m in merged if m.label == label]) for label in labels)

    def _table(self, label: str | None, results: list[Measurement]) -> str:
        unit, length = select_unit(min(m.median for m in results))
        columns = list(dict.fromkeys(m.description or "" for m in results))
        rows = list(dict.fromkeys((m.num_threads, m.env, m.as_row_name) for m in results))
        cells = {(m.num_threads, m.env, m.as_row_name, m.description or ""): self._cell(m, length) for m in results}
        first = max(len(name) for _, _, name in rows) + 6
        widths = [
            max(len(column), *(len(cells.get((*row, column), "")) for row in rows)) + 4 for column in columns
        ]
        head = " " * first + "".join(f"  |{column:>{width}}" for column, width in zip(columns, widths))
        title = f" {label or 'measurements'} "
        lines = [f"[{title:-^{len(head)}}]", head]
        threads = None
        for row in rows:
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(len(head) + 2, "-"))
            shown = (f"  |{cells.get((*row, column), ''):>{width}}" for column, width in zip(columns, widths))
            lines.append(f"{row[2]:>{first}}" + "".join(shown))
        names = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
        return "\n".join([*lines, "", f"Times are in {names[unit]} ({unit}).", ""])

    def _cell(self, measurement: Measurement, length: float) -> str:
        value = measurement.median / length
        text = f"{value:.1f}"
        if self._trim:
            text = f"{trim_sigfig(value, measurement.significant_figures):g}"
        return text + (" (!)" if self._warn and measurement.has_warnings else "")
