"""What a display or a result carries: its MIME types, and the data of tables and charts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Run, result_text, runner

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "kernels" / "python" / "cloister_kernel"
NODE = ROOT / "kernels" / "node"

DATA, CHART = "e2b/data", "e2b/chart"
MIB = 1024 * 1024


@pytest.fixture
def py(client: httpx.Client, shared: dict[str, Any]) -> Run:
    """py(code): runs Python in the sandbox that this module shares; its charts are closed after each run."""
    return runner(client, shared)


def shown(run: dict[str, Any]) -> dict[str, Any]:
    """The one display or result of a run that ended well."""
    assert run["end_reason"] == "ok", (run.get("error"), run["stderr"])
    assert run["stderr"]["text"] == ""
    (result,) = run["results"]
    return result


# --- MIME types pass through ---

BUNDLES = {
    "application/vnd.plotly.v1+json": {"data": [{"x": [1]}], "layout": {}},
    "application/vnd.vegalite.v5+json": {"mark": "bar", "data": {"values": [{"a": 1}]}},
    "application/vnd.vega.v5+json": {"marks": []},
    "application/geo+json": {"type": "Point", "coordinates": [1, 2]},
    "application/x-of-its-own": "text",
}


@pytest.mark.parametrize("mime", BUNDLES)
def test_bundles_of_libraries_pass_through(mime: str, py: Run) -> None:
    """A plot of plotly, altair or vega says itself what it is: as the last value, and displayed by its own show()."""
    code = (
        f"bundle = {{{mime!r}: {BUNDLES[mime]!r}, 'text/html': '<div/>'}}\n"
        "class Plot:\n"
        "    def _repr_mimebundle_(self, include=None, exclude=None): return bundle\n"
        "    def show(self): display(bundle, raw=True)\n"
        "Plot().show()\nPlot()"
    )
    first, second = py(code)["results"]
    assert (first["data"], first["type"]) == ({mime: BUNDLES[mime], "text/html": "<div/>"}, "display")
    assert second["data"].items() >= first["data"].items()


def test_metadata_of_a_bundle_is_kept(py: Run) -> None:
    code = "class P:\n def _repr_mimebundle_(self, **_): return {'text/html': 'x'}, {'text/html': {'isolated': True}}\nP()"
    assert shown(py(code))["metadata"] == {"text/html": {"isolated": True}}


BYTES = {
    "Image(data=b'\\xff\\xd8\\xff\\xe0', format='jpeg')": ("image/jpeg", "/9j/4A=="),
    "Image(data=b'\\x89PNG\\r\\n\\x1a\\n', format='png')": ("image/png", "iVBORw0KGgo="),
    "{'application/pdf': b'%PDF'}, raw=True": ("application/pdf", "JVBERg=="),
}


@pytest.mark.parametrize("value", BYTES)
def test_bytes_are_base64(value: str, py: Run) -> None:
    mime, expected = BYTES[value]
    assert shown(py(f"from IPython.display import *\ndisplay({value})"))["data"][mime].strip() == expected


def test_pictures_of_pillow(py: Run) -> None:
    """As a value, displayed, and by its own show(), which opens a window elsewhere."""
    done = py("from PIL import Image\nred = Image.new('RGB', (2, 2), 'red')\ndisplay(red)\nred.show()\nred")
    assert [("image/png" in each["data"], each["type"]) for each in done["results"]] == [
        (True, "display"),
        (True, "display"),
        (True, "result"),
    ]


# --- Pictures have a limit ---

NOISE = "import os\nfrom PIL import Image\nImage.frombytes('RGB', (1500, 1500), os.urandom(6_750_000))"


@pytest.mark.complaint(22)
def test_a_large_picture_is_named_instead(py: Run) -> None:
    data = shown(py(NOISE))["data"]
    assert "image/png" not in data
    assert re.search(r"\[image/png of 6,7\d\d,\d{3} bytes is left out: .* 4,194,304 \(the limit `picture`\)", data["text/plain"])
    assert data["text/plain"].startswith("<PIL.Image.Image")


def test_what_else_a_large_picture_has_is_kept(py: Run) -> None:
    done = py("import matplotlib.pyplot as plt, numpy as np\nplt.figure(dpi=500); plt.imshow(np.random.rand(3000, 3000, 3))\nNone")
    data = shown(done)["data"]
    assert set(data) == {"text/plain", CHART}
    assert "(the limit `picture`)" in data["text/plain"]


def test_the_limits_of_the_drivers_are_those_of_the_contract() -> None:
    limits = (ROOT / "src" / "base" / "limits.h").read_text()
    for name, files in {"kPictureMax": [PYTHON / "displays.py", NODE / "displays.js"], "kDisplayMax": [PYTHON / "channel.py"]}.items():
        mebibytes = re.search(rf"{name} = (\d+) \* kMiB", limits)
        assert mebibytes, name
        for file in files:
            assert f"_MAX = {mebibytes[1]} * 1024 * 1024" in file.read_text(), file


# --- Tables ---


def data_of(run: dict[str, Any]) -> Any:
    return shown(run)["data"][DATA]


def test_a_data_frame_as_data(py: Run) -> None:
    code = (
        "import pandas as pd, numpy as np, datetime, decimal\n"
        "pd.DataFrame({'n': [1, 2], 'x': [0.5, np.nan], 't': pd.to_datetime(['2024-05-01', None]), 'w': ['a', None],\n"
        "  'b': [True, False], 'c': pd.Categorical(['u', 'v']), 'd': [datetime.date(2024, 1, 2)] * 2, 'e': [float('inf'), 1],\n"
        "  'm': [decimal.Decimal('1.5'), pd.NA], 'l': [[1], np.array([2])], 'z': pd.to_datetime(['2024-05-01'] * 2).tz_localize('UTC')})"
    )
    done = py(code)
    assert data_of(done) == {
        "n": [1, 2],
        "x": [0.5, None],
        "t": ["2024-05-01T00:00:00", None],
        "w": ["a", None],
        "b": [True, False],
        "c": ["u", "v"],
        "d": ["2024-01-02", "2024-01-02"],
        "e": [None, 1],
        "m": ["1.5", None],
        "l": [[1], [2]],
        "z": ["2024-05-01T00:00:00+00:00"] * 2,
    }
    assert set(shown(done)["data"]) == {"text/plain", "text/html", DATA}
    assert shown(done)["metadata"][DATA] == {"rows": 2, "rows_total": 2, "columns": 11, "columns_total": 11}


def test_columns_of_any_name(py: Run) -> None:
    assert data_of(py("import pandas as pd\npd.DataFrame([[1, 2, 3]], columns=['a', 'a', 'a'])")) == {"a": [1], "a.1": [2], "a.2": [3]}
    assert data_of(py("pd.DataFrame([[1, 2]])")) == {"0": [1], "1": [2]}
    assert data_of(py("pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([('a', 'b')]))")) == {"('a', 'b')": [1]}
    assert data_of(py("pd.DataFrame()")) == {}
    assert data_of(py("pd.DataFrame({'a': []})")) == {"a": []}


def test_displayed_frames_have_data_too(py: Run) -> None:
    assert data_of(py("import pandas as pd\ndisplay(pd.DataFrame({'a': [1]}))")) == {"a": [1]}


LONG = {
    "pd.DataFrame({'a': range(50_000)})": (10_000, 50_000, 1),
    "pd.DataFrame(0, index=range(5_000), columns=range(50))": (2_000, 5_000, 50),
    "pd.DataFrame({'a': ['x' * 1000] * 5_000})": (1_045, 5_000, 1),
}


@pytest.mark.parametrize("code", LONG)
def test_long_frames_are_cut_and_say_so(code: str, py: Run) -> None:
    result = shown(py(f"import pandas as pd\n{code}"))
    rows, total, columns = LONG[code]
    metadata = result["metadata"][DATA]
    assert (metadata["rows"], metadata["rows_total"], metadata["columns"]) == (rows, total, columns)
    assert metadata["note"].startswith(f"the first {rows:,} of {total:,} rows; ")
    assert {len(values) for values in result["data"][DATA].values()} == {rows}


def test_frames_that_are_too_wide_or_have_huge_cells(py: Run) -> None:
    wide = shown(py("import pandas as pd\npd.DataFrame(0, index=range(2), columns=range(120_000))"))
    assert 50_000 < len(wide["data"][DATA]) <= 100_000
    assert re.search("and the first [0-9]+,[0-9]+ of 120,000 columns", wide["metadata"][DATA]["note"])
    huge = shown(py("pd.DataFrame({'a': ['x' * 2_000_000]})"))
    assert (huge["data"][DATA], huge["metadata"][DATA]["rows"]) == ({}, 0)


def test_a_frame_that_cannot_be_read_is_shown_as_far_as_it_can(py: Run) -> None:
    code = (
        "import pandas as pd\nclass Odd(pd.DataFrame):\n    @property\n    def iloc(self): raise ValueError('mine')\n"
        "    def _repr_html_(self): return '<i>odd</i>'\n    def __repr__(self): return 'odd'\nOdd({'a': [1]})"
    )
    assert shown(py(code))["data"] == {"text/plain": "odd", "text/html": "<i>odd</i>"}


# --- Charts ---

PLOT = "import matplotlib.pyplot as plt, numpy as np, pandas as pd, datetime\n"


def chart(py: Run, code: str) -> dict[str, Any]:
    result = shown(py(f"{PLOT}{code}\nNone"))
    assert "image/png" in result["data"]
    return result["data"][CHART]


def test_a_line_chart(py: Run) -> None:
    code = (
        "plt.plot([1, 2, 3], [10, 20, 15], label='first'); plt.plot([1, 2], [5, 6]); plt.axhline(7); plt.grid()\n"
        "plt.title('Title'); plt.xlabel('Time (s)'); plt.ylabel('Size [kB]'); plt.xticks([1, 2, 3], ['one', 'two', 'three'])"
    )
    found = chart(py, code)
    assert found["elements"] == [
        {"label": "first", "points": [[1, 10], [2, 20], [3, 15]]},
        {"label": "Line 2", "points": [[1, 5], [2, 6]]},
    ]
    expected = {"type": "line", "title": "Title", "x_label": "Time (s)", "y_label": "Size [kB]", "x_unit": "s", "y_unit": "kB"}
    assert found.items() >= expected.items()
    assert (found["x_ticks"], found["x_tick_labels"], found["x_scale"]) == ([1, 2, 3], ["one", "two", "three"], "linear")
    assert found["y_scale"] == "linear"
    assert len(found["y_ticks"]) == len(found["y_tick_labels"]) > 2


def test_a_scatter_chart(py: Run) -> None:
    found = chart(py, "plt.scatter([1, 2], [3, 4], label='dots'); plt.scatter([0], [np.nan])")
    assert (found["type"], found["x_unit"]) == ("scatter", None)
    assert found["elements"] == [{"label": "dots", "points": [[1, 3], [2, 4]]}, {"label": "Scatter 2", "points": []}]


def test_a_bar_chart(py: Run) -> None:
    found = chart(py, "plt.bar(['a', 'b'], [1, 2], label='low'); plt.bar(['a', 'b'], [3, 4], bottom=[1, 2]); plt.xlabel('name')")
    assert (found["type"], found["x_label"]) == ("bar", "name")
    assert found["elements"] == [
        {"label": "a", "group": "low", "value": 1},
        {"label": "b", "group": "low", "value": 2},
        {"label": "a", "group": "Group 2", "value": 3},
        {"label": "b", "group": "Group 2", "value": 4},
    ]


def test_bars_in_every_position(py: Run) -> None:
    flat = chart(py, "plt.barh(['a', 'b'], [1, 2]); plt.xlabel('amount (m)'); plt.ylabel('name')")
    assert [element["value"] for element in flat["elements"]] == [1, 2]
    assert [element["label"] for element in flat["elements"]] == ["a", "b"]
    assert (flat["x_label"], flat["y_label"], flat["y_unit"]) == ("name", "amount (m)", "m")
    grouped = chart(py, "pd.DataFrame({'x': [1, 2], 'y': [3, 4], 'z': [5, 6]}, index=['p', 'q']).plot.bar()")
    assert [(e["label"], e["group"], e["value"]) for e in grouped["elements"]] == [
        ("p", "x", 1), ("q", "x", 2), ("p", "y", 3), ("q", "y", 4), ("p", "z", 5), ("q", "z", 6)
    ]  # fmt: skip
    numbers = chart(py, "plt.bar([1, 2.13], [5, 6], width=0.1)")
    assert [element["label"] for element in numbers["elements"]] == ["1.0", "2.13"]
    dates = chart(py, "plt.bar([datetime.date(2024, 5, 1), datetime.date(2024, 5, 9)], [5, 6])")
    assert [element["label"] for element in dates["elements"]] == ["2024-05-01T00:00:00", "2024-05-09T00:00:00"]
    histogram = chart(py, "plt.hist([1, 1, 2, 3], bins=3)")
    assert [element["value"] for element in histogram["elements"]] == [2, 1, 1]


def test_a_pie_chart(py: Run) -> None:
    found = chart(py, "plt.pie([1, 3], labels=['a', 'b'], radius=2); plt.title('Pie')")
    expected = [{"label": "a", "angle": 90, "radius": 2}, {"label": "b", "angle": 270, "radius": 2}]
    assert (found["type"], found["title"]) == ("pie", "Pie")
    for element, wanted in zip(found["elements"], expected, strict=True):
        assert element == pytest.approx(wanted)
    assert [element["label"] for element in chart(py, "plt.pie([1, 1])")["elements"]] == ["", ""]


BOXES = {
    "plain": "plt.boxplot([[1, 2, 3, 4, 30], [2, 2, 2]], tick_labels=['a', 'b'])",
    "lying": "plt.boxplot([[1, 2, 3, 4, 30], [2, 2, 2]], tick_labels=['a', 'b'], orientation='horizontal')",
    "notched": "plt.boxplot([[1, 2, 3, 4, 30], [2, 2, 2]], tick_labels=['a', 'b'], notch=True, patch_artist=True)",
    "pandas": "pd.DataFrame({'a': [1, 2, 3, 4, 30], 'b': [2, 2, 2, None, None]}).plot.box()",
    "seaborn": "import seaborn; seaborn.boxplot(pd.DataFrame({'a': [1, 2, 3, 4, 30], 'b': [2, 2, 2, None, None]}))",
}


@pytest.mark.parametrize("code", BOXES.values(), ids=BOXES.keys())
def test_a_box_plot(code: str, py: Run) -> None:
    found = chart(py, code)
    assert found["type"] == "box_and_whisker"
    first, second = found["elements"]
    assert first == {
        "label": "a",
        "min": 1,
        "first_quartile": 2,
        "median": 3,
        "third_quartile": 4,
        "max": 4,
        "outliers": [30],
    }
    assert (second["label"], second["median"], second["outliers"]) == ("b", 2, [])


def test_several_axes_are_a_superchart(py: Run) -> None:
    code = "figure, (a, b) = plt.subplots(1, 2); a.plot([1, 2]); b.bar(['x'], [1]); b.set_title('B'); figure.suptitle('Both')"
    found = chart(py, code)
    assert (found["type"], found["title"]) == ("superchart", "Both")
    assert [(part["type"], part["title"]) for part in found["elements"]] == [("line", ""), ("bar", "B")]


def test_the_title_of_a_figure_with_one_axes(py: Run) -> None:
    assert chart(py, "plt.plot([1]); plt.suptitle('Above')")["title"] == "Above"


def test_dates(py: Run) -> None:
    found = chart(py, "plt.plot([datetime.datetime(2024, 5, d, 12) for d in (1, 2)], [1, 2])")
    assert (found["x_scale"], found["elements"][0]["points"]) == ("datetime", [["2024-05-01T12:00:00", 1], ["2024-05-02T12:00:00", 2]])
    assert all(re.match(r"2024-05-0\dT", tick) for tick in found["x_ticks"])
    zoned = chart(py, "plt.plot(pd.date_range('2024-05-01', periods=2, tz='Europe/Berlin'), [1, 2])")
    assert zoned["elements"][0]["points"][0][0] == "2024-05-01T00:00:00+02:00"
    series = chart(py, "pd.Series([1, 2], pd.date_range('2024-05-01', periods=2)).plot()")
    assert (series["x_scale"], series["elements"][0]["points"]) == ("datetime", [["2024-05-01T00:00:00", 1], ["2024-05-02T00:00:00", 2]])


def test_categories(py: Run) -> None:
    found = chart(py, "plt.plot(['low', 'high'], [1, 2]); plt.scatter(['mid'], [3])")
    assert (found["x_scale"], found["elements"][0]["points"]) == ("categorical", [["low", 1], ["high", 2]])
    assert found["x_ticks"] == ["low", "high", "mid"]


@pytest.mark.parametrize("scale", ["log", "symlog", "logit", "asinh"])
def test_scales(scale: str, py: Run) -> None:
    found = chart(py, f"plt.plot([0.1, 0.9], [0.1, 0.5]); plt.xscale('{scale}')")
    assert (found["x_scale"], found["y_scale"]) == (scale, "linear")
    assert found["elements"][0]["points"] == [[0.1, 0.1], [0.9, 0.5]]


ODD = {
    "empty axes": ("plt.subplots()", "unknown", 0),
    "an image": ("plt.imshow(np.zeros((3, 3)))", "unknown", 0),
    "an image with a colour bar": ("plt.imshow(np.zeros((3, 3))); plt.colorbar()", "unknown", 0),
    "three dimensions": ("plt.figure().add_subplot(projection='3d').plot([1, 2], [3, 4], [5, 6])", "unknown", 0),
    "a surface": ("plt.figure().add_subplot(projection='3d').plot_surface(*np.mgrid[0:3, 0:3], np.ones((3, 3)))", "unknown", 0),
    "polar": ("plt.subplot(projection='polar').plot([1, 2], [3, 4])", "unknown", 0),
    "a contour": ("plt.contour(np.outer([1, 2, 3], [1, 2, 3]))", "unknown", 0),
    "a violin": ("plt.violinplot([1, 2, 3])", "unknown", 0),
    "a polygon": ("plt.gca().add_patch(plt.Polygon([[0, 0], [1, 0], [1, 1]])); plt.title('P')", "unknown", 0),
    "a table": ("plt.table([['a']]); plt.axis('off')", "unknown", 0),
    "error bars": ("plt.errorbar([1, 2], [3, 4], yerr=[0.1, 0.2], xerr=0.1, capsize=3, label='e')", "line", 1),
    "bars with error bars": ("plt.bar(['a', 'b'], [3, 4], yerr=[0.1, 0.2], capsize=3)", "bar", 2),
    "twin axes": ("plt.plot([1, 2]); plt.gca().twinx().bar([0, 1], [5, 6])", "superchart", 2),
    "a stem": ("plt.stem([1, 2])", "line", 2),
    "steps": ("plt.step([1, 2], [3, 4])", "line", 1),
    "a filled area": ("plt.fill_between([1, 2], [3, 4]); plt.plot([1, 2], [3, 4])", "line", 1),
    "no points": ("plt.plot([], [])", "line", 1),
    "only gaps": ("plt.plot([np.nan, np.nan], [1, np.inf])", "line", 1),
    "masked": ("plt.plot(np.ma.masked_equal([1, 2, 3], 2)); plt.scatter(np.ma.masked_equal([1, 2], 2), [1, 2])", "line", 1),
    "negative on a log axis": ("plt.plot([-1, 0, 1], [0, -1, 1]); plt.loglog()", "line", 1),
    "an empty bar chart": ("plt.bar([], [])", "unknown", 0),
    "gaps among bars": ("plt.bar(['a', 'b'], [np.nan, 1])", "bar", 2),
    "times of day": ("pd.Series([1, 2], index=[datetime.time(1), datetime.time(2)]).plot()", "line", 1),
    "spans of time": ("pd.Series([1, 2], index=pd.to_timedelta([1, 2], 'h')).plot()", "line", 1),
    "a secondary axis": ("plt.plot([1, 2]); plt.gca().secondary_yaxis('right', functions=(lambda v: v * 2, lambda v: v / 2))", "line", 1),
    "an inset": ("plt.plot([1, 2]); plt.gca().inset_axes([0.5, 0.5, 0.4, 0.4]).plot([2, 1])", "line", 1),
    "a mosaic": ("plt.subplot_mosaic('AB;CC')", "superchart", 3),
    "subfigures": ("f = plt.figure(); a, b = f.subfigures(1, 2); a.subplots().plot([1]); b.subplots().plot([2])", "superchart", 2),
    "removed artists": ("plt.plot([1, 2]); plt.gca().clear()", "unknown", 0),
    "words with dollars": ("plt.plot([1, 2], label='$x^2$'); plt.title('a $ b')", "line", 1),
    "hexagons": ("plt.hexbin([1, 2, 3], [1, 2, 3])", "unknown", 0),
    "arrows": ("plt.quiver([1], [1], [1], [1])", "unknown", 0),
    "steps of a histogram": ("plt.hist([1, 2, 2], histtype='step')", "unknown", 0),
    "a broken axes": ("class B(type(plt.gca())):\n    name = 'broken'\n    def get_lines(self): raise ValueError\nplt.clf(); plt.gcf().add_axes(B(plt.gcf(), [0.1, 0.1, 0.8, 0.8])).set_title('t')", "unknown", 0),
}  # fmt: skip


@pytest.mark.parametrize("code, kind, count", ODD.values(), ids=ODD.keys())
def test_odd_charts_are_shown_like_all(code: str, kind: str, count: int, py: Run) -> None:
    found = chart(py, code)
    assert (found["type"], len(found["elements"])) == (kind, count)
    assert result_text(py("'fine'")) == "'fine'"


def test_the_line_of_error_bars(py: Run) -> None:
    found = chart(py, "plt.errorbar([1, 2], [3, 4], yerr=[0.1, 0.2], capsize=3, label='e')")
    assert found["elements"] == [{"label": "e", "points": [[1, 3], [2, 4]]}]


def test_long_series_are_thinned_out_and_say_so(py: Run) -> None:
    result = shown(py(f"{PLOT}plt.plot(np.arange(1_000_000)); plt.plot([1, 2])\nNone"))
    first, second = result["data"][CHART]["elements"]
    assert len(first["points"]) == 10_000
    assert (first["points"][0], first["points"][1], second["points"]) == ([0, 0], [100, 100], [])
    assert "10,000" in result["metadata"][CHART]["note"]


def test_each_figure_and_its_chart_once(py: Run) -> None:
    done = py(f"{PLOT}figure, axes = plt.subplots(); axes.plot([1, 2]); plt.show(); display(figure); figure")
    assert [set(each["data"]) for each in done["results"]] == [{"text/plain", "image/png", CHART}, {"text/plain"}]


def test_a_figure_that_has_changed_is_shown_again(py: Run) -> None:
    done = py(f"{PLOT}figure, axes = plt.subplots(); axes.plot([1, 2]); display(figure); axes.plot([2, 1]); display(figure)")
    assert [len(each["data"][CHART]["elements"]) for each in done["results"]] == [1, 2]
