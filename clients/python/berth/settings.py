"""Where the service is and with which token, as the commands of berth find them."""

from __future__ import annotations

import ipaddress
import json
import os
import stat
import sys
from typing import Any, Dict, Optional, Tuple
from urllib.parse import urlsplit

from .errors import Invalid

DEFAULT_SERVER = "http://127.0.0.1:7117"

#: Begins the URL of a Unix socket, before its path.
SOCKET = "unix://"

# Where a service of the package, and one of one's own, has its socket.
_PACKAGED = "/run/berth/berth.sock"
_SOCKET_NAME = "berth.sock"


def find(server: Optional[str], token: Optional[str], token_file: Optional[str]) -> Tuple[str, str]:
    """Return the URL of the service, without a slash at its end, and the token, which may be empty.

    What is given comes first, then BERTH_SERVER and BERTH_TOKEN, then what ``berth login`` keeps, then
    the socket of a service on this machine. A login's token goes to the service of that login alone.
    """
    known = _login()
    server = server or os.environ.get("BERTH_SERVER") or known.get("server") or _socket_here() or DEFAULT_SERVER
    if token and token_file:
        raise Invalid("token and token_file are both given; want one of them", field="token_file")
    if token_file:
        token = _first_line(token_file)
    tokens = known.get("tokens") or {}
    trimmed = server[:-1] if server.endswith("/") else server
    token = token or os.environ.get("BERTH_TOKEN") or tokens.get(trimmed) or ""
    _check(server, token)
    return trimmed, token


def socket_path(server: str) -> Optional[str]:
    """Return the path of a Unix socket from its URL, None of another URL."""
    return server[len(SOCKET) :] if server.startswith(SOCKET) else None


def loopback(server: str) -> bool:
    """Report whether a URL is of this machine itself."""
    if socket_path(server) is not None:
        return True
    host = urlsplit(server).hostname or ""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def _check(server: str, token: str) -> None:
    path = socket_path(server)
    if path is not None:
        if not path.startswith("/") or any(c < " " for c in path):
            raise Invalid(f"{server!r}; want {SOCKET} and an absolute path, such as {SOCKET}{_PACKAGED}", field="server")
    else:
        _check_url(server)
    if any(c <= " " or c > "~" for c in token):
        raise Invalid("holds a space or a control character; want one word", field="token")


def _check_url(server: str) -> None:
    try:
        parts = urlsplit(server)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment
        good = good and parts.username is None and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or any(c <= " " or c > "~" for c in server):
        raise Invalid(f"{server!r}; want a URL such as {DEFAULT_SERVER}, or {SOCKET}{_PACKAGED}", field="server")


def _socket_here() -> str:
    """Return the URL of the socket of a service on this machine, empty if there is none."""
    for path in (_PACKAGED, os.path.join(_data_dir(), _SOCKET_NAME)):
        try:
            if stat.S_ISSOCK(os.stat(path).st_mode):
                return SOCKET + os.path.abspath(path)
        except OSError:
            pass
    return ""


def _data_dir() -> str:
    """Return the data directory that ``berth serve`` takes by itself."""
    state = os.environ.get("STATE_DIRECTORY", "")
    if os.path.isabs(state) and ":" not in state:
        return state
    state = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):
        return os.path.join(state, "berth")
    home = os.environ.get("HOME", "")
    return os.path.join(home, ".local", "state", "berth") if home else "berth-data"


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            line = file.readline().strip()
    except (OSError, UnicodeDecodeError) as err:
        raise Invalid(f"{path}: {getattr(err, 'strerror', None) or err}; want a file with a token in its first line", field="token_file") from err
    if not line:
        raise Invalid(f"{path}: empty; want a token in its first line", field="token_file")
    return line


def _login() -> Dict[str, Any]:
    """Return what ``berth login`` keeps, which is nothing before the first login."""
    folder = _config_dir()
    if not folder:
        return {}
    path = os.path.join(folder, "berth", "login.json")
    try:
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as err:
        raise Invalid(f"{path}: {err}; log in again") from err
    if not isinstance(known, dict):
        raise Invalid(f"{path}: not an object; log in again")
    return known


def _config_dir() -> str:
    """Return the folder for settings that Go's os.UserConfigDir names, empty if there is none."""
    home = os.environ.get("HOME", "")
    if sys.platform == "win32":
        return os.environ.get("AppData", "")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support") if home else ""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if folder:
        return folder if os.path.isabs(folder) else ""
    return os.path.join(home, ".config") if home else ""
