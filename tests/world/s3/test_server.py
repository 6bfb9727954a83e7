"""The S3 server of the tests has what a lake asks of an object store; above all, one of many creates wins."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, PermissionDeniedError, PreconditionError

from tests.conftest import had
from tests.world.s3 import gateway
from tests.world.s3.bucket import Bucket
from tests.world.s3.gateway import versity
from tests.world.s3.server import S3Server
from tests.world.servers.debian import NotHere

_WRITERS = 16
_RACES = 200


def _race(bucket: Bucket, races: int) -> list[list[int]]:
    """The writers that were told of success, for each of so many keys that all create at once."""
    together = threading.Barrier(_WRITERS)

    def write(writer: int) -> list[bool]:
        store, won = bucket.store(), []
        for race in range(races):
            together.wait()
            try:
                obstore.put(store, f"race/{race}", str(writer).encode(), mode="create")
                won.append(True)
            except AlreadyExistsError:
                won.append(False)
        return won

    with ThreadPoolExecutor(_WRITERS) as pool:
        outcomes = list(pool.map(write, range(_WRITERS)))
    return [[writer for writer in range(_WRITERS) if outcomes[writer][race]] for race in range(races)]


@pytest.mark.parametrize("races", [_RACES, pytest.param(5000, marks=pytest.mark.long)])
def test_of_many_creates_of_a_key_one_wins_and_its_content_stands(bucket: Bucket, races: int) -> None:
    winners = _race(bucket, races)
    assert {len(won) for won in winners} == {1}
    store = bucket.store()
    stand = [int(bytes(obstore.get(store, f"race/{race}").bytes())) for race in range(races)]
    assert [[writer] for writer in stand] == winners


@pytest.mark.wide
def test_without_attributes_of_files_one_wins_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr("os.setxattr", refuse)
    with S3Server(had(versity)) as server, server.fresh_bucket() as bucket:
        assert {len(won) for won in _race(bucket, _RACES)} == {1}


def test_what_is_written_is_read_and_listed_at_once(bucket: Bucket) -> None:
    writer, reader = bucket.store(), bucket.store()
    names = [f"t/_delta_log/{number:020}.json" for number in range(30)]
    for number, name in enumerate(names):
        obstore.put(writer, name, name.encode())
        assert bytes(obstore.get(reader, name).bytes()) == name.encode()
        assert [one["path"] for one in obstore.list(reader, "t/_delta_log").collect()] == names[: number + 1]
    assert [one["path"] for one in obstore.list(reader, "t/_delta_log", offset=names[27]).collect()] == names[
        28:
    ]
    assert obstore.list_with_delimiter(reader, "t")["common_prefixes"] == ["t/_delta_log"]


def test_lists_are_in_the_order_of_bytes_and_go_over_pages(bucket: Bucket) -> None:
    store = bucket.store()
    keys = sorted(
        [f"a/{number}" for number in range(1100)] + ["a-b", "a.b", "a0", "a/é", "ab/c"], key=str.encode
    )
    for key in keys:
        obstore.put(store, key, b"")
    assert [one["path"] for one in obstore.list(store).collect()] == keys


def test_ranges_parts_and_deletes(bucket: Bucket) -> None:
    store = bucket.store()
    content = bytes(range(256)) * 50_000
    obstore.put(store, "big", content, use_multipart=True, chunk_size=5 << 20)
    assert obstore.head(store, "big")["size"] == len(content)
    assert bytes(obstore.get_range(store, "big", start=1000, length=300)) == content[1000:1300]
    assert [bytes(piece) for piece in obstore.get_ranges(store, "big", starts=[0, 9], lengths=[2, 3])] == [
        content[:2],
        content[9:12],
    ]
    names = [f"x/{number}" for number in range(1200)]
    for name in names:
        obstore.put(store, name, b"")
    obstore.delete(store, [*names, "x/none"])
    obstore.delete(store, "big")
    obstore.delete(store, "big")
    assert obstore.list(store).collect() == []
    with pytest.raises(FileNotFoundError):
        obstore.get(store, "big")


def test_a_put_on_condition_of_the_content(bucket: Bucket) -> None:
    store = bucket.store()
    first = obstore.put(store, "k", b"1")
    obstore.put(store, "k", b"2", mode={"e_tag": first["e_tag"]})
    with pytest.raises(PreconditionError):
        obstore.put(store, "k", b"3", mode={"e_tag": first["e_tag"]})
    assert bytes(obstore.get(store, "k").bytes()) == b"2"


def test_names_that_a_lake_has(bucket: Bucket) -> None:
    store = bucket.store()
    for key in ("t/_part=a b%2F+é/x=1/0.parquet", "t/_dv/deletion_vector_1.bin", "t/a%20b"):
        obstore.put(store, key, key.encode())
        assert bytes(obstore.get(store, key).bytes()) == key.encode()
        assert [one["path"] for one in obstore.list(store, key.rpartition("/")[0]).collect()].count(key) == 1


def test_content_survives_a_crash_of_the_server_and_strangers_are_refused() -> None:
    with S3Server(had(versity)) as server, server.fresh_bucket() as bucket:
        obstore.put(bucket.store(), "k", b"1")
        pid = server.pid
        server.kill9()
        with pytest.raises(GenericError):
            obstore.get(bucket.store(), "k")
        server.start()
        assert server.pid != pid
        assert bytes(obstore.get(bucket.store(), "k").bytes()) == b"1"
        with pytest.raises(AlreadyExistsError):
            obstore.put(bucket.store(), "k", b"2", mode="create")
        stranger = Bucket(bucket.name, bucket.endpoint, bucket.access_key, "another")
        with pytest.raises(PermissionDeniedError) as refused:
            obstore.get(stranger.store(), "k")
        assert bucket.access_key in str(refused.value)
        assert bucket.secret_key not in str(refused.value)


@pytest.mark.wide
def test_a_server_that_cannot_be_built_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(NotHere, match=r"versitygw 1\.8\.0 cannot be built: "):
        gateway.versity.__wrapped__()
    assert not list((tmp_path / "servers").glob("fetching-*"))
