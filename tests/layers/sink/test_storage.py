"""Files of a lake in directories and in an object store: the same promises, also where requests fail."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import pyarrow as pa
import pytest
from obstore.store import MemoryStore

from catchment.model.location import Location, location
from catchment.sink.storage.choice import storage_of
from catchment.sink.storage.objects import ObjectStorage, object_storage
from catchment.sink.storage.port import Storage
from tests.world.s3.bucket import Bucket, in_environment
from tests.world.s3.faults import Fault, Rule
from tests.world.s3.kinds import Kind
from tests.world.s3.proxy import S3Proxy

LARGE = os.urandom(24 << 20)  # obstore sends more than 10 MiB in parts


@pytest.fixture
def remote(bucket: Bucket, s3_proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Location]:
    """A prefix of a bucket, by way of the proxy."""
    with in_environment(bucket.at(s3_proxy.endpoint), monkeypatch):
        yield location(f"s3://{bucket.name}/some/lake")


@pytest.fixture(params=["directory", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """Where nothing is yet."""
    if request.param == "directory":
        return tmp_path / "lake"
    found: Location = request.getfixturevalue("remote")
    return found


def test_what_is_written_is_read(place: Location) -> None:
    storage = storage_of(place)
    storage.make_directory(place / "a")
    storage.create(place / "a" / "1.json", b"hello")
    with storage.written(place / "b" / "large.bin") as file:
        file.write(LARGE)
    assert storage.read(place / "a" / "1.json") == b"hello"
    assert storage.read_range(place / "a" / "1.json", 1, 3) == b"ell"
    assert storage.read_range(place / "a" / "1.json", 3, 30) == b"lo"
    with storage.opened(place / "b" / "large.bin") as file:
        assert file.size() == len(LARGE)
        for offset, size in ((0, 10), (len(LARGE) - 3, 10), (20 << 20, 4 << 20), (len(LARGE), 1)):
            file.seek(offset)
            assert file.read(size) == LARGE[offset : offset + size]
    found = storage.stored(place / "b" / "large.bin")
    assert found is not None
    assert found.size == len(LARGE)
    assert [one.place.name for one in storage.listed(place / "a", ".json")] == ["1.json"]
    assert storage.listed(place / "a", ".parquet") == storage.listed(place / "nowhere", ".json") == []
    assert sorted(storage.directories(place)) == ["a", "b"]


@pytest.mark.parametrize("name", ["x", "file/x"], ids=["absent", "below a file"])
def test_what_is_not_there(place: Location, name: str) -> None:
    storage = storage_of(place)
    storage.make_directory(place)
    storage.create(place / "file", b"no directory")
    assert storage.stored(place / name) is None
    storage.delete(place / "x")
    for ask in (
        storage.read,
        lambda at: storage.read_range(at, 0, 1),
        lambda at: storage.opened(at).__enter__(),
    ):
        with pytest.raises(FileNotFoundError):
            ask(place / name)


def test_a_file_that_fails_is_not_there(place: Location) -> None:
    storage = storage_of(place)
    half = storage.written(place / "x")
    half.__enter__().write(b"half")
    assert not half.__exit__(pa.ArrowInvalid, pa.ArrowInvalid("wrong"), None)
    assert storage.stored(place / "x") is None


def test_a_second_name_and_the_end_of_the_first(place: Location) -> None:
    storage = storage_of(place)
    with storage.written(place / "x") as file:
        file.write(b"rows")
    for _ in range(2):
        storage.share(place / "x", place / "y")
    storage.delete(place / "x")
    assert storage.read(place / "y") == b"rows"


def test_of_many_that_create_a_file_one_does(place: Location) -> None:
    storage = storage_of(place)
    storage.make_directory(place)
    together = threading.Barrier(8)

    def create(number: int) -> int | None:
        together.wait(60)
        try:
            storage.create(place / "1.json", str(number).encode())
        except FileExistsError:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        (winner,) = (number for number in pool.map(create, range(8)) if number is not None)
    assert storage.read(place / "1.json") == str(winner).encode()


def test_it_serves(place: Location) -> None:
    storage_of(place).must_serve(place)
    assert storage_of(place).listed(place, "") == []


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.LATE])
def test_whoever_created_a_file_is_told_so(remote: Location, s3_proxy: S3Proxy, fault: Fault) -> None:
    storage = storage_of(remote)
    s3_proxy.rule(Rule(fault, kinds={Kind.PUT}, times=1))
    storage.create(remote / "1.json", b"mine")
    assert storage.read(remote / "1.json") == b"mine"
    s3_proxy.rule(Rule(fault, kinds={Kind.PUT}, times=1))
    with pytest.raises(FileExistsError):
        storage.create(remote / "1.json", b"another's")
    assert storage.read(remote / "1.json") == b"mine"


@pytest.mark.parametrize("fault", [Fault.LOSE, Fault.LOSE_WITH_ERROR, Fault.TWICE])
def test_a_large_file_whose_last_answer_is_lost_is_there(
    remote: Location, s3_proxy: S3Proxy, fault: Fault
) -> None:
    s3_proxy.rule(Rule(fault, kinds={Kind.COMPLETE}, times=1))
    storage = storage_of(remote)
    with storage.written(remote / "large.bin") as file:
        file.write(LARGE)
    assert storage.read(remote / "large.bin") == LARGE


def test_a_large_file_that_does_not_arrive(remote: Location, s3_proxy: S3Proxy) -> None:
    s3_proxy.rule(Rule(Fault.SLOW_DOWN, kinds={Kind.COMPLETE}))
    storage = storage_of(remote)
    with pytest.raises(OSError, match="large"), storage.written(remote / "large.bin") as file:
        file.write(LARGE)
    assert storage.stored(remote / "large.bin") is None


def test_no_message_has_a_key(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Bucket(bucket.name, bucket.endpoint, bucket.access_key, "nobodys-secret")
    with in_environment(wrong, monkeypatch):
        place = location(f"s3://{bucket.name}/lake")
        with pytest.raises(OSError, match="SignatureDoesNotMatch") as raised:
            storage_of(place).must_serve(place)
    assert bucket.access_key not in str(raised.value)
    assert "nobodys-secret" not in str(raised.value)


def test_a_store_without_put_if_absent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    really = obstore.put
    monkeypatch.setattr(
        obstore, "put", lambda store, path, content, mode="create": really(store, path, content)
    )
    storage: Storage[Location] = ObjectStorage(MemoryStore())  # type: ignore[assignment]
    with pytest.raises(OSError, match="no put-if-absent"):
        storage.must_serve(location("s3://bucket/lake"))


def test_a_client_serves_all_threads() -> None:
    assert object_storage("s3://bucket") is object_storage("s3://bucket")
