"""What a real S3 server says of a wrong bucket or key is passed on, in its own words and in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.s3_server import ACCESS, SECRET, s3_server

from casewarden.adapters.stores.s3 import S3Store
from casewarden.ports.store import StoreUnavailable
from casewarden.relay.readiness import Readiness

# The S3 server may have to be built first.
pytestmark = pytest.mark.timeout(2400)


async def test_a_wrong_bucket_or_key_is_named(tmp_path: Path) -> None:
    with s3_server(tmp_path) as server:
        server.bucket("evidence")
        base = {"endpoint": server.endpoint, "region": "us-east-1", "access_key_id": ACCESS}
        for bucket, secret, code in (("nothing", SECRET, "NoSuchBucket: "), ("evidence", "x", "SignatureDoesNotMatch")):
            store = S3Store(bucket, secret_access_key=secret, **base)
            with pytest.raises(StoreUnavailable, match=code) as refused:
                await store.put_if_absent("a", b"x", limit=9)
            assert "\n" not in str(refused.value)
            assert "<" not in str(refused.value)


async def test_a_real_server_keeps_the_first_value(tmp_path: Path) -> None:
    with s3_server(tmp_path) as server:
        server.bucket("evidence")
        store = S3Store("evidence", endpoint=server.endpoint, region="us-east-1", access_key_id=ACCESS,
                        secret_access_key=SECRET)  # fmt: skip
        for _ in range(2):
            readiness = Readiness(store, store.address)
            await readiness.ask()
            assert readiness.why is None
