"""What a matplotlib figure shows, as plain data for programs that draw it again: type, title, labels, elements.

    line, scatter    {label, points: [[x, y], …]}
    bar              {label, group, value}
    pie              {label, angle, radius}
    box_and_whisker  {label, min, first_quartile, median, third_quartile, max, outliers}
    superchart       the charts of a figure with several axes
    unknown          no elements

A figure can be anything, and its picture is there already: whatever cannot be read is `unknown`.
"""

from __future__ import annotations

import functools
import math
import re
import weakref
from collections.abc import Callable, Iterator
from typing import Any

# Of one figure: points, bars, wedges and boxes together; longer ones are thinned out evenly.
ELEMENTS_MAX = 10_000
_TICKS_MAX = 200
_SCALES = {"linear", "log", "symlog", "logit", "function", "functionlog", "asinh"}
_UNIT = re.compile(r"\(([^()]*)\)\s*$|\[([^\[\]]*)\]\s*$")
_COLOUR_BAR = "<colorbar>"
_SET_BY_HAND = {"FixedLocator", "StrCategoryLocator"}  # ticks that were set, so named for what stands there

Chart = dict[str, Any]
Value = Callable[[Any], Any]

# What each box was drawn from: its lines alone do not tell.
_boxes: weakref.WeakKeyDictionary[Any, list[dict[str, Any]]] = weakref.WeakKeyDictionary()


def record_boxes() -> None:
    """Makes Axes.bxp(), behind every box plot, remember its figures. Once, when matplotlib is imported."""
    from matplotlib.axes import Axes

    draw = Axes.bxp

    @functools.wraps(draw)
    def bxp(self: Any, bxpstats: Any, *args: Any, **kwargs: Any) -> Any:
        drawn = draw(self, bxpstats, *args, **kwargs)
        _boxes.setdefault(self, []).extend(bxpstats)
        return drawn

    Axes.bxp = bxp


