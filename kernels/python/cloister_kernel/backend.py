"""The matplotlib backend: Agg, with a plt.show() that displays the open charts. Imported by matplotlib only."""

from __future__ import annotations

from typing import Any

from IPython import get_ipython
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg


class FigureManager(FigureManagerBase):
    @classmethod
    def pyplot_show(cls, *, block: bool | None = None) -> None:
        get_ipython().figures.show_open()

    def show(self) -> None:
        get_ipython().figures.show_open()


class FigureCanvas(FigureCanvasAgg):
    manager_class: Any = FigureManager
