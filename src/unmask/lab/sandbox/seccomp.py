"""A filter for system calls that no solution needs, as the bytes of a BPF program.

It closes what namespaces and resource limits leave open (further user namespaces, memory that no
limit counts), and in the fallback it stands in for them: no sockets, no signals to others, no
changed permissions. On a machine whose numbers are not listed here there is no filter.
"""

from __future__ import annotations

import errno
import platform
import struct

ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, MACHINE, FIRST_ARGUMENT, SECOND_ARGUMENT = (
    0,
    4,
    16,
    24,
)  # offsets into what the kernel shows of a call
X32 = 0x40000000  # the other calling convention of x86_64 has numbers from here on
NEW_NAMESPACE = 0x7E020000  # CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID and NET

# name: (x86_64, aarch64), 0 where there is none
REFUSED = {
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    # the network
    "socket": (41, 198),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # files, where Landlock does not reach
    "truncate": (76, 45),
    "chmod": (90, 0),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, 0),
    "fchown": (93, 55),
    "lchown": (94, 0),
    "fchownat": (260, 54),
    "utime": (132, 0),
    "utimes": (235, 0),
    "futimesat": (261, 0),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    # memory that no limit counts
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    # parts of the kernel with many past bugs
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "personality": (135, 92),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
}
CLONE, CLONE3, PRLIMIT = (56, 220), (435, 435), (302, 261)
# calls with a command as their second argument that makes the kernel signal other processes
FCNTL, IOCTL = (72, 25), (16, 29)
SIGNALLING = {FCNTL: (8, 10, 15), IOCTL: (0x8901, 0x8902)}  # F_SETOWN, SETSIG, SETOWN_EX; FIOSETOWN
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def refusals(machine: str | None = None) -> bytes:
    """The filter for this machine; empty if its system call numbers are not known."""
    column, audit = MACHINES.get(machine or platform.machine(), (-1, 0))
    if column < 0:
        return b""
    no = ERROR | errno.EPERM
    steps = [(LOAD, 0, 0, MACHINE), (EQUAL, 1, 0, audit), (RETURN, 0, 0, KILL)]
    steps += [(LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, X32), (RETURN, 0, 0, KILL)]
    for numbers in REFUSED.values():
        if numbers[column]:
            steps += [(EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, no)]
    # clone3 is refused as unknown, so threads start by clone, whose flags can be read
    steps += [(EQUAL, 0, 1, CLONE3[column]), (RETURN, 0, 0, ERROR | errno.ENOSYS)]
    steps += [(EQUAL, 0, 4, CLONE[column]), (LOAD, 0, 0, FIRST_ARGUMENT)]
    steps += [(ANY_BIT, 0, 1, NEW_NAMESPACE), (RETURN, 0, 0, no), (RETURN, 0, 0, ALLOW)]
    for call, commands in SIGNALLING.items():
        count = len(commands)
        steps += [(EQUAL, 0, count + 3, call[column]), (LOAD, 0, 0, SECOND_ARGUMENT)]
        steps += [(EQUAL, count - place, 0, command) for place, command in enumerate(commands)]
        steps += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, no)]
    steps += [(EQUAL, 0, 3, PRLIMIT[column]), (LOAD, 0, 0, FIRST_ARGUMENT)]  # of others: no
    steps += [(EQUAL, 1, 0, 0), (RETURN, 0, 0, no), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)
