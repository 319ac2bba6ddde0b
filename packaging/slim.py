"""Removes from a virtual environment what Errand never loads: `python packaging/slim.py [SITE_PACKAGES]`.

Wheels are made for every use of a library; this one has a window of Qt widgets and speaks to models. What stays is what
Errand, its tests and the installed extras import; `make setup` runs it, so does whatever builds an installer. A package
that is installed again comes whole, and is made small again at the next run.
"""

import shutil
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

# The modules of Qt that are imported, QtTest by the tests; and what they and their plugins need besides.
_QT_MODULES = ("Core", "Gui", "Widgets", "Svg", "Test")
_QT_LIBRARIES = ("DBus", "Network", "OpenGL", "XcbQpa", "WaylandClient", "WlShellIntegration")
_QT_PLUGINS = (
    *("iconengines", "imageformats", "platforms", "platformthemes", "platforminputcontexts", "styles", "tls"),
    *("xcbglintegrations", "wayland-decoration-client", "wayland-graphics-integration-client"),
    "wayland-shell-integration",
)
# Platforms without windows of a desktop, but for the one that the tests draw on; a keyboard that is made of QML.
_QT_NEEDLESS_PLUGINS = ("qeglfs", "qlinuxfb", "qminimal", "qvkkhrdisplay", "qvnc", "qtvirtualkeyboard", "qpdf")
_QT_FOLDERS = ("include", "doc", "glue", "typesystems", "Qt/qml", "Qt/metatypes", "Qt/libexec")
# Qt's own texts stay in the languages that Errand has.
_LOCALE = Path(__file__).parents[1] / "resources" / "locale"
_QT_TEXTS = frozenset(f"qtbase_{folder.name}.qm" for folder in _LOCALE.iterdir())
_QT_PROGRAMS = (
    *("assistant", "designer", "linguist", "lrelease", "lupdate", "rcc", "uic", "balsam", "balsamui", "svgtoqml"),
    *("qmlformat", "qmllint", "qmlls", "qmlcachegen", "qmlimportscanner", "qmltyperegistrar", "qsb", "deploy_lib"),
)
# botocore describes all services of Amazon; models need these.
_AWS_SERVICES = ("bedrock", "sts", "sso", "signin")
# The pages of litellm's own server, a command-line program beside the library, and tools to make models and modules.
_OTHERS = (
    *("litellm/proxy/_experimental/out", "html_to_markdown/bin", "numpy/f2py", "numpy/distutils"),
    *(f"onnxruntime/{name}" for name in ("transformers", "tools", "quantization", "datasets", "backend")),
)
# Tests, and onnxruntime a second time, for programs in C.
_OTHER_PATTERNS = ("numpy/*/tests", "onnxruntime/capi/libonnxruntime.so.*")
# Little of these is imported; Python writes the byte code of what is.
_SELDOM_IMPORTED = ("litellm", "openai", "botocore", "boto3", "pip", "setuptools")


def needless(site: Path) -> Iterator[Path]:
    """Files and folders that can go."""
    qt = site / "PySide6"
    if qt.is_dir():
        yield from _of_qt(qt)
    services = site / "botocore" / "data"
    yield from (path for path in _listed(services) if path.is_dir() and not path.name.startswith(_AWS_SERVICES))
    yield from (site / name for name in _OTHERS if (site / name).exists())
    yield from (path for pattern in _OTHER_PATTERNS for path in site.glob(pattern))
    for name in _SELDOM_IMPORTED:
        yield from (path for path in (site / name).rglob("__pycache__") if path.is_dir())


def _of_qt(qt: Path) -> Iterator[Path]:
    module_names = {f"Qt{name}" for name in _QT_MODULES}
    yield from (path for path in qt.glob("Qt*.abi3.so") if path.name.partition(".")[0] not in module_names)
    yield from (path for path in qt.glob("Qt*.pyd") if path.stem not in module_names)
    yield from (qt / name for name in _QT_FOLDERS if (qt / name).exists())
    yield from (path for path in _listed(qt) if path.is_file() and path.stem in _QT_PROGRAMS)
    for folder in (qt / "Qt" / "translations", qt / "translations"):
        yield from (path for path in _listed(folder) if path.name not in _QT_TEXTS)
    libraries = {f"Qt6{name}" for name in (*_QT_MODULES, *_QT_LIBRARIES)}
    for path in (*qt.glob("Qt/lib/libQt6*"), *qt.glob("Qt6*.dll")):
        if path.name.partition(".")[0].removeprefix("lib") not in libraries:
            yield path
    frameworks = {f"Qt{name}" for name in (*_QT_MODULES, *_QT_LIBRARIES)}
    yield from (path for path in qt.glob("Qt/lib/Qt*.framework") if path.stem not in frameworks)
    for folder in (*_listed(qt / "Qt" / "plugins"), *_listed(qt / "plugins")):
        if folder.name not in _QT_PLUGINS:
            yield folder
        else:
            yield from (
                path for path in _listed(folder) if path.name.removeprefix("lib").startswith(_QT_NEEDLESS_PLUGINS)
            )


def remove(paths: Iterable[Path]) -> int:
    """Returns the number of bytes that were freed."""
    freed = 0
    for path in paths:
        if not path.exists():
            continue  # it was in a folder that is gone
        freed += sum(
            file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file() and not file.is_symlink()
        )
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return freed


def _listed(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def main(arguments: Sequence[str]) -> int:
    site = Path(arguments[0]) if arguments else Path(sysconfig.get_path("purelib"))
    if not (site / "errand").is_dir() and not any(site.glob("errand_desktop-*.dist-info")):
        sys.stderr.write(f"{site} is not where Errand is installed; nothing was removed.\n")
        return 1
    sys.stdout.write(f"Removed {remove(list(needless(site))) / 1e6:.0f} MB of libraries that Errand does not load.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
