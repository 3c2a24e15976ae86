"""Displays and results: IPython formats a value for every MIME type it can, and these send the bundle."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter

from .channel import plain

if TYPE_CHECKING:
    from .shell import CellShell

# Types that IPython shows as text only: asking its ten other formatters costs more than a short cell.
_TEXT_TYPES = frozenset({bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range})


def mime_bundle(data: dict[str, Any]) -> dict[str, Any]:
    """Text as text, bytes as base64, JSON types as they are."""
    return {mime: _mime_value(mime, value) for mime, value in data.items() if value is not None}


def _mime_value(mime: str, value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, str):
        return value
    return plain(value) if mime == "application/json" or mime.endswith("+json") else str(value)


class CellFormatter(DisplayFormatter):
    """Notices which charts have been shown, so that the end of the run does not show them again."""

    parent: CellShell

    def format(self, obj: Any, include: Any = None, exclude: Any = None) -> tuple[Any, Any]:
        self.parent.figures.mark_shown(obj)
        if include is None and type(obj) in _TEXT_TYPES and not self._has_printer(type(obj)):
            include = {"text/plain"}
        return super().format(obj, include=include, exclude=exclude)


    def _has_printer(self, kind: type) -> bool:
        rich = (formatter for mime, formatter in self.formatters.items() if mime != "text/plain")
        return any(kind in formatter.type_printers for formatter in rich)


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

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None) -> None:
        content = {
            "data": mime_bundle(format_dict),
            "metadata": plain(md_dict or {}),
            "execution_count": self.prompt_count,
        }
        self.shell.send("execute_result", content)

    def finish_displayhook(self) -> None:
        pass
