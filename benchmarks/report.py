"""Results: printed for people as a table, and as one JSON object per line, the last line being the result."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field


@dataclass
class Result:
    """One comparison. ``rates`` and ``floors`` hold a figure for every round, in order; the medians count.

    For a comparison in which less is better (latency), ``smaller_is_better`` turns the ratio round.
    """

    name: str
    unit: str
    rates: list[float]
    floors: list[float]
    aim: float | None = None
    smaller_is_better: bool = False
    details: dict[str, object] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    @property
    def floor(self) -> float:
        return statistics.median(self.floors) if self.floors else 0.0

    @property
    def ratio(self) -> float | None:
        """Product over floor; above 1 the product is the better one. None without a floor."""
        if not self.floors:
            return None
        return self.floor / self.rate if self.smaller_is_better else self.rate / self.floor

    @property
    def verdict(self) -> str:
        if self.aim is None or self.ratio is None:
            return "measured"
        return "reached" if self.ratio >= self.aim else "MISSED"

    def as_json(self) -> str:
        figures = {"rate": round(self.rate, 2), "floor": round(self.floor, 2)}
        ratio = None if self.ratio is None else round(self.ratio, 3)
        return json.dumps({**asdict(self), **figures, "ratio": ratio, "verdict": self.verdict})

    def as_line(self) -> str:
        ratio = "   -  " if self.ratio is None else f"{self.ratio:6.2f}"
        aim = "" if self.aim is None else f" (aim {self.aim})"
        figures = f"{self.rate:12,.1f} {self.floor:12,.1f} {ratio} {self.verdict}{aim}"
        return f"{self.name:44} {figures}  [{self.unit}]"


def show(results: Sequence[Result], *, as_json: bool) -> None:
    """Print the table with all rounds, unless only JSON is wanted, and then each result as a line of JSON."""
    if not as_json:
        _show_table(results)
    for result in results:
        print(result.as_json())


def _show_table(results: Sequence[Result]) -> None:
    print(f"{'':44} {'product':>12} {'floor':>12} {'ratio':>6}")
    for result in results:
        print(result.as_line())
        print(f"    product rounds: {_rounds(result.rates)}")
        if result.floors:
            print(f"    floor rounds:   {_rounds(result.floors)}")
        for label, value in result.details.items():
            print(f"    {label}: {value}")


def _rounds(figures: Sequence[float]) -> str:
    return "  ".join(f"{figure:,.1f}" for figure in figures)
