"""An authority of a test's own: certificates that nobody trusts who is not told to."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["Authority"]


class Authority:
    """Keeps its files in a folder; ``certificate`` is what has to be trusted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.certificate, self._key = folder / "authority.crt", folder / "authority.key"
        self._openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
            "-subj", "/CN=An authority of a test", "-keyout", str(self._key), "-out", str(self.certificate),
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        )  # fmt: skip

    def issue(self, *names: str) -> tuple[Path, Path]:
        """Return the files of a certificate of these host names or IP addresses, and of its key."""
        stem = self._folder / names[0].replace("*", "any")
        certificate, key, request = (stem.with_suffix(f".{kind}") for kind in ("crt", "key", "csr"))
        said = ",".join(f"{'IP' if name.replace('.', '').isdigit() else 'DNS'}:{name}" for name in names)
        extensions = stem.with_suffix(".ext")
        extensions.write_text(f"subjectAltName={said}\nextendedKeyUsage=serverAuth\n")
        self._openssl(
            "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", f"/CN={names[0]}", "-keyout", str(key), "-out", str(request),
        )  # fmt: skip
        self._openssl(
            "x509", "-req", "-in", str(request), "-CA", str(self.certificate), "-CAkey", str(self._key),
            "-CAcreateserial", "-days", "30", "-extfile", str(extensions), "-out", str(certificate),
        )  # fmt: skip
        return certificate, key

    @staticmethod
    def _openssl(*words: str) -> None:
        done = subprocess.run(["openssl", *words], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
