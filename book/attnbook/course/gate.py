"""The system calls that a student's process may make; every other one is refused by the kernel.

This file is mounted into the sandbox, and its filter is put in place before a student's first
line runs. It allows what reading, computing and writing to a small /tmp need. It refuses new
processes and programs, sockets, memory that no limit counts (memfd, System V), name spaces, and
all that an answer has no reason for.
"""

from __future__ import annotations

import ctypes
import platform
import struct

# name: number on x86-64, number on arm64 (-1: it has none)
CALLS = {
    "read": (0, 63), "write": (1, 64), "mmap": (9, 222), "munmap": (11, 215), "brk": (12, 214),
    "futex": (202, 98), "lseek": (8, 62), "close": (3, 57), "fstat": (5, 80), "stat": (4, -1),
    "newfstatat": (262, 79), "openat": (257, 56), "open": (2, -1), "lstat": (6, -1),
    "getdents64": (217, 61), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "setitimer": (38, 103), "getitimer": (36, 102), "alarm": (37, -1),
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101), "gettimeofday": (96, 169), "time": (201, -1), "times": (100, 153),
    "mprotect": (10, 226), "mremap": (25, 216), "madvise": (28, 233), "msync": (26, 227),
    "mincore": (27, 232), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "pwrite64": (18, 68), "preadv": (295, 69), "pwritev": (296, 70), "access": (21, -1),
    "faccessat": (269, 48), "faccessat2": (439, 439), "statx": (332, 291), "statfs": (137, 43),
    "fstatfs": (138, 44), "readlink": (89, -1), "readlinkat": (267, 78), "getcwd": (79, 17),
    "chdir": (80, 49), "fchdir": (81, 50), "mkdir": (83, -1), "mkdirat": (258, 34),
    "rmdir": (84, -1), "unlink": (87, -1), "unlinkat": (263, 35), "rename": (82, -1),
    "renameat": (264, -1), "renameat2": (316, 276), "link": (86, -1), "linkat": (265, 37),
    "symlink": (88, -1), "symlinkat": (266, 36), "truncate": (76, 45), "ftruncate": (77, 46),
    "fallocate": (285, 47), "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53),
    "umask": (95, 166), "utime": (132, -1), "utimes": (235, -1), "utimensat": (280, 88),
    "flock": (73, 32), "fsync": (74, 82), "fdatasync": (75, 83), "sendfile": (40, 71),
    "copy_file_range": (326, 285), "fadvise64": (221, 223), "dup": (32, 23), "dup2": (33, -1),
    "dup3": (292, 24), "pipe": (22, -1), "pipe2": (293, 59), "poll": (7, -1), "ppoll": (271, 73),
    "select": (23, -1), "pselect6": (270, 72), "close_range": (436, 436), "getpid": (39, 172),
    "gettid": (186, 178), "getppid": (110, 173), "getuid": (102, 174), "geteuid": (107, 175),
    "getgid": (104, 176), "getegid": (108, 177), "getpgrp": (111, -1), "getpgid": (121, 155),
    "getsid": (124, 156), "getgroups": (115, 158), "getresuid": (118, 148),
    "getresgid": (120, 150), "uname": (63, 160), "sysinfo": (99, 179), "getrlimit": (97, 163),
    "setrlimit": (160, 164), "prlimit64": (302, 261), "getrusage": (98, 165), "getcpu": (309, 168),
    "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "getpriority": (140, 141),
    "getrandom": (318, 278), "set_robust_list": (273, 99), "get_robust_list": (274, 100),
    "set_tid_address": (218, 96), "rseq": (334, 293), "membarrier": (324, 283),
    "futex_waitv": (449, 449), "arch_prctl": (158, -1), "prctl": (157, 167),
    "sigaltstack": (131, 132), "rt_sigpending": (127, 136), "rt_sigtimedwait": (128, 137),
    "rt_sigsuspend": (130, 133), "pause": (34, -1), "kill": (62, 129), "tkill": (200, 130),
    "tgkill": (234, 131), "wait4": (61, 260), "waitid": (247, 95), "restart_syscall": (219, 128),
    "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip
CLONE, IOCTL, FCNTL = (56, 220), (16, 29), (72, 25)
THREAD = 0x10000  # clone's flag of a thread; without it, it would be a new process
TERMINAL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # what isatty and the like ask
PIPE_SIZE = 1031  # of fcntl: a pipe of a megabyte
CLONE3, YOUNG = 435, 424  # asked for first by newer C libraries, which then try the older one
MACHINES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
ALLOW, REFUSE, UNKNOWN = 0x7FFF0000, 0x00050001, 0x00050026  # EPERM, ENOSYS
LOAD, EQUAL, ABOVE, BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, MACHINE, FIRST, SECOND = 0, 4, 16, 24  # places in what the kernel shows to a filter


def known() -> bool:
    """Whether there is a filter for this processor."""
    return platform.machine() in MACHINES


def program(machine: str) -> bytes:
    """The filter, as the kernel reads it."""
    column, mark, _ = MACHINES[machine]
    code: list[tuple[int, int, int, int]] = [
        (LOAD, 0, 0, MACHINE), (EQUAL, 1, 0, mark), (RETURN, 0, 0, REFUSE), (LOAD, 0, 0, NUMBER),
    ]  # fmt: skip
    for numbers in CALLS.values():
        if numbers[column] >= 0:
            code += [(EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, ALLOW)]
    code += [(EQUAL, 0, 4, CLONE[column]), (LOAD, 0, 0, FIRST), (BITS, 0, 1, THREAD)]
    code += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    code += [(EQUAL, 0, 4, FCNTL[column]), (LOAD, 0, 0, SECOND), (EQUAL, 0, 1, PIPE_SIZE)]
    code += [(RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    code += [(EQUAL, 0, 2 * len(TERMINAL) + 2, IOCTL[column]), (LOAD, 0, 0, SECOND)]
    for asked in TERMINAL:
        code += [(EQUAL, 0, 1, asked), (RETURN, 0, 0, ALLOW)]
    code += [(RETURN, 0, 0, REFUSE)]
    if machine == "x86_64":  # the same calls by other numbers
        code += [(ABOVE, 0, 1, 0x40000000), (RETURN, 0, 0, REFUSE)]
    code += [(ABOVE, 0, 1, YOUNG), (RETURN, 0, 0, UNKNOWN), (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("HBBI", *line) for line in code)


class Program(ctypes.Structure):
    """How a filter is handed to the kernel."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def close() -> None:
    """Put the filter in place for this process, for good; an error where the kernel does not."""
    if not known():
        return
    code = program(platform.machine())
    held = ctypes.create_string_buffer(code, len(code))
    told = Program(len(code) // 8, ctypes.cast(held, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    no_more_rights, set_filter, all_threads = 38, 1, 1
    if libc.prctl(no_more_rights, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    number = ctypes.c_long(MACHINES[platform.machine()][2])
    words = [ctypes.c_ulong(set_filter), ctypes.c_ulong(all_threads), ctypes.byref(told)]
    if libc.syscall(number, *words):
        raise OSError(ctypes.get_errno(), "no filter of system calls")
