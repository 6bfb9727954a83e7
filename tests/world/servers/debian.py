"""Packages of Debian, unpacked into a directory without being installed.

Those of another release run on any Linux with their own C library, through its loader. apt verifies Debian's
signature and the packages' checksums; it works on lists and a status of its own, so that the system is not touched.
"""

import shutil
import subprocess
from pathlib import Path

LOADER = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SECONDS = 240
_CONNECT_SECONDS = 15
_NOT_NEEDED = ("perl", "libperl", "libgdbm", "libdb5", "libc-gconv", "systemd", "adduser", "debconf")


class NotHere(Exception):
    """A server cannot be had on this machine; the message says why."""


def unpack_packages(target: Path, release: str, core: str, *others: str) -> None:
    """Unpack `core` with all that it depends on, and `others` alone, into `target`. Raises NotHere."""
    for need in ("apt-get", "dpkg-deb"):
        if shutil.which(need) is None:
            raise NotHere(f"{core} of Debian {release} needs {need}")
    if not _KEYRING.exists():
        raise NotHere(f"{core} of Debian {release} needs {_KEYRING} (package debian-archive-keyring)")
    work = target / "apt"
    options = _apt_options(work, release)
    _run([*options, "update"])
    _run([*options, "install", "--yes", "--download-only", core])
    if others:
        _run([*options, "download", *others], work / "cache/archives")
    for package in sorted((work / "cache/archives").glob("*.deb")):
        if not package.name.startswith(_NOT_NEEDED):
            _run(["dpkg-deb", "--extract", str(package), str(target)])
    shutil.rmtree(work)


def unpack_sibling(target: Path, package: str, installed: str) -> None:
    """Unpack `package` alone, in the version in which its sibling `installed` is on this system. Raises NotHere."""
    version = _run(["dpkg-query", "--show", "--showformat=${Version}", installed])
    _run(["apt-get", "-q", "download", f"{package}={version}"], target)
    for archive in target.glob("*.deb"):
        _run(["dpkg-deb", "--extract", str(archive), str(target)])
        archive.unlink()


def unpack_statements(target: Path, package: str, *, installed: str = "", release: str = "") -> None:
    """Unpack the `*.test` files of a server's own test suite: of this system's Debian in the version in which
    `installed` is here, or of another `release`. Raises NotHere.
    """
    if release:
        options = _apt_options(target / "apt", release)
        _run([*options, "update"])
        _run([*options, "download", package], target)
        shutil.rmtree(target / "apt")
    else:
        version = _run(["dpkg-query", "--show", "--showformat=${Version}", installed])
        _run(["apt-get", "-q", "download", f"{package}={version}"], target)
    for archive in target.glob("*.deb"):
        files = target / "files.tar"
        with files.open("wb") as tar:
            subprocess.run(["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=tar, check=True)
        archive.unlink()
        _run(["tar", "-x", "-f", str(files), "-C", str(target), "--wildcards", "*.test"])
        files.unlink()


def _apt_options(work: Path, release: str) -> list[str]:
    for directory in ("lists/partial", "cache/archives/partial", "etc"):
        (work / directory).mkdir(parents=True)
    (work / "etc/sources.list").write_text(
        f"deb [arch=amd64 signed-by={_KEYRING}] {_mirror()} {release} main\n"
    )
    (work / "status").touch()
    options = {
        "Dir::Etc::sourcelist": work / "etc/sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": work / "lists",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "APT::Architecture": "amd64",
        "APT::Install-Recommends": "0",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::http::Timeout": _CONNECT_SECONDS,
        "Acquire::Retries": 0,
        "APT::Update::Error-Mode": "any",
        "Debug::NoLocking": "1",
    }
    return ["apt-get", "-q", *(part for key, value in options.items() for part in ("-o", f"{key}={value}"))]


def _mirror() -> str:
    """The mirror of Debian that this system's own packages come from. Raises NotHere."""
    command = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Component: main"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    sites = [site for site in said.split() if site.rstrip("/").endswith("/debian")]
    if not sites:
        raise NotHere("apt has no mirror of Debian among its sources")
    return sites[0]


def _run(command: list[str], directory: Path | None = None) -> str:
    """What the command says. Raises NotHere."""
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise NotHere(f"{command[0]} {command[-1]} took more than {_SECONDS} s") from late
    except FileNotFoundError:
        raise NotHere(f"this system has no {command[0]}") from None
    if done.returncode != 0:
        raise NotHere(f"{command[0]} {command[-1]} failed: {done.stderr.strip()[-300:]}")
    return done.stdout
