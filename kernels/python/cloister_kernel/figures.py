"""matplotlib charts: each is shown exactly once per run, whether by plt.show(), as a value, or at the run's end.

matplotlib itself is imported by user code only. When pyplot is imported, our backend becomes the default
one, unless a backend was chosen (`matplotlib.use(...)`, MPLBACKEND). An environment variable would also
reach child processes, which do not have our backend.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from IPython.core.pylabtools import print_figure, select_figure_formats
from traitlets import Bool, Dict, Set, Unicode, observe
from traitlets.config import Configurable

from .charts import chart_of, record_boxes

if TYPE_CHECKING:
    from .shell import CellShell

BACKEND = "module://cloister_kernel.backend"


class Figures:
    def __init__(self, shell: CellShell) -> None:
        self._shell = shell
        # What was shown of each figure in this run: the hash of its picture.
        self._shown: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        formatter = shell.display_formatter.formatters["image/png"]
        formatter.for_type_by_name("matplotlib.figure", "Figure", _png_of)
        sys.meta_path.insert(0, _BackendChooser())

    def begin_run(self) -> None:
        self._shown.clear()

    def is_repeated(self, value: Any, bundle: dict[str, Any]) -> bool:
        """Whether this very picture of a figure has been shown; if not, now it will be."""
        pictures = [picture for mime, picture in bundle.items() if mime.startswith("image/")]
        if not pictures or not _is_figure(value):
            return False
        picture = hash(tuple(pictures))
        before, self._shown[value] = self._shown.get(value), picture
        return before == picture

    def was_shown(self, value: Any) -> bool:
        return _is_figure(value) and value in self._shown

    def show_open(self) -> None:
        """Shows the open charts that this run has not shown, and closes all: the next run starts afresh."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None or pyplot.get_backend() != BACKEND:
            return
        try:
            for number in pyplot.get_fignums():
                self._show(pyplot.figure(number))
        finally:
            pyplot.close("all")

    def _show(self, figure: Any) -> None:
        if figure in self._shown:
            return
        bundle, metadata = self._shell.display_formatter.format(figure)
        if bundle.keys() - {"text/plain"}:  # a figure without axes has no picture
            self._shell.display_pub.publish(bundle, metadata)


class InlineBackend(Configurable):
    """`%config InlineBackend.figure_format = "svg"`, by the name that notebooks use."""

    figure_formats = Set({"png"}).tag(config=True)
    figure_format = Unicode("png").tag(config=True)
    print_figure_kwargs = Dict({"bbox_inches": "tight"}).tag(config=True)
    close_figures = Bool(True).tag(config=True)

    @observe("figure_format")
    def _one_format(self, change: Any) -> None:
        self.figure_formats = {change["new"]}

    @observe("figure_formats", "print_figure_kwargs")
    def _apply(self, change: Any) -> None:
        select_figure_formats(self.parent, self.figure_formats, **self.print_figure_kwargs)
        # It takes figures out of all formatters, that of charts included.
        formatter = self.parent.display_formatter.formatters["e2b/chart"]
        formatter.for_type_by_name("matplotlib.figure", "Figure", chart_of)


class _BackendChooser(MetaPathFinder):
    """Sees the first import of pyplot and sets the default backend just before it; then it is gone."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "matplotlib.pyplot":
            sys.meta_path.remove(self)
            use_default_backend()
        return None


def use_default_backend() -> None:
    import matplotlib

    record_boxes()

    # rcParams.get would resolve the automatic choice, and import a backend.
    if not isinstance(dict.__getitem__(matplotlib.rcParams, "backend"), str):
        matplotlib.rcParams["backend"] = BACKEND


def _is_figure(value: Any) -> bool:
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(value, module.Figure)


def _png_of(figure: Any) -> Any:
    return print_figure(figure, fmt="png", base64=True)
