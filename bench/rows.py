"""What a measurement is: a row with its goal, and figures out of many samples."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Row:
    """One figure. `goal` is the most that `value` may be, or the least if more is better; `peer` is what it was
    measured beside, in the same run."""

    name: str
    value: float
    unit: str
    goal: float
    peer: str | None = None
    peer_value: float | None = None
    detail: dict[str, Any] = dataclasses.field(default_factory=dict)
    faults: list[str] = dataclasses.field(default_factory=list)  # why the figure does not count
    more_is_better: bool = False

    @property
    def met(self) -> bool:
        reached = self.value >= self.goal if self.more_is_better else self.value <= self.goal
        return reached and not self.faults

    @property
    def ratio(self) -> float | None:
        return self.value / self.peer_value if self.peer_value else None

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"ratio": self.ratio, "met": self.met}

    def __str__(self) -> str:
        beside = f", {self.peer_value:g} {self.unit} {self.peer}" if self.peer_value is not None else ""
        verdict = "met" if self.met else "NOT MET"
        return f"{self.name:24} {self.value:8.2f} {self.unit} (goal {self.goal:g}{beside}) {verdict}"


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that at least `percent` of all are not above: no value that was never measured."""
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]
