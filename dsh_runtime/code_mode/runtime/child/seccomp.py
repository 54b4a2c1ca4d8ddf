"""A seccomp filter: system calls that no program has a use for, and some that it could do harm with.

It is a list of what is denied. Much of it is out of reach of an unprivileged user anyway. What counts are the sockets
(no network, no host's service), the shared memory that would outlive the program, what the whole machine has a fixed
number of, namespaces, and, where a program may start no processes, every way to start one. Where it shares its user
with the host there is also what Landlock leaves open: the modes and times of files, the limits and priorities of other
processes, and signals by way of descriptors.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

from .system import PR_SET_SECCOMP, prctl

_FILTER_MODE = 2
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT, _SECOND_ARGUMENT_AT = 0, 4, 16, 24
_CLONE_THREAD = 0x00010000
_CLONE_NEW = 0x7E020080  # every kind of namespace
_X32 = 0x40000000

#: Per architecture: its own number, then those of the calls.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_X86_64 = {
    "socket": 41, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "keyctl": 250,
    "add_key": 248, "request_key": 249, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "mount": 165,
    "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "init_module": 175,
    "finit_module": 313, "delete_module": 176, "kexec_load": 246, "kexec_file_load": 320, "reboot": 169, "swapon": 167,
    "swapoff": 168, "shmget": 29, "msgget": 68, "semget": 64, "mq_open": 240, "memfd_create": 319,
    "name_to_handle_at": 303, "open_by_handle_at": 304, "acct": 163, "quotactl": 179, "personality": 135,
    "fanotify_init": 300, "syslog": 103, "iopl": 172, "ioperm": 173, "modify_ldt": 154, "clock_settime": 227,
    "settimeofday": 164, "adjtimex": 159, "clock_adjtime": 305, "sethostname": 170, "setdomainname": 171,
    "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260, "fchmodat": 268, "utime": 132,
    "utimes": 235, "futimesat": 261, "utimensat": 280, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
    "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "inotify_init": 253, "inotify_init1": 294,
    "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "sched_setaffinity": 203,
    "sched_setattr": 314, "ioprio_set": 251, "migrate_pages": 256, "move_pages": 279, "shmat": 30, "shmctl": 31,
    "shmdt": 67, "semop": 65, "semctl": 66, "semtimedop": 220, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
    "io_setup": 206, "io_destroy": 207, "io_getevents": 208, "io_submit": 209, "io_cancel": 210, "io_pgetevents": 333,
    "sync": 162, "syncfs": 306, "vhangup": 153, "lookup_dcookie": 212,
}  # fmt: skip
_AARCH64 = {
    "socket": 198, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "keyctl": 219,
    "add_key": 217, "request_key": 218, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "mount": 40,
    "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268, "init_module": 105,
    "finit_module": 273, "delete_module": 106, "kexec_load": 104, "kexec_file_load": 294, "reboot": 142, "swapon": 224,
    "swapoff": 225, "shmget": 194, "msgget": 186, "semget": 190, "mq_open": 180, "memfd_create": 279,
    "name_to_handle_at": 264, "open_by_handle_at": 265, "acct": 89, "quotactl": 60, "personality": 92,
    "fanotify_init": 262, "syslog": 116, "clock_settime": 112, "settimeofday": 170, "adjtimex": 171,
    "clock_adjtime": 266, "sethostname": 161, "setdomainname": 162, "fchmod": 52, "fchmodat": 53, "fchownat": 54,
    "fchown": 55, "utimensat": 88, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14,
    "lremovexattr": 15, "fremovexattr": 16, "inotify_init1": 26, "setpriority": 140, "sched_setparam": 118,
    "sched_setscheduler": 119, "sched_setaffinity": 122, "sched_setattr": 274, "ioprio_set": 30, "migrate_pages": 238,
    "move_pages": 239, "shmat": 196, "shmctl": 195, "shmdt": 197, "semop": 193, "semctl": 191, "semtimedop": 192,
    "msgsnd": 189, "msgrcv": 188, "msgctl": 187, "io_setup": 0, "io_destroy": 1, "io_submit": 2, "io_cancel": 3,
    "io_getevents": 4, "io_pgetevents": 292, "sync": 81, "syncfs": 267, "vhangup": 58, "lookup_dcookie": 18,
}  # fmt: skip
#: Newer calls have the same number everywhere.
_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "process_madvise": 440,
    "mount_setattr": 442, "quotactl_fd": 443, "memfd_secret": 447, "process_mrelease": 448, "fchmodat2": 452,
    "statmount": 457, "listmount": 458, "lsm_get_self_attr": 459, "lsm_set_self_attr": 460, "lsm_list_modules": 461,
    "setxattrat": 463, "removexattrat": 466, "open_tree_attr": 467, "file_getattr": 468, "file_setattr": 469,
    "listns": 470,
}  # fmt: skip
_DENIED = {"x86_64": {**_X86_64, **_COMMON}, "aarch64": {**_AARCH64, **_COMMON}}
_STARTING = {"x86_64": (57, 58, 59, 322), "aarch64": (221, 281)}  # fork, vfork, execve, execveat
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
#: kill, tkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_send_signal. What remains, tgkill, is for oneself.
_SIGNALLING = {"x86_64": (62, 200, 129, 297, 424), "aarch64": (129, 130, 138, 240, 424)}
_TGKILL = {"x86_64": 234, "aarch64": 131}
_PRLIMIT = {"x86_64": 302, "aarch64": 261}
#: What makes the kernel signal somebody when a descriptor is ready, tells of changes to files, or types at a terminal.
_FCNTL = {"x86_64": 72, "aarch64": 25}
_SETOWN, _SETSIG, _SETOWN_EX, _SETLEASE, _NOTIFY = 8, 10, 15, 1024, 1026
_IOCTL = {"x86_64": 16, "aarch64": 29}
_FIOSETOWN, _SIOCSPGRP, _TIOCSTI = 0x8901, 0x8902, 0x5412


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def machine() -> str | None:
    """The architecture, if there is a filter for it."""
    name = os.uname().machine
    return name if name in _ARCHITECTURES and sys.maxsize > 2**32 and sys.byteorder == "little" else None


def instructions(name: str, *, processes: bool, signals: bool) -> bytes:
    """The filter: whether processes may be started, and others signalled."""
    refuse = _ERRNO | errno.EPERM
    code = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, _ARCHITECTURES[name]), (_RETURN, 0, 0, _KILL)]
    code += [(_LOAD, 0, 0, _NUMBER_AT)]
    if name == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, refuse)]
    denied = [*_DENIED[name].values()]
    denied += () if processes else _STARTING[name]
    denied += () if signals else _SIGNALLING[name]
    for number in denied:
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refuse)]
    # The C library then falls back on clone, whose flags can be looked at.
    code += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    if not signals:
        own = os.getpid()
        code += [(_EQUAL, 0, 4, _TGKILL[name]), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT), (_EQUAL, 1, 0, own)]
        code += [(_RETURN, 0, 0, refuse), (_RETURN, 0, 0, _ALLOW)]
    code += _without(_FCNTL[name], _SETOWN, _SETSIG, _SETOWN_EX, _SETLEASE, _NOTIFY)
    code += _without(_IOCTL[name], _FIOSETOWN, _SIOCSPGRP, _TIOCSTI)
    # A process may set limits for itself, which is process 0.
    code += [(_EQUAL, 0, 4, _PRLIMIT[name]), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT), (_EQUAL, 1, 0, 0)]
    code += [(_RETURN, 0, 0, refuse), (_RETURN, 0, 0, _ALLOW)]
    code += [(_EQUAL, 0, 3, _CLONE[name]), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT)]
    code += [(_ANY_BIT, 0, 1, _CLONE_NEW) if processes else (_ANY_BIT, 1, 0, _CLONE_THREAD)]
    code += [(_RETURN, 0, 0, refuse), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _without(number: int, *commands: int) -> list[tuple[int, int, int, int]]:
    """A call that is allowed but for some values of its second argument."""
    last = len(commands)
    code = [(_EQUAL, 0, last + 3, number), (_LOAD, 0, 0, _SECOND_ARGUMENT_AT)]
    code += [(_EQUAL, last - place, 0, command) for place, command in enumerate(commands)]
    return [*code, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]


def restrict(*, processes: bool, signals: bool) -> bool:
    """Put the filter in force for this process and whatever it starts; false where there is none for this machine."""
    name = machine()
    if name is None:
        return False
    code = instructions(name, processes=processes, signals=signals)
    program = _Program(len(code) // 8, code)
    try:
        prctl(PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program))
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOSYS):  # a kernel that is built without it
            return False
        raise
    return True
