"""The inputs and outputs of a context, as `In`, `Out`, `_`, `_i` and `%history` know them."""

from __future__ import annotations

from IPython.core.history import HistoryManager


class CellHistory(HistoryManager):
    """IPython's own, less the database that nobody reads and the checked attributes that make it slow."""

    _i = _ii = _iii = _i00 = ""

    def store_inputs(self, line_num: int, source: str, source_raw: str | None = None) -> None:
        source = source.rstrip("\n")
        raw = source if source_raw is None else source_raw.rstrip("\n")
        if self._exit_re.match(raw.strip()):
            return
        self.input_hist_parsed.append(source)
        self.input_hist_raw.append(raw)
        self._i, self._ii, self._iii, self._i00 = self._i00, self._i, self._ii, raw
        names = {"_i": self._i, "_ii": self._ii, "_iii": self._iii, f"_i{line_num}": raw}
        self.shell.user_ns.update(names)
        self.shell.user_ns_hidden.update(names)
