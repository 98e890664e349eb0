"""Where the service is and with which token, as the commands of berth find them."""

from __future__ import annotations

import ipaddress
import json
import os
import sys
from typing import Any, Dict, Optional, Tuple
from urllib.parse import urlsplit

from .errors import Invalid

DEFAULT_SERVER = "http://127.0.0.1:7117"


def find(server: Optional[str], token: Optional[str], token_file: Optional[str]) -> Tuple[str, str]:
    """Return the URL of the service, without a slash at its end, and the token, which may be empty.

    What is given comes first, then BERTH_SERVER and BERTH_TOKEN, then what ``berth login`` keeps. A
    login's token goes to the service of that login alone.
    """
    known = _login()
    server = server or os.environ.get("BERTH_SERVER") or known.get("server") or DEFAULT_SERVER
    if token and token_file:
        raise Invalid("token and token_file are both given; want one of them", field="token_file")
    if token_file:
        token = _first_line(token_file)
    tokens = known.get("tokens") or {}
    trimmed = server[:-1] if server.endswith("/") else server
    token = token or os.environ.get("BERTH_TOKEN") or tokens.get(trimmed) or ""
    _check(server, token)
    return trimmed, token


def loopback(server: str) -> bool:
    """Report whether a URL is of this machine itself."""
    host = urlsplit(server).hostname or ""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def _check(server: str, token: str) -> None:
    try:
        parts = urlsplit(server)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment
        good = good and parts.username is None and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or any(c <= " " or c > "~" for c in server):
        raise Invalid(f"{server!r}; want a URL such as {DEFAULT_SERVER}", field="server")
    if any(c <= " " or c > "~" for c in token):
        raise Invalid("holds a space or a control character; want one word", field="token")


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
