"""A DataFrame as plain data: column → list of values, so many rows as fit into the limits below.

What is left out is told in the metadata: {"rows": 10000, "rows_total": 1000000, …, "note": "…"}.
"""

from __future__ import annotations

import math
from typing import Any

from .channel import encode, plain

# Limits of `e2b/data` alone; the other forms of the same frame have their own.
ROWS_MAX = 10_000
CELLS_MAX = 100_000
BYTES_MAX = 1024 * 1024


def data_of(frame: Any) -> tuple[dict[str, list[Any]], dict[str, Any]] | None:
    """The data and its metadata; None for a frame that cannot be read, say one of a broken subclass."""
    try:
        return _data_of(frame)
    except Exception:  # a display must not fail for what is extra
        return None


def _data_of(frame: Any) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    rows_total, columns_total = frame.shape
    columns = min(columns_total, CELLS_MAX)
    rows = min(rows_total, ROWS_MAX, CELLS_MAX // max(columns, 1))
    data = _columns(frame, rows, columns)
    while (size := len(encode(data))) > BYTES_MAX:
        if rows > 1:
            rows = max(min(rows - 1, rows * BYTES_MAX // size), 1)
        elif columns > 1:
            columns = max(min(columns - 1, columns * BYTES_MAX // size), 1)
        else:  # one huge cell
            rows = columns = 0
        data = _columns(frame, rows, columns)
    return data, _metadata(rows, rows_total, columns, columns_total)


def _columns(frame: Any, rows: int, columns: int) -> dict[str, list[Any]]:
    data: dict[str, list[Any]] = {}
    for index in range(columns):
        name = _unused(str(frame.columns[index]), data)
        data[name] = [_value(value) for value in frame.iloc[:rows, index].tolist()]
    return data


def _unused(name: str, taken: dict[str, Any]) -> str:
    """`name`, or as read_csv does it `name.1`, `name.2`…"""
    number, free = 0, name
    while free in taken:
        number += 1
        free = f"{name}.{number}"
    return free


def _value(value: Any) -> Any:
    """Numbers and text as they are, times in ISO form, what is missing as null."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return plain(value.tolist() if hasattr(value, "tolist") else value)


def _metadata(rows: int, rows_total: int, columns: int, columns_total: int) -> dict[str, Any]:
    counts = {"rows": rows, "rows_total": rows_total, "columns": columns, "columns_total": columns_total}
    if (rows, columns) == (rows_total, columns_total):
        return counts
    shown = f"the first {rows:,} of {rows_total:,} rows"
    if columns < columns_total:
        shown += f" and the first {columns:,} of {columns_total:,} columns"
    return {**counts, "note": f"{shown}; save the frame to a file to have all of it"}
