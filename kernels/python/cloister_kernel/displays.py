"""Displays and results: IPython formats a value for every MIME type it can, and these send the bundle.

To IPython's types two of our own are added, values for programs: `e2b/data`, the columns of a DataFrame
(tables.py), and `e2b/chart`, what a matplotlib figure shows (charts.py).
"""

from __future__ import annotations

import base64
import builtins
import itertools
import operator
from typing import TYPE_CHECKING, Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import BaseFormatter, DisplayFormatter
from traitlets import ObjectName, Unicode

from .channel import plain
from .charts import chart_of
from .tables import data_of

if TYPE_CHECKING:
    from .shell import CellShell

# Types that IPython shows as text only: asking its ten other formatters costs more than a short cell.
_TEXT_TYPES = frozenset({bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range})

_LAST = ("_", "__", "___")  # the names of the last three values

DATA, CHART = "e2b/data", "e2b/chart"
_JSON_TYPES = frozenset({"application/json", DATA, CHART})

# limits::kPictureMax of the contract, as base64. A larger one is replaced by a note.
PICTURE_MAX = 4 * 1024 * 1024
_PICTURE_TEXT_MAX = (PICTURE_MAX + 2) // 3 * 4


def mime_bundle(data: dict[str, Any]) -> dict[str, Any]:
    """Text as text, bytes as base64, JSON types as they are; a note in place of pictures that are too large."""
    bundle = {mime: _mime_value(mime, value) for mime, value in data.items() if value is not None}
    large = [mime for mime, value in bundle.items() if mime.startswith("image/") and len(value) > _PICTURE_TEXT_MAX]
    notes = [_too_large(mime, bundle.pop(mime)) for mime in large]
    if notes:
        bundle["text/plain"] = "\n".join([text for text in (bundle.get("text/plain"),) if text] + notes)
    return bundle


def _too_large(mime: str, value: str) -> str:
    size = len(value) if mime == "image/svg+xml" else len(value) * 3 // 4
    return (
        f"[{mime} of {size:,} bytes is left out: a picture has at most {PICTURE_MAX:,} (the limit `picture`). "
        "Save it to a file instead, or make it smaller: fewer pixels, a lower dpi.]"
    )


def _mime_value(mime: str, value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, str):
        return value
    return plain(value) if mime in _JSON_TYPES or mime.endswith("+json") else str(value)


class _DataFormatter(BaseFormatter):
    format_type = Unicode(DATA)
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = dict


class _ChartFormatter(BaseFormatter):
    format_type = Unicode(CHART)
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = dict


class CellFormatter(DisplayFormatter):
    """Leaves out a chart that has been shown in this run, and notices those that will be."""

    parent: CellShell

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        data, chart = _DataFormatter(parent=self), _ChartFormatter(parent=self)
        data.for_type_by_name("pandas.core.frame", "DataFrame", data_of)
        chart.for_type_by_name("matplotlib.figure", "Figure", chart_of)
        self.formatters |= {DATA: data, CHART: chart}
        self.active_types = [*self.active_types, DATA, CHART]
        self._rich_printers = self._list_rich_printers()

    def format(self, obj: Any, include: Any = None, exclude: Any = None) -> tuple[Any, Any]:
        if include is None and exclude is None and type(obj) in _TEXT_TYPES and not self._has_printer(type(obj)):
            text = self.formatters["text/plain"](obj)
            return ({} if text is None else {"text/plain": text}), {}
        bundle, metadata = super().format(obj, include=include, exclude=exclude)
        return ({}, {}) if self.parent.figures.is_repeated(obj, bundle) else (bundle, metadata)

    def _has_printer(self, kind: type) -> bool:
        """Whether user code asked for another form of these values than text."""
        if len(self.formatters) != len(self._rich_printers) - 1:
            self._rich_printers = self._list_rich_printers()
        return any(map(operator.contains, self._rich_printers, itertools.repeat(kind)))

    def _list_rich_printers(self) -> list[dict[type, Any]]:
        rich = [formatter for mime, formatter in self.formatters.items() if mime != "text/plain"]
        rich += [self.ipython_display_formatter, self.mimebundle_formatter]
        return [formatter.type_printers for formatter in rich]


class CellPublisher(DisplayPublisher):
    shell: CellShell

    def publish(
        self,
        data: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        source: str | None = None,
        *,
        transient: dict[str, Any] | None = None,
        update: bool = False,
        **kwargs: Any,
    ) -> None:
        if not self.shell.channel.connected:  # a forked child: its pipes are all it has
            print(data.get("text/plain", ""))
            return
        content = {"data": mime_bundle(data), "metadata": plain(metadata or {}), "transient": transient or {}}
        self.shell.send("update_display_data" if update else "display_data", content)

    def clear_output(self, wait: bool = False) -> None:
        self.shell.send("clear_output", {"wait": wait})


class CellDisplayHook(DisplayHook):
    """The value of a cell's last expression."""

    shell: CellShell

    def compute_format_data(self, result: Any) -> tuple[Any, Any]:
        if self.shell.figures.was_shown(result):  # shown and returned: its picture is already there
            return self.shell.display_formatter.format(result, include={"text/plain"})
        return super().compute_format_data(result)

    def __call__(self, result: Any = None) -> None:
        self.check_for_underscore()
        if result is None or self._ends_with_semicolon():
            return
        data, metadata = self.compute_format_data(result)
        self.update_user_ns(result)
        self.fill_exec_result(result)
        if data:
            self.write_format_data(data, metadata)
            self.log_output(data)

    def _ends_with_semicolon(self) -> bool:
        inputs = self.shell.history_manager.input_hist_parsed
        return bool(inputs) and ";" in inputs[-1] and bool(self.quiet())

    def update_user_ns(self, result: Any) -> None:
        """Keeps the value as `_`, `Out[n]` and `_n`. As IPython's own, which asks for the shell twenty times."""
        shell, count = self.shell, self.prompt_count
        names = shell.user_ns
        outputs = names["_oh"]
        if not self.cache_size or result is outputs:
            return
        if len(outputs) >= self.cache_size and self.do_full_cache:
            self.cull_cache()
        untouched = all(getattr(self, name) is names.get(name, getattr(self, name)) for name in _LAST)
        self.___, self.__, self._ = self.__, self._, result
        new: dict[str, Any] = {}
        if untouched and "_" not in builtins.__dict__:
            new = {"_": self._, "__": self.__, "___": self.___}
        if self.do_full_cache:
            new[f"_{count}"] = outputs[count] = result
        names.update(new)
        shell.user_ns_hidden.update(new)

    def write_format_data(self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None) -> None:
        content = {
            "data": mime_bundle(format_dict),
            "metadata": plain(md_dict or {}),
            "execution_count": self.prompt_count,
        }
        self.shell.send("execute_result", content, soon=True)  # execute_reply follows

