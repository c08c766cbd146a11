"""The app's icon for each system, drawn from resources/icons/draftlight.svg at build time."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QGuiApplication, QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgRenderer

SVG = Path(__file__).resolve().parent.parent / "resources" / "icons" / "draftlight.svg"

_ICO_PIXELS = (16, 24, 32, 48, 64, 128, 256)
_ICNS_PIXELS = {
    b"icp4": 16,
    b"icp5": 32,
    b"ic11": 32,
    b"ic12": 64,
    b"ic07": 128,
    b"ic13": 256,
    b"ic08": 256,
    b"ic14": 512,
    b"ic09": 512,
    b"ic10": 1024,
}
"""Apple's names of sizes, those for screens with twice the pixels among them."""


def png(pixels: int) -> bytes:
    """The icon as a square picture."""
    image = QImage(pixels, pixels, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(0)
    painter = QPainter(image)
    QSvgRenderer(str(SVG)).render(painter)
    painter.end()
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(content.data())


def ico() -> bytes:
    """For Windows: a directory of pictures, then the pictures."""
    pictures = [png(pixels) for pixels in _ICO_PIXELS]
    place = 6 + 16 * len(pictures)
    entries = b""
    for pixels, picture in zip(_ICO_PIXELS, pictures, strict=True):
        size = pixels % 256  # 0 stands for 256.
        entries += struct.pack("<4B2H2I", size, size, 0, 0, 1, 32, len(picture), place)
        place += len(picture)
    return struct.pack("<3H", 0, 1, len(pictures)) + entries + b"".join(pictures)


def icns() -> bytes:
    """For macOS: pictures, each behind its name and length."""
    parts = b""
    for name, pixels in _ICNS_PIXELS.items():
        picture = png(pixels)
        parts += name + struct.pack(">I", 8 + len(picture)) + picture
    return b"icns" + struct.pack(">I", 8 + len(parts)) + parts


def write_icons(folder: Path) -> None:
    """draftlight.ico, .icns and .png (256 pixels) into a folder, which is made."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = QGuiApplication.instance() or QGuiApplication([])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {"ico": ico(), "icns": icns(), "png": png(256)}.items():
        (folder / f"draftlight.{name}").write_bytes(content)
    del app
