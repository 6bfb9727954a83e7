"""TLS of a session: what the files that a shard's `tls` names say, read once as long as they stay the same.

To read the system's certificates takes 50 ms, and a shard is logged in to several times an epoch.
"""

import os
import ssl
from functools import lru_cache

from catchment.model.errors import ConfigError
from catchment.model.source import Endpoint, Tls

_CONTEXTS_MAX = 64

# A file that was written or replaced has another stamp, also within the clock's grain: number, size, times of its bytes
# and of its entry. None: there is no file.
_Stamp = tuple[int, int, int, int] | None


def context_of(endpoint: Endpoint) -> ssl.SSLContext | None:
    """None without TLS. Raises ConfigError, since Python does not name a file that is not there or not of its kind."""
    if endpoint.tls is None:
        return None
    try:
        return _made(endpoint.tls, _stamps(endpoint.tls))
    except ConfigError as fault:
        raise ConfigError(f"shard {endpoint.shard}: {fault}") from None


def _stamps(tls: Tls) -> tuple[_Stamp, ...]:
    system = () if tls.ca else (ssl.get_default_verify_paths().cafile,)
    return tuple(_stamp(file) for file in (tls.ca, tls.cert, tls.key, *system))


def _stamp(file: str | None) -> _Stamp:
    try:
        found = None if file is None else os.stat(file)
    except OSError:
        return None
    return None if found is None else (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@lru_cache(_CONTEXTS_MAX)
def _made(tls: Tls, stamps: tuple[_Stamp, ...]) -> ssl.SSLContext:
    """The context of files that had these stamps before they were read."""
    try:
        context = ssl.create_default_context(cafile=tls.ca)
    except OSError as error:
        raise ConfigError(f"tls.ca {tls.ca} is no file of certificates in PEM: {error}") from None
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert is not None:
        try:
            # Without a password it would ask for one at the terminal.
            context.load_cert_chain(tls.cert, tls.key, password="")
        except OSError as error:
            raise ConfigError(
                f"tls.cert {tls.cert} and tls.key {tls.key} are no certificate and its key in PEM, without a "
                f"passphrase: {error}"
            ) from None
    return context
