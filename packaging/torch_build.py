"""Which build of PyTorch to install: CUDA where an NVIDIA driver answers, else the CPU one."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

CUDA_DOWNLOAD = "about 2.7 GB"
"""PyTorch for CUDA with the NVIDIA libraries that it needs, at the pinned version on Linux."""


def builds_offered(python: Path, version: str) -> set[str]:
    """The builds of this PyTorch version that pip's configured index offers here.

    A build is the version with its label: `2.13.0+cpu`, `2.13.0+cu130`, or plain `2.13.0`.
    Empty where pip cannot say.
    """
    command = [str(python), "-m", "pip", "index", "versions", "torch"]
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    lines = run.stdout.splitlines()
    listed = next((line for line in lines if line.startswith("Available versions:")), ":")
    names = (name.strip() for name in listed.partition(":")[2].split(","))
    return {name for name in names if name.split("+")[0] == version}


def is_cpu(build: str, system: str = sys.platform) -> bool:
    """Whether a build is for the CPU; one without a label has CUDA on Linux only."""
    label = build.partition("+")[2]
    return label.startswith("cpu") or (not label and not system.startswith("linux"))


def is_cuda(build: str, system: str = sys.platform) -> bool:
    """Whether a build is for NVIDIA's GPUs."""
    label = build.partition("+")[2]
    return label.startswith("cu") or (not label and system.startswith("linux"))


def choose_build(offered: set[str], *, driver: bool, system: str = sys.platform) -> str | None:
    """The build to take; None where pip chooses (macOS, or a silent index)."""
    if system == "darwin" or not offered:
        return None
    fits = is_cuda if driver else is_cpu
    # The label of the user's own index goes before no label; of two labels the newer one.
    return max([build for build in offered if fits(build, system)] or offered)


def explain(build: str | None, *, driver: bool, system: str = sys.platform) -> str:
    """What the choice means, in a sentence or two."""
    if system == "darwin":
        return "PyTorch: the build for macOS."
    if build is None:
        return f"PyTorch: the build that pip finds; with CUDA it is {CUDA_DOWNLOAD} to download."
    if driver and is_cuda(build, system):
        return (
            f"PyTorch {build} for CUDA, as an NVIDIA driver answers: {CUDA_DOWNLOAD} to download."
        )
    if driver:
        return (
            f"PyTorch {build}: pip's index offers no CUDA build, so the NVIDIA GPU stays unused. "
            "README.md, 'Choosing a torch build', tells how to change that."
        )
    if is_cpu(build, system):
        return f"PyTorch {build} for the CPU: about 200 MB to download."
    return (
        f"PyTorch {build}: no NVIDIA driver answers, but pip's index offers no CPU build, so this "
        f"one comes with GPU libraries: {CUDA_DOWNLOAD} to download. Ctrl+C stops it; README.md, "
        "'Choosing a torch build', tells how to get the CPU build of about 200 MB instead."
    )
