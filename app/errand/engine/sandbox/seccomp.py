"""A filter of system calls for sandboxed commands, which the kernel applies to a process and to all that it starts.

It closes what neither mounts nor Landlock cover: the keyring of the kernel, input for other terminals, profiling, and
kinds of sockets that no network namespace holds. Linux only; for bubblewrap and for Landlock.

The list is that of flatpak (common/flatpak-run.c, `setup_seccomp`) with what Docker's default profile adds: bpf,
userfaultfd and io_uring. It leaves out namespaces and ptrace: nested sandboxes and debuggers need them, and neither
leads out of the sandbox. No library for it needs no libseccomp, and this is one fixed list.
https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

import ctypes
import errno
import os
import socket
import struct
from dataclasses import dataclass
from functools import cache

_PR_GET_SECCOMP, _PR_SET_SECCOMP = 21, 22
_MODE_FILTER = 2
_RET_ALLOW, _RET_ERRNO = 0x7FFF_0000, 0x0005_0000
# linux/bpf_common.h: load a word, jump if equal, jump if greater or equal, and, return.
_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
# Offsets in `struct seccomp_data`. The kernel reads the lower half of these arguments alone, so must the filter
# (CVE-2019-10063); all architectures below are little-endian.
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24

# asm-generic/ioctls.h: put input into a terminal, and paste into a virtual console.
_TERMINAL_INPUT = (0x5412, 0x541C)
_FAMILIES = (socket.AF_UNSPEC, socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16)  # 16 is AF_NETLINK
_KIND_OF_SOCKET = 0xF
# Whoever has a pair of datagram sockets can send to any path with it.
_KINDS_WITHOUT_ADDRESS = (1, 5)  # SOCK_STREAM, SOCK_SEQPACKET
# The same numbers on all architectures: quotactl_fd, set_mempolicy_home_node.
_DENIED_EVERYWHERE = (443, 450)
# io_uring_setup, io_uring_enter, io_uring_register: what is asked through a ring passes no filter.
_RINGS = (425, 426, 427)


@dataclass(frozen=True, slots=True)
class _Architecture:
    """`audit` is its number in linux/audit.h; `denied` are calls refused with any arguments."""

    audit: int
    denied: tuple[int, ...]
    ioctl: int
    socket: int
    socketpair: int
    # One call for all operations on sockets, whose arguments lie in memory: a filter cannot read them.
    socketcall: int | None = None
    # Numbers from here on are those of another ABI.
    end: int | None = None


# syslog, uselib, acct, quotactl; add_key, request_key, keyctl; perf_event_open, bpf, userfaultfd; mbind, set_mempolicy,
# get_mempolicy, migrate_pages, move_pages. From arch/*/tools/syscall.tbl of Linux.
_X86_64 = _Architecture(
    0xC000_003E,
    (103, 134, 163, 179, 248, 249, 250, 298, 321, 323, 237, 238, 239, 256, 279),
    ioctl=16,
    socket=41,
    socketpair=53,
    end=0x4000_0000,  # x32
)
_I386 = _Architecture(
    0x4000_0003,
    (103, 86, 51, 131, 286, 287, 288, 336, 357, 374, 274, 276, 275, 294, 317),
    ioctl=54,
    socket=359,
    socketpair=360,
    socketcall=102,
)
_ARM = _Architecture(
    0x4000_0028,
    (103, 86, 51, 131, 309, 310, 311, 364, 386, 388, 319, 321, 320, 400, 344),
    ioctl=54,
    socket=281,
    socketpair=288,
)
# asm-generic/unistd.h, which has no uselib.
_GENERIC = (116, 89, 60, 217, 218, 219, 241, 280, 282, 235, 237, 236, 238, 239)
_AARCH64 = _Architecture(0xC000_00B7, _GENERIC, ioctl=29, socket=198, socketpair=199)
_RISCV64 = _Architecture(0xC000_00F3, _GENERIC, ioctl=29, socket=198, socketpair=199)

# What a process of each machine may run as.
_MACHINES = {
    "x86_64": (_X86_64, _I386),
    "i686": (_I386,),
    "aarch64": (_AARCH64, _ARM),
    "armv7l": (_ARM,),
    "riscv64": (_RISCV64,),
}

_Instruction = tuple[int, int, int, int]


@cache
def is_supported() -> bool:
    """Return True if this kernel filters calls, and the numbers of its calls are known here."""
    if os.name != "posix" or os.uname().machine not in _MACHINES:
        return False
    return _libc().prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0


@cache
def filter_program(machine: str, *, unix_sockets: bool) -> bytes:
    """Return the filter as an array of `struct sock_filter`. Without `unix_sockets` no Unix socket has an address."""
    architectures = _MACHINES[machine]
    blocks = [_if_equal(architecture.audit, _block(architecture, unix_sockets)) for architecture in architectures]
    instructions = [_load(_ARCHITECTURE), *_joined(blocks), _refuse(errno.ENOSYS)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def filter_descriptor() -> int:
    """Return a descriptor for bubblewrap's --seccomp, to be read once. Raises OSError."""
    readable, writable = os.pipe()
    try:
        os.write(writable, filter_program(os.uname().machine, unix_sockets=True))
    except BaseException:
        os.close(readable)
        raise
    finally:
        os.close(writable)
    return readable


