"""Certificates of an authority of the test's own, and a server that speaks TLS before one that does not."""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

CHUNK = 1 << 16


class Authority:
    """An authority that signs certificates.

    Args:
        directory: Where its files lie.
        name: Its name, which is part of theirs.
    """

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _named(name)
        builder = self._builder(self._subject, self._key.public_key())
        self._certificate = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        ).sign(self._key, hashes.SHA256())
        self.file = self._written(f"{name}.pem", self._certificate.public_bytes(serialization.Encoding.PEM))

    def sign(self, name: str, host: str = "localhost") -> tuple[Path, Path]:
        """The files of a certificate for a host, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(host)])
        certificate = (
            self._builder(_named(name), key.public_key())
            .add_extension(names, critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return (
            self._written(f"{self._name}-{name}.pem", certificate.public_bytes(serialization.Encoding.PEM)),
            self._written(f"{self._name}-{name}.key", private),
        )

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=12))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )

    def _written(self, name: str, content: bytes) -> Path:
        file = self._directory / name
        file.write_bytes(content)
        return file


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


@contextmanager
def speaking_tls(socket: Path, certificate: tuple[Path, Path], clients: Path | None = None) -> Iterator[int]:
    """The port of a TLS server on 127.0.0.1 that passes everything on to a unix socket.

    Args:
        socket: The server behind.
        certificate: The files of its certificate and key.
        clients: Who has to have signed clients' certificates, if they need one.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*map(str, certificate))
    if clients is not None:
        context.load_verify_locations(str(clients))
        context.verify_mode = ssl.CERT_REQUIRED
    loop = asyncio.new_event_loop()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind_writer = await asyncio.open_unix_connection(str(socket))
        await asyncio.gather(_pass_on(reader, behind_writer), _pass_on(behind_reader, writer))

    async def start() -> asyncio.Server:
        return await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)

    loop.set_exception_handler(lambda *_: None)  # clients that refuse, or are refused
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        asyncio.run_coroutine_threadsafe(_end_all(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
    writer.close()


async def _end_all(server: asyncio.Server) -> None:
    server.close()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
