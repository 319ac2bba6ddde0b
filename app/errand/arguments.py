"""The argument parser of all our programs: prints user input safely."""

import argparse
from typing import NoReturn

from errand.printable import printable


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"errand: {printable(message)}\nTry: {self.prog} --help\n")
