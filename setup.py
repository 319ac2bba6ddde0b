"""What is installed: one package, `errand`. The rest is in pyproject.toml, which cannot place a folder in a package."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages("app"), "errand.resources"],
    package_dir={"": "app", "errand.resources": "resources"},
)
