"""Builds the wheel of the client, as PEP 517 and PEP 660 want it, with the standard library alone.

It compiles nothing and downloads nothing. The same sources give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Dict, Optional

NAME = "berth-client"
VERSION = "0"
FOLDER = Path(__file__).resolve().parent.parent
PACKAGE = "berth"

METADATA = f"""\
Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: Client of Berth, a scheduler of advance reservations
License: Apache-2.0
Requires-Python: >=3.9
Classifier: Typing :: Typed
"""

WHEEL = """\
Wheel-Version: 1.0
Generator: berth_build
Root-Is-Purelib: true
Tag: py3-none-any
"""

STEM = f"{NAME.replace('-', '_')}-{VERSION}"
WHEEL_NAME = f"{STEM}-py3-none-any.whl"
INFO = f"{STEM}.dist-info"


def _sources() -> Dict[str, bytes]:
    """The files of the package by their paths in the wheel, in order."""
    files = sorted(p for p in (FOLDER / PACKAGE).rglob("*") if p.suffix == ".py" or p.name == "py.typed")
    return {p.relative_to(FOLDER).as_posix(): p.read_bytes() for p in files}


def _write(folder: str, content: Dict[str, bytes]) -> str:
    """Writes a wheel of some files, with its metadata and its record, and returns its name."""
    content = {**content, f"{INFO}/METADATA": METADATA.encode(), f"{INFO}/WHEEL": WHEEL.encode()}
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, data in content.items()
    )
    content[f"{INFO}/RECORD"] = f"{record}{INFO}/RECORD,,\n".encode()
    with zipfile.ZipFile(Path(folder) / WHEEL_NAME, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in content.items():
            entry = zipfile.ZipInfo(name)  # of 1980, whenever it is built
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, data)
    return WHEEL_NAME


def build_wheel(
    wheel_directory: str, config_settings: Optional[Dict[str, Any]] = None, metadata_directory: Optional[str] = None
) -> str:
    return _write(wheel_directory, _sources())


def build_editable(
    wheel_directory: str, config_settings: Optional[Dict[str, Any]] = None, metadata_directory: Optional[str] = None
) -> str:
    """A wheel that refers to this folder, for pip install -e."""
    return _write(wheel_directory, {f"{PACKAGE}_client.pth": f"{FOLDER}\n".encode()})


def build_sdist(sdist_directory: str, config_settings: Optional[Dict[str, Any]] = None) -> str:
    content = _sources()
    for name in ("pyproject.toml", "backend/berth_build.py"):
        content[name] = (FOLDER / name).read_bytes()
    content["PKG-INFO"] = METADATA.encode()
    with tarfile.open(Path(sdist_directory) / f"{STEM}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as sdist:
        for name, data in content.items():
            entry = tarfile.TarInfo(f"{STEM}/{name}")
            entry.size = len(data)
            sdist.addfile(entry, io.BytesIO(data))
    return f"{STEM}.tar.gz"
