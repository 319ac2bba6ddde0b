"""The argument parser of all our programs: prints user input safely."""

import argparse
from typing import NoReturn

from errand.text.printable import printable
from errand.text.translation import tr


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        again = tr("Try: {command}").format(command=f"{self.prog} --help")
        self.exit(2, f"errand: {printable(message)}\n{again}\n")
