"""Every prompt with every drafter in one process, as data: costs, and whether texts agree."""

from engine.benchmark.prompts import Prompt, check_lengths, read_prompts
from engine.benchmark.records import OFF, report, short_spec, summary
from engine.benchmark.running import Findings, Plan, run

__all__ = [
    "OFF",
    "Findings",
    "Plan",
    "Prompt",
    "check_lengths",
    "read_prompts",
    "report",
    "run",
    "short_spec",
    "summary",
]
