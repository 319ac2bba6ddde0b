"""The localhost that the commands of a conversation share while something of them keeps running.

In bubblewrap each command has a network of its own. The first process that stays when its command has ended, or a
session that asks for it, gives its network to the conversation: later commands join it, and `connect` reaches their
servers from the engine. A descriptor holds the network, no process does.
"""

import asyncio
import ctypes
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TypeVar

import msgspec

from errand.engine.sandbox.bubblewrap import Joining
from errand.engine.sandbox.detection import find_sandbox
from errand.engine.sandbox.network_proxy import network_program

if sys.platform != "win32":
    import fcntl

T = TypeVar("T")

_CLONE_NEWNET = 0x4000_0000  # linux/sched.h
_NS_GET_USERNS = 0xB701  # linux/nsfs.h
_PATIENCE_S = 5.0
# Sockets for `connect` that one helper process makes, where the engine cannot enter the network itself.
_SOCKETS = 8


class _Info(msgspec.Struct, frozen=True):
    child: int = msgspec.field(name="child-pid")


@dataclass(slots=True, eq=False)
class Loopback:
    """The shared localhost of one conversation, a session of its tools. Without bubblewrap it does nothing.

    It exists while it has users: sandboxes whose commands left processes, and sessions.
    """

    # By identity: a session need not be hashable.
    _users: dict[int, object] = field(default_factory=dict[int, object])
    _network: int | None = None
    # The user namespace that owns the network, None if the engine itself may enter.
    _owner: int | None = None
    _sockets: list[socket.socket] = field(default_factory=list[socket.socket])
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_open(self) -> bool:
        return self._network is not None

    @property
    def is_empty(self) -> bool:
        return not self.is_open and not self._users

    async def use(self, user: object) -> None:
        """Make the network if there is none (15 ms); it stays until `leave`, or the conversation's end.

        Where that is impossible, each command keeps a localhost of its own.
        """
        self._users[id(user)] = user
        async with self._lock:
            if self._network is None and find_sandbox().form == "bubblewrap":
                network = await asyncio.to_thread(_new_network, find_sandbox().program)
                self._hold(network)

    def adopt(self, user: object, pid: int) -> None:
        """Share the network of this process of a command from now on, unless there is one already."""
        self._users[id(user)] = user
        if self._network is None and find_sandbox().form == "bubblewrap":
            with suppress(OSError):
                self._hold(_network_of(pid))

    def leave(self, user: object) -> None:
        """Forget a user. The network ends with the last one; processes that are left in it keep it."""
        self._users.pop(id(user), None)
        if not self._users:
            self._drop()

    def joining(self) -> Joining | None:
        """Return how the next command joins, None if it gets a network of its own. Any thread may call it."""
        network, owner = self._network, self._owner
        if network is None:
            return None
        try:
            if owner is None:
                held = os.dup(network)
                return Joining(partial(_enter, held), (held,))
            return _through_owner(network, owner)
        except OSError:  # closed meanwhile, or out of descriptors
            return None

    async def connect(self, port: int) -> socket.socket:
        """Return a non-blocking TCP connection to this port of the shared 127.0.0.1, made by the engine.

        The caller asks the policy about the address. Raises ConnectionRefusedError if nothing listens
        there or no process of the conversation is left, other OSErrors as the system does, and TimeoutError.
        """
        connection = await self._socket()
        try:
            connection.setblocking(False)
            async with asyncio.timeout(_PATIENCE_S):
                await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
        except BaseException:
            connection.close()
            raise
        return connection

    async def close(self) -> None:
        self._users.clear()
        self._drop()

    async def _socket(self) -> socket.socket:
        """Return a new socket, which stays in the network in which it was made."""
        async with self._lock:
            joining = self.joining()
            if joining is None:
                raise ConnectionRefusedError("No process of this conversation keeps running.")
            try:
                if joining.enter is not None:
                    return await asyncio.to_thread(in_own_thread, joining.enter, socket.socket)
                if not self._sockets:
                    self._sockets = await asyncio.to_thread(_sockets_through, joining)
                return self._sockets.pop()
            finally:
                for descriptor in (*joining.held, *joining.inherited):
                    os.close(descriptor)

    def _hold(self, network: int | None) -> None:
        if network is None or sys.platform == "win32":
            return
        try:
            owner = fcntl.ioctl(network, _NS_GET_USERNS)
        except OSError:
            os.close(network)
            return
        self._network, self._owner = network, owner
        if os.fstat(owner).st_ino == os.stat("/proc/self/ns/user").st_ino:
            os.close(owner)
            self._owner = None
        elif shutil.which("nsenter") is None:
            self._drop()

    def _drop(self) -> None:
        for descriptor in (self._network, self._owner):
            if descriptor is not None:
                os.close(descriptor)
        self._network = self._owner = None
        while self._sockets:
            self._sockets.pop().close()


