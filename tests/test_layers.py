"""Imports run one way, and what must stay light does."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINT = "from importlinter.cli import lint_imports_command as go; go()"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache", "--no-logo"],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={"PYTHONUTF8": "1"},
        check=False,
    )


@pytest.fixture
def copied_tree(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in ("engine", "app"):
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    return tmp_path


def test_imports_run_one_way():
    run = lint(ROOT)

    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("engine/events.py", "import PySide6"),
        ("engine/stats.py", "import app.theme"),
        ("engine/draft.py", "import engine.models.causal_lm"),
        ("engine/planning.py", "import engine.drafters"),
        ("engine/planning.py", "import engine.models.causal_lm"),
        ("engine/plan_words.py", "import engine.drafters.ngram"),
        ("engine/costs.py", "import engine.drafters.ngram"),
        ("engine/drafters/drafter.py", "import transformers"),
        ("app/theme.py", "import app.header"),
        ("app/lab/plots.py", "import app.chat.legend"),
    ],
)
def test_wrong_import_is_caught(copied_tree, module, line):
    with (copied_tree / module).open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")

    run = lint(copied_tree)

    assert run.returncode == 1, run.stdout + run.stderr
    assert "BROKEN" in run.stdout


@pytest.mark.parametrize(
    "module", ["engine", "engine.events", "engine.params", "engine.models.default_model"]
)
def test_engine_names_that_the_window_needs_first_import_no_torch(module):
    assert "torch" not in modules_after_importing(module)


def test_window_is_imported_without_torch():
    assert "torch" not in modules_after_importing("app.window")


def modules_after_importing(module: str) -> set[str]:
    code = f"import sys, {module}; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_packaging_folder_is_no_package():
    assert not (ROOT / "packaging" / "__init__.py").exists()
