"""What a run of the matrix was, and what is missing in it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EXPECTED = Path(__file__).with_name("expected.txt")

SKIPPED = "skipped "


@dataclass(frozen=True)
class Matrix:
    """Combinations by name (`server-driver-strategy`), each with the number of its tests that passed and failed."""

    combinations: dict[str, tuple[int, int]]
    skipped: list[str]

    @classmethod
    def read(cls, report: dict[str, Any]) -> Matrix:
        """From the recorder's report. Tests that no strategy matters to count in each combination of their database."""
        databases = {target: counts for target, strategy, counts in report["found"] if not strategy}
        combinations = {}
        for target, strategy, counts in report["found"]:
            if strategy:
                both = (counts, databases.get(target, {}))
                passed, failed = (sum(each.get(word, 0) for each in both) for word in ("passed", "failed"))
                combinations[f"{target}-{strategy}"] = (passed, failed)
        return cls(combinations, report["skipped"])

    @property
    def failed(self) -> list[str]:
        """The combinations with a test that failed, or with none that passed."""
        return sorted(name for name, (passed, failed) in self.combinations.items() if failed or not passed)

    def summary(self) -> dict[str, Any]:
        """The last line of a run."""
        failed = self.failed
        return {
            "combinations": len(self.combinations),
            "passed": len(self.combinations) - len(failed),
            "failed": len(failed),
            "skipped": self.skipped,
            "failed_combinations": failed,
        }


@dataclass(frozen=True)
class Expected:
    """The list kept beside this module."""

    combinations: Collection[str]
    skipped: Collection[str]

    @classmethod
    def read(cls, servers: Collection[str], path: Path = EXPECTED) -> Expected:
        """The part of the list that speaks of these servers."""
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
        skipped = [line.removeprefix(SKIPPED) for line in lines if line.startswith(SKIPPED)]
        named = [line for line in lines if not line.startswith(SKIPPED)]
        return cls(
            [line for line in named if line.partition("-")[0] in servers],
            [line for line in skipped if line.partition(":")[0].partition("-")[0] in servers],
        )


@dataclass
class Difference:
    """What a run lacks, and what it has beyond the list."""

    missing: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        said = [f"missing: {name}" for name in self.missing]
        said += [f"not in {EXPECTED.name}: {name}. Add the line, if that is meant" for name in self.unlisted]
        return "\n".join(said)

    def __bool__(self) -> bool:
        return bool(self.missing or self.unlisted)


def compare(matrix: Matrix, expected: Expected, servers: Collection[str]) -> Difference:
    """A test that is skipped for a reason nobody has written down is a combination that is not whole."""
    run = {name for name in matrix.combinations if name.partition("-")[0] in servers}
    skipped = {reason for reason in matrix.skipped if reason.partition(":")[0].partition("-")[0] in servers}
    return Difference(
        missing=sorted(set(expected.combinations) - run),
        unlisted=sorted(run - set(expected.combinations))
        + sorted(SKIPPED + reason for reason in skipped - set(expected.skipped)),
    )
