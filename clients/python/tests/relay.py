"""A relay in front of a service that loses answers and cuts connections."""

from __future__ import annotations

import socket
import threading
from typing import List, Set, Tuple


class Relay:
    """Passes bytes on between clients and the service at an address."""

    def __init__(self, service: Tuple[str, int]) -> None:
        self.lose = 0  # the number of answers that are read to their end, and not passed on
        self.refuse = 0  # the number of connections that are closed before anything is passed on
        self.calls: List[bytes] = []  # what was passed on to the service, by connection
        self._service = service
        self._lock = threading.Lock()
        self._open: Set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return "http://127.0.0.1:%d" % self._listener.getsockname()[1]

    def cut(self) -> None:
        """Cut every connection there is."""
        with self._lock:
            for end in self._open:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it has ended by itself

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                refuse, lose = self.refuse > 0, self.refuse == 0 and self.lose > 0
                self.refuse -= refuse
                self.lose -= lose
            if refuse:
                client.close()
                continue
            threading.Thread(target=self._pass, args=(client, lose), daemon=True).start()

    def _pass(self, client: socket.socket, lose: bool) -> None:
        server = socket.create_connection(self._service)
        with self._lock:
            self._open |= {client, server}
            self.calls.append(b"")
            number = len(self.calls) - 1

        def forward() -> None:
            try:
                while True:
                    data = client.recv(1 << 16)
                    if not data:
                        return
                    with self._lock:
                        self.calls[number] += data
                    server.sendall(data)
            except OSError:
                pass

        threading.Thread(target=forward, daemon=True).start()
        try:
            while True:
                data = server.recv(1 << 16)
                if not data:
                    break
                if not lose:
                    client.sendall(data)
        except OSError:
            pass
        with self._lock:
            self._open -= {client, server}
        for end in (client, server):
            try:
                end.shutdown(socket.SHUT_RDWR)  # closing alone would wait for the thread that reads from it
            except OSError:
                pass  # the other side has ended it
            end.close()