def chart_of(figure: Any) -> tuple[Chart, dict[str, Any]] | None:
    """The chart and its metadata; None for a figure without axes."""
    try:
        axes = [each for each in figure.axes if each.get_label() != _COLOUR_BAR]
        charts = [_chart(each, ELEMENTS_MAX // len(axes)) for each in axes]
        suptitle = figure.get_suptitle()
    except Exception:  # a figure that was taken apart
        return None
    if not charts:
        return None
    thinned = {"note": f"long series are thinned out to {ELEMENTS_MAX:,} points"} if any(t for _, t in charts) else {}
    if len(charts) == 1:
        ((chart, _),) = charts
        return {**chart, "title": chart["title"] or suptitle}, thinned
    return {"type": "superchart", "title": suptitle, "elements": [chart for chart, _ in charts]}, thinned


def _chart(axes: Any, room: int) -> tuple[Chart, bool]:
    """The chart of one axes, and whether it was thinned out."""
    try:
        budget = _Budget(room)
        read = next((read for shows, read in _KINDS if shows(axes)), _unknown)
        return read(axes, budget), budget.thinned
    except Exception:  # an artist of a kind that nobody foresaw
        return _unknown(axes), False


class _Budget:
    """So many elements may still be listed."""

    def __init__(self, room: int) -> None:
        self._room = room
        self.thinned = False

    def some_of(self, entries: Any) -> Any:
        """All entries, or evenly chosen ones that still have room."""
        step = math.ceil(len(entries) / max(self._room, 1))
        chosen = entries[:: max(step, 1)] if self._room > 0 else entries[:0]
        self.thinned |= len(chosen) < len(entries)
        self._room -= len(chosen)
        return chosen


# --- The kinds of charts ---


def _unknown(axes: Any, budget: _Budget | None = None) -> Chart:
    return {"type": "unknown", "title": _text(axes.get_title()), "elements": []}


def _line(axes: Any, budget: _Budget) -> Chart:
    series = [
        {"label": _label(label, f"Line {number}"), "points": _points(axes, line.get_xydata(), budget)}
        for number, (line, label) in enumerate(_lines(axes), 1)
    ]
    return _with_ticks(axes, "line", series)


def _scatter(axes: Any, budget: _Budget) -> Chart:
    series = [
        {"label": _label(dots.get_label(), f"Scatter {number}"), "points": _points(axes, dots.get_offsets(), budget)}
        for number, dots in enumerate(_dots(axes), 1)
    ]
    return _with_ticks(axes, "scatter", series)


def _bar(axes: Any, budget: _Budget) -> Chart:
    groups = _bars(axes)
    flat = groups[0].orientation == "horizontal"
    name = _namer(axes.yaxis if flat else axes.xaxis)
    elements = []
    for number, group in enumerate(groups, 1):
        label = _label(group.get_label(), f"Group {number}")
        for bar in budget.some_of(group.patches):
            across, along = (bar.get_x(), bar.get_width()), (bar.get_y(), bar.get_height())
            (begin, breadth), (_, value) = (along, across) if flat else (across, along)
            elements.append({"label": name(begin + breadth / 2, breadth), "group": label, "value": _number(value)})
    chart = _with_labels(axes, "bar", elements)
    return _flipped(chart) if flat else chart


def _pie(axes: Any, budget: _Budget) -> Chart:
    elements = [
        {
            "label": _label(wedge.get_label(), ""),
            "angle": _number(wedge.theta2 - wedge.theta1),
            "radius": _number(wedge.r),
        }
        for wedge in budget.some_of(_wedges(axes))
    ]
    return {"type": "pie", "title": _text(axes.get_title()), "elements": elements}


def _box(axes: Any, budget: _Budget) -> Chart:
    names = [name for _, name in _tick_names(axes.xaxis) or _tick_names(axes.yaxis)]
    elements = []
    for index, box in enumerate(budget.some_of(_boxes[axes])):
        label = box.get("label") or (names[index] if index < len(names) else f"Box {index + 1}")
        elements.append(
            {
                "label": _text(label),
                "min": _number(box["whislo"]),
                "first_quartile": _number(box["q1"]),
                "median": _number(box["med"]),
                "third_quartile": _number(box["q3"]),
                "max": _number(box["whishi"]),
                "outliers": [_number(value) for value in budget.some_of(list(box.get("fliers", ())))],
            }
        )
    return _with_labels(axes, "box_and_whisker", elements)


# --- What an axes holds ---


def _is_flat(axes: Any) -> bool:
    """Neither polar nor three-dimensional nor a map."""
    return axes.name == "rectilinear"


def _wedges(axes: Any) -> list[Any]:
    return [patch for patch in axes.patches if type(patch).__name__ == "Wedge"]


def _bars(axes: Any) -> list[Any]:
    return [group for group in axes.containers if type(group).__name__ == "BarContainer" and len(group.patches) > 0]


def _dots(axes: Any) -> list[Any]:
    return [each for each in axes.collections if type(each).__name__ == "PathCollection"]


def _lines(axes: Any) -> list[tuple[Any, str]]:
    """The lines of data with their labels: not those across the whole axes, nor the caps of error bars."""
    named, caps = {}, set()
    for group in axes.containers:
        if type(group).__name__ == "ErrorbarContainer":
            line, ends, _ = group.lines
            named[line] = group.get_label() or ""
            caps.update(ends)
    return [
        (line, named.get(line, line.get_label()))
        for line in axes.get_lines()
        if line not in caps and line.get_transform() == axes.transData
    ]


_KINDS: list[tuple[Callable[[Any], Any], Callable[[Any, _Budget], Chart]]] = [
    (_wedges, _pie),
    (lambda axes: not _is_flat(axes), _unknown),
    (_boxes.get, _box),
    (_bars, _bar),
    (_lines, _line),
    (_dots, _scatter),
]


# --- Labels, ticks, values ---


def _with_labels(axes: Any, kind: str, elements: list[Any]) -> Chart:
    x, y = _text(axes.get_xlabel()), _text(axes.get_ylabel())
    return {
        "type": kind,
        "title": _text(axes.get_title()),
        "x_label": x,
        "y_label": y,
        "x_unit": _unit(x),
        "y_unit": _unit(y),
        "elements": elements,
    }


def _with_ticks(axes: Any, kind: str, elements: list[Any]) -> Chart:
    chart = _with_labels(axes, kind, elements)
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        value = _reader(axis)
        shown = list(_ticks(axis))
        chart[f"{name}_ticks"] = [value(at) for at, _ in shown]
        chart[f"{name}_tick_labels"] = [label for _, label in shown]
        chart[f"{name}_scale"] = _scale(axis)
    return chart


def _flipped(chart: Chart) -> Chart:
    """Horizontal bars: the names are on the y axis, as they are on the x axis of upright ones."""
    pairs = {"x_label": "y_label", "y_label": "x_label", "x_unit": "y_unit", "y_unit": "x_unit"}
    return chart | {name: chart[other] for name, other in pairs.items()}


def _ticks(axis: Any) -> Iterator[tuple[float, str]]:
    low, high = sorted(axis.get_view_interval())
    for at, label in zip(axis.get_majorticklocs()[:_TICKS_MAX], axis.get_ticklabels(), strict=False):
        if low <= at <= high:
            yield at, _text(label.get_text())


def _tick_names(axis: Any) -> list[tuple[float, str]]:
    return [(at, name) for at, name in _ticks(axis) if name]


def _namer(axis: Any) -> Callable[[float, float], str]:
    """Names a bar that stands at a place of the axis and is so broad: by its tick, else by the place."""
    if _scale(axis) == "datetime":
        read = _reader(axis)
        return lambda at, breadth: str(read(at))
    ticks = _tick_names(axis)
    are_set = type(axis.get_major_locator()).__name__ in _SET_BY_HAND
    are_words = are_set and type(axis.get_major_formatter()).__name__ != "ScalarFormatter"

    def name(at: float, breadth: float) -> str:
        tick, text = min(ticks, key=lambda each: abs(each[0] - at), default=(math.inf, ""))
        return text if are_words or abs(tick - at) <= abs(breadth) / 2 else f"{at:g}"

    return name


def _scale(axis: Any) -> str:
    formatter = type(axis.get_major_formatter()).__name__
    if "Date" in formatter:
        return "datetime"
    if "StrCategory" in formatter:
        return "categorical"
    scale = axis.get_scale()
    return scale if scale in _SCALES else "linear"


def _reader(axis: Any) -> Value:
    """Turns a number on the axis into what it stands for: a time in ISO form, a category, the number."""
    scale = _scale(axis)
    if scale == "categorical":
        names = {number: name for name, number in axis.units._mapping.items()}
        return lambda at: names.get(round(at), _number(at))
    if scale == "datetime":
        return _period_reader(axis.axes.freq) if hasattr(axis.axes, "freq") else _date_reader(axis.get_units())
    return _number


def _date_reader(zone: Any) -> Value:
    from matplotlib.dates import num2date

    def read(at: Any) -> str | None:
        if not math.isfinite(at):
            return None
        date = num2date(at, zone)
        return (date if zone is not None else date.replace(tzinfo=None)).isoformat()

    return read


def _period_reader(frequency: Any) -> Value:
    """pandas draws a regular series by the ordinals of its periods."""
    from pandas import Period

    return lambda at: Period(ordinal=round(at), freq=frequency).start_time.isoformat()


def _points(axes: Any, pairs: Any, budget: _Budget) -> list[list[Any]]:
    x, y = _reader(axes.xaxis), _reader(axes.yaxis)
    return [[x(at), y(value)] for at, value in budget.some_of(pairs).tolist() if at is not None and value is not None]


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _label(label: Any, otherwise: str) -> str:
    """matplotlib gives what has no name one that begins with an underscore."""
    text = _text(label)
    return otherwise if not text or text.startswith("_") else text


def _unit(label: str) -> str | None:
    found = _UNIT.search(label)
    return None if found is None else found[1] or found[2] or None


def _text(value: Any) -> str:
    return str(value)
