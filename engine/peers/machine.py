"""What a machine is called, for a table of figures."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

from engine.devices import devices

_CPUINFO = Path("/proc/cpuinfo")


def machine_name(device: str) -> str:
    """The processor that ran, with its cores and the system's name.

    device: as the engine spells it.
    """
    known = {each.id: each.label for each in devices()}
    parts = [_cpu_name(), known["cpu"].removeprefix("CPU, "), platform.system()]
    if device != "cpu":
        parts.insert(0, known.get(device) or known.get(f"{device}:0", device))
    return ", ".join(filter(None, parts))


def _cpu_name() -> str:
    """The processor's own name where the system tells it, else its architecture."""
    if _CPUINFO.is_file():
        text = _CPUINFO.read_text(encoding="utf-8", errors="replace")
        names = [line for line in text.splitlines() if line.startswith("model name")]
        if names:
            return names[0].partition(":")[2].strip()
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode == 0:
            return run.stdout.strip()
    return platform.processor() or platform.machine()