def _through_owner(network: int, owner: int) -> Joining:
    """Return the joining by a program before bubblewrap: a process with threads cannot enter a user namespace."""
    ends = os.dup(network), os.dup(owner)
    net, user = map(str, ends)
    namespaces = f"--user=/proc/self/fd/{user}", f"--net=/proc/self/fd/{net}"
    prefix = (shutil.which("nsenter") or "nsenter", *namespaces, "--preserve-credentials", "--")
    # Bubblewrap closes these two before the command starts. It finds nothing to read in the second one.
    return Joining(prefix=prefix, inherited=ends, options=("--sync-fd", net, "--block-fd", user))


def _new_network(program: str) -> int | None:
    """Return the network of a process of bubblewrap, which waits for that and ends."""
    info, info_write = os.pipe()
    block_read, block = os.pipe()
    fixed = ("--unshare-net", "--bind", "/", "/", "--info-fd", str(info_write), "--block-fd", str(block_read))
    process = None
    try:
        process = subprocess.Popen(
            [program, *fixed, "--", "true"],
            pass_fds=(info_write, block_read),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(info_write)
        info_write = -1
        with open(info, "rb", closefd=False) as file:
            child = msgspec.json.decode(file.read(), type=_Info).child
        return _network_of(child)
    except (OSError, msgspec.DecodeError):
        return None
    finally:
        for descriptor in (info, info_write, block_read, block):
            if descriptor >= 0:
                os.close(descriptor)
        if process is not None:
            _wait(process)


def _wait(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _network_of(pid: int) -> int:
    """Return a descriptor of the network of a process. Raises OSError, also if it is that of this machine."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    if os.fstat(network).st_ino == os.stat("/proc/self/ns/net").st_ino:
        os.close(network)
        raise OSError("it has no network of its own")
    return network


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _enter(network: int) -> None:
    """Move the calling thread, and what it starts, into the network. Call it in a thread of its own."""
    if _libc().setns(network, _CLONE_NEWNET) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the shared localhost cannot be entered: {os.strerror(number)}")


def in_own_thread(enter: Callable[[], None], work: Callable[[], T]) -> T:
    """Return the result of `work` in a new thread, which `enter` changes for good first. Waits for it."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            enter()
            value = work()
        except BaseException as error:  # noqa: BLE001 -- raised to the caller
            result.set_exception(error)
        else:
            result.set_result(value)

    thread = threading.Thread(target=run, name="changed for good")
    thread.start()
    thread.join()
    return result.result()


def _sockets_through(joining: Joining) -> list[socket.socket]:
    """New sockets of the network, which a short process makes there."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(_PATIENCE_S)
        process = subprocess.Popen(
            [*joining.prefix, *network_program(), str(theirs.fileno()), str(_SOCKETS)],
            pass_fds=(*joining.inherited, theirs.fileno()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            theirs.close()
            _, descriptors, _, _ = socket.recv_fds(ours, 1, _SOCKETS)
        finally:
            _wait(process)
    if not descriptors:
        raise ConnectionRefusedError("The shared localhost could not be entered.")
    return [socket.socket(fileno=descriptor) for descriptor in descriptors]