def enter(*, unix_sockets: bool) -> None:
    """Filter the calls of the calling thread for good, and of all that it starts. Raises OSError.

    The thread has no_new_privs.
    """
    text = filter_program(os.uname().machine, unix_sockets=unix_sockets)
    instructions = ctypes.create_string_buffer(text, len(text))
    program = _Program(len(text) // 8, ctypes.addressof(instructions))
    if _libc().prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _block(of: _Architecture, unix_sockets: bool) -> list[_Instruction]:
    families = [_if_equal(family, [_allow()]) for family in _FAMILIES if unix_sockets or family != socket.AF_UNIX]
    no_address = [_if_equal(kind, [_allow()]) for kind in _KINDS_WITHOUT_ADDRESS]
    pairs = [_allow()] if unix_sockets else [_load(_SECOND), (_AND, 0, 0, _KIND_OF_SOCKET), *_joined(no_address)]
    input_calls = [_if_equal(number, [_refuse(errno.EPERM)]) for number in _TERMINAL_INPUT]
    return [
        _load(_NUMBER),
        *([(_AT_LEAST, 0, 1, of.end), _refuse(errno.ENOSYS)] if of.end is not None else []),
        *(_if_equal(of.socketcall, [_refuse(errno.ENOSYS)]) if of.socketcall is not None else []),
        *_joined([_if_equal(number, [_refuse(errno.EPERM)]) for number in (*of.denied, *_DENIED_EVERYWHERE)]),
        *_joined([_if_equal(number, [_refuse(errno.ENOSYS)]) for number in _RINGS]),
        *_if_equal(of.ioctl, [_load(_SECOND), *_joined(input_calls), _allow()]),
        *_if_equal(of.socket, [_load(_FIRST), *_joined(families), _refuse(errno.EAFNOSUPPORT)]),
        *_if_equal(of.socketpair, [*pairs, _refuse(errno.EAFNOSUPPORT)]),
        _allow(),
    ]


def _joined(parts: list[list[_Instruction]]) -> list[_Instruction]:
    return [instruction for part in parts for instruction in part]


def _if_equal(value: int, then: list[_Instruction]) -> list[_Instruction]:
    """Run `then`, which ends with a return, if the loaded word is the value."""
    return [(_EQUAL, 0, len(then), value), *then]


def _load(offset: int) -> _Instruction:
    return (_LOAD, 0, 0, offset)


def _allow() -> _Instruction:
    return (_RETURN, 0, 0, _RET_ALLOW)


def _refuse(number: int) -> _Instruction:
    return (_RETURN, 0, 0, _RET_ERRNO | number)
