"""The figures of the bench are what they say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BENCH), str(BENCH.parent / "tests")]

import neighbour  # noqa: E402
import run  # noqa: E402
from rows import Row, percentile  # noqa: E402


@pytest.mark.parametrize(("percent", "value"), [(50, 50), (99, 99), (99.5, 100), (100, 100), (0, 1)])
def test_a_percentile_is_a_sample(percent: float, value: float) -> None:
    assert percentile(list(range(100, 0, -1)), percent) == value


def test_few_samples_hide_nothing() -> None:
    assert percentile([1.0, 9.0], 99) == 9.0


def test_no_samples_are_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        percentile([], 50)


@pytest.mark.parametrize(
    ("row", "met"),
    [
        (Row("a", 2.0, "x", goal=2.0), True),
        (Row("a", 2.01, "x", goal=2.0), False),
        (Row("a", 300.0, "MB/s", goal=300, more_is_better=True), True),
        (Row("a", 299.0, "MB/s", goal=300, more_is_better=True), False),
        (Row("a", 1.0, "x", goal=2.0, faults=["ended ok, not oom"]), False),
    ],
)
def test_a_goal_is_met_or_not(row: Row, met: bool) -> None:
    assert row.met == met
    assert row.as_json()["met"] == met


def test_the_worst_attack_counts_and_all_are_listed() -> None:
    row = neighbour.judge([0.001] * 100, {"gentle": [0.001] * 100, "harsh": [0.001] * 98 + [0.005] * 2}, [])
    assert (row.value, row.met) == (5.0, False)
    assert {name: figures["p99_ms"] for name, figures in row.detail.items()} == {
        "gentle": 1.0,
        "harsh": 5.0,
        "no attack": 1.0,
    }


def test_the_keys_that_readers_of_the_results_expect() -> None:
    keys = {"name", "value", "unit", "peer", "peer_value", "ratio", "goal", "met"}
    assert keys <= Row("a", 1.0, "ms", goal=2.0, peer="beside", peer_value=4.0).as_json().keys()


def test_an_unknown_row_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["nothing"]) == 2
    assert "nothing" in capsys.readouterr().err
