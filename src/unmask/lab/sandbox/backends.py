"""Start the candidate's interpreter inside bubblewrap, or with limits alone."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from unmask.lab.sandbox import candidate
from unmask.lab.sandbox.program import ProgramLimits, SandboxError
from unmask.lab.sandbox.seccomp import refusals

CODE, HOME = "/sandbox", "/py"  # where this package and the interpreter stand inside bubblewrap
LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/nix/store")
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}  # sets in one order, text in one encoding
FLAGS = ("-s", "-S", "-B")  # no site-packages, nothing written; -I would ignore the hash seed

# The packages above this one are replaced by empty modules: their imports would cost time, and
# inside bubblewrap they do not exist.
START = """
import sys
sys.path[:] = [path for path in sys.path if path]
for name in ("unmask", "unmask.lab", "unmask.lab.sandbox"):
    sys.modules[name] = type(sys)(name)
    sys.modules[name].__path__ = [sys.argv[1]]
from {module} import main
main()
"""


@dataclass(frozen=True)
class Backend:
    """A way to start the candidate: its command line, and how the filter reaches it."""

    name: str
    argv: tuple[str, ...]
    filter: bytes  # of system calls; may be empty
    alone: bool = False  # the candidate's process installs the filter and gives up files itself
    readable: tuple[str, ...] = ()  # the files that it keeps then


def rlimit() -> Backend:
    """Resource limits, a system call filter and Landlock, which the process sets itself."""
    argv = python_argv(interpreter(), candidate, package())
    libraries = [str(path.resolve()) for path in (*map(Path, LIBRARIES), *standard_library())]
    return Backend("rlimit", argv, refusals(), True, (*libraries, *DEVICES))


def bwrap(executable: str, options: str, limits: ProgramLimits) -> Backend:
    """Namespaces, and a file system that holds only the interpreter, by bubblewrap.

    Args:
        executable: path of bwrap.
        options: its help text; older versions lack some options.
        limits: the size of the scratch folder /tmp.
    """
    python = interpreter()
    argv = [executable, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    argv += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        # the kernel counts no processes of a uid that maps to root: no user namespace, and the
        # candidate's process drops to an unused uid itself
        argv += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        argv += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
        argv += ["--disable-userns"] if "--disable-userns" in options else []
    for folder in ("/usr", "/etc", "/dev", HOME, f"{HOME}/bin"):  # parents of binds would be 0700
        argv += ["--dir", folder]
    for path in map(Path, LIBRARIES):
        if path.is_symlink():
            argv += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            argv += ["--ro-bind", str(path), str(path)]
    argv += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    argv += ["--ro-bind", str(python), f"{HOME}/bin/{python.name}"]
    for path in standard_library():
        argv += ["--ro-bind", str(path.resolve()), f"{HOME}/{path.name}"]
    argv += ["--ro-bind", package(), CODE]
    for device in DEVICES:
        argv += ["--dev-bind", device, device]
    if "--size" in options:  # without a size, files could fill the memory: no scratch folder then
        argv += ["--perms", "1777", "--size", str(limits.file), "--tmpfs", "/tmp"]
    else:
        argv += ["--dir", "/tmp"]
    argv += ["--remount-ro", "/", "--chdir", "/tmp", "--clearenv"]
    inside = {**ENVIRONMENT, "PYTHONHOME": HOME, "LD_LIBRARY_PATH": f"{HOME}/lib"}
    for name, value in inside.items():
        argv += ["--setenv", name, value]
    filters = refusals()
    argv += ["--seccomp", "3"] if filters else []
    argv += ["--", *python_argv(Path(HOME, "bin", python.name), candidate, CODE)]
    return Backend("bwrap", tuple(argv), filters)


def python_argv(python: Path, module: ModuleType, folder: str) -> tuple[str, ...]:
    """The command that runs `main` of a module of this package, which lies in `folder`."""
    return (str(python), *FLAGS, "-c", START.format(module=module.__name__), folder)


def environment() -> dict[str, str]:
    """The environment of a process outside bubblewrap: the path of the interpreter's libraries."""
    kept = ("LD_LIBRARY_PATH",)
    return ENVIRONMENT | {name: os.environ[name] for name in kept if name in os.environ}


def interpreter() -> Path:
    """The path of the interpreter, outside of any virtual environment."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = prefix() / "bin" / version
    return python.resolve() if python.exists() else Path(sys.executable).resolve()


def prefix() -> Path:
    return Path(sys.base_prefix).resolve()


def standard_library() -> list[Path]:
    return [path for path in (prefix() / "lib", prefix() / "lib64") if path.is_dir()]


def package() -> str:
    return str(Path(__file__).resolve().parent)


def check_readable_by_others(library: Path) -> None:
    """Raise unless an unprivileged user can read the standard library."""
    closed = [path for path in (library, *library.parents) if not path.stat().st_mode & 0o001]
    if closed:
        raise SandboxError(
            f"the candidate runs as an unprivileged user, which cannot read the interpreter "
            f"below {closed[-1]}; install bubblewrap, or use another Python"
        )
