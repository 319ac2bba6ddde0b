"""Removal of unused parts from the libraries, in a copy of a folder of them."""

import subprocess
import sys
from pathlib import Path

from tests.support.command_line import CHECKOUT

_KEPT = (
    "PySide6/QtCore.abi3.so",
    "PySide6/QtCore.pyi",
    "PySide6/QtQuick.pyi",
    "PySide6/Qt/lib/libQt6DBus.so.6",
    "PySide6/Qt/lib/libicudata.so.73",
    "PySide6/Qt/plugins/platforms/libqoffscreen.so",
    "PySide6/Qt/translations/qtbase_de.qm",
    "PySide6/Qt/plugins/platforms/libqxcb.so",
    "botocore/data/bedrock-runtime/2023-09-30/service-2.json",
    "botocore/data/endpoints.json",
    "litellm/main.py",
    "numpy/lib/_format_impl.py",
    "onnxruntime/capi/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so",
)
_REMOVED = (
    "PySide6/QtQuick.abi3.so",
    "PySide6/Qt/lib/libQt6Quick.so.6",
    "PySide6/Qt/plugins/platforms/libqvnc.so",
    "PySide6/Qt/plugins/sqldrivers/libqsqlite.so",
    "PySide6/Qt/qml/QtQuick/qmldir",
    "PySide6/Qt/translations/qtbase_fr.qm",
    "PySide6/Qt/translations/qtdeclarative_de.qm",
    "PySide6/designer",
    "botocore/data/ec2/2016-11-15/service-2.json",
    "litellm/proxy/_experimental/out/index.html",
    "litellm/__pycache__/main.cpython-311.pyc",
    "numpy/lib/tests/test_format.py",
    "onnxruntime/capi/libonnxruntime.so.1.32.0",
    "onnxruntime/transformers/optimizer.py",
)


def _slim(site: Path) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, CHECKOUT / "packaging" / "slim.py", site)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_what_errand_loads_stays_and_the_rest_goes(tmp_path: Path) -> None:
    (tmp_path / "errand_desktop-0.1.0.dist-info").mkdir()
    for name in (*_KEPT, *_REMOVED):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 1_000_000)
    assert _slim(tmp_path).stdout.startswith(f"Removed {len(_REMOVED)} MB")
    assert [name for name in (*_KEPT, *_REMOVED) if (tmp_path / name).exists()] == list(_KEPT)
    assert _slim(tmp_path).stdout.startswith("Removed 0 MB")


def test_a_folder_without_errand_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "PySide6" / "Qt" / "qml").mkdir(parents=True)
    ended = _slim(tmp_path)
    assert ended.returncode == 1 and "not where Errand is installed" in ended.stderr
    assert (tmp_path / "PySide6" / "Qt" / "qml").exists()
