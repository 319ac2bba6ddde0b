"""Running processes by psutil, for systems without /proc.

Less sharp: a child that clears its environment and outlives its parents is not found.
"""

import os

import psutil

from app.engine.tools.marks import Mark
from app.engine.tools.process_table import Entry, Search, plain_name


class PortableTable:
    def find(self, marks: tuple[Mark, ...], search: Search) -> list[Entry]:
        numbers = {str(mark.number) for mark in marks}
        roots = [process for process in _own_processes() if _variable(process, "ERRAND_CALL") in numbers]
        return _with_descendants(roots, search)

    def find_tasks(self, task_ids: frozenset[str], search: Search) -> list[Entry]:
        roots = [process for process in _own_processes() if _variable(process, "ERRAND_TASK") in task_ids]
        return _with_descendants(roots, search)

    def name(self, pid: int) -> str:
        try:
            return plain_name(psutil.Process(pid).cmdline())
        except psutil.Error:
            return ""


def _own_processes() -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if process.pid != os.getpid()]


def _variable(process: psutil.Process, name: str) -> str:
    try:
        return process.environ().get(name, "")
    except (psutil.Error, OSError):
        return ""


def _with_descendants(roots: list[psutil.Process], search: Search) -> list[Entry]:
    found: dict[int, Entry] = {}
    for root in roots:
        try:
            family = [root, *root.children(recursive=True)]
        except psutil.Error:
            continue
        for process in family:
            try:
                zombie = process.status() == psutil.STATUS_ZOMBIE
                entry = Entry(process.pid, process.ppid(), process.create_time(), zombie)
            except psutil.Error:
                continue
            if process.pid not in found:
                found[process.pid] = entry
                search.on_found(entry)
    return list(found.values())
