"""The proxy passes on, counts, and does to requests what its rules say, as a client of S3 sees it."""

from collections import Counter

import obstore
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from obstore.exceptions import AlreadyExistsError, GenericError
from obstore.store import S3Store
from pyarrow.fs import S3FileSystem

from tests.conftest import had
from tests.world.patience import until
from tests.world.s3.bucket import REGION, Bucket
from tests.world.s3.faults import Fault, Rule, Rules
from tests.world.s3.gateway import versity
from tests.world.s3.kinds import Kind
from tests.world.s3.proxy import S3Proxy
from tests.world.s3.server import S3Server

_RETRIES = 3
_PUTS = frozenset({Kind.PUT})


@pytest.fixture
def by_proxy(bucket: Bucket, s3_proxy: S3Proxy) -> Bucket:
    return bucket.at(s3_proxy.endpoint)


def _content(bucket: Bucket, key: str) -> bytes | None:
    """What the server has, asked without the proxy."""
    try:
        return bytes(obstore.get(bucket.store(), key).bytes())
    except FileNotFoundError:
        return None


def _put(store: S3Store, key: str) -> bool:
    try:
        obstore.put(store, key, b"")
    except GenericError:
        return False
    return True


def _fates(proxy: S3Proxy) -> list[tuple[tuple[int, ...], int | None]]:
    return [(one.delivered, one.answered) for one in proxy.seen()]


def test_without_rules_all_is_passed_on_and_counted(by_proxy: Bucket, s3_proxy: S3Proxy) -> None:
    store = by_proxy.store()
    content = bytes(range(256)) * 50_000
    obstore.put(store, "a b/é+%", b"1")
    obstore.put(store, "a b/big", content, use_multipart=True, chunk_size=6 << 20)
    obstore.copy(store, "a b/é+%", "a b/copy")
    assert [one["path"] for one in obstore.list(store, "a b").collect()] == ["a b/big", "a b/copy", "a b/é+%"]
    assert bytes(obstore.get(store, "a b/big").bytes()) == content
    assert bytes(obstore.get_range(store, "a b/big", start=7, length=5)) == content[7:12]
    assert obstore.head(store, "a b/copy")["size"] == 1
    obstore.delete(store, "a b/copy")
    obstore.delete(store, ["a b/é+%", "a b/big"])
    with pytest.raises(FileNotFoundError):
        obstore.head(store, "a b/copy")
    assert s3_proxy.counts() == {
        Kind.PUT: 1,
        Kind.UPLOAD: 4,
        Kind.COMPLETE: 1,
        Kind.COPY: 1,
        Kind.LIST: 1,
        Kind.GET: 2,
        Kind.HEAD: 2,
        Kind.DELETE_MANY: 2,
    }
    assert s3_proxy.methods() == {"PUT": 5, "POST": 4, "GET": 3, "HEAD": 2}
    assert s3_proxy.seen()[0].key == "a b/é+%"
    assert s3_proxy.seen()[-1].answered == 404
    s3_proxy.forget()
    assert s3_proxy.counts() == Counter()


@pytest.mark.parametrize(
    ("fault", "status"), [(Fault.SLOW_DOWN, 503), (Fault.ERROR, 500), (Fault.DROP, None)]
)
def test_what_is_refused_never_reaches_the_server(
    bucket: Bucket, by_proxy: Bucket, s3_proxy: S3Proxy, fault: Fault, status: int | None
) -> None:
    s3_proxy.rule(Rule(fault, _PUTS, times=1))
    with pytest.raises(GenericError, match=str(status or "error sending request")):
        obstore.put(by_proxy.store(), "k", b"1", mode="create")
    assert _content(bucket, "k") is None
    s3_proxy.rule(Rule(fault, _PUTS, times=2))
    obstore.put(by_proxy.store(_RETRIES), "k", b"1", mode="create")
    assert _content(bucket, "k") == b"1"
    refused = ((), status)
    assert _fates(s3_proxy)[-3:] == [refused, refused, ((200,), 200)]


@pytest.mark.parametrize("retries", [0, _RETRIES])
def test_a_create_in_conflict_is_said_to_exist_though_nothing_does(
    bucket: Bucket, by_proxy: Bucket, s3_proxy: S3Proxy, retries: int
) -> None:
    s3_proxy.rule(Rule(Fault.CONFLICT, _PUTS, times=1))
    with pytest.raises(AlreadyExistsError):
        obstore.put(by_proxy.store(retries), "k", b"1", mode="create")
    assert _content(bucket, "k") is None


@pytest.mark.parametrize(("fault", "status"), [(Fault.LOSE, None), (Fault.LOSE_WITH_ERROR, 500)])
def test_a_create_whose_answer_is_lost_has_happened(
    bucket: Bucket, by_proxy: Bucket, s3_proxy: S3Proxy, fault: Fault, status: int | None
) -> None:
    """Without retries the client is told of a fault. With them it is told that another was first, which was itself."""
    s3_proxy.rule(Rule(fault, _PUTS, keys="*/lost"))
    with pytest.raises(GenericError):
        obstore.put(by_proxy.store(), "a/lost", b"1", mode="create")
    assert _content(bucket, "a/lost") == b"1"
    assert _fates(s3_proxy) == [((200,), status)]
    s3_proxy.rule(Rule(fault, _PUTS, times=1))
    s3_proxy.forget()
    with pytest.raises(AlreadyExistsError):
        obstore.put(by_proxy.store(_RETRIES), "b/lost", b"1", mode="create")
    assert _content(bucket, "b/lost") == b"1"
    assert _fates(s3_proxy) == [((200,), status), ((412,), 412)]


def test_puts_and_deletes_whose_answer_is_lost_are_repeated_without_harm(
    bucket: Bucket, by_proxy: Bucket, s3_proxy: S3Proxy
) -> None:
    store = by_proxy.store(_RETRIES)
    s3_proxy.rule(Rule(Fault.LOSE, first=1, times=1))
    obstore.put(store, "k", b"1")
    s3_proxy.rule(Rule(Fault.LOSE_WITH_ERROR, first=1, times=1))
    obstore.delete(store, "k")
    assert _content(bucket, "k") is None
    assert _fates(s3_proxy) == [((200,), None), ((200,), 200), ((200,), 500), ((200,), 200)]


def test_a_put_delivered_twice(bucket: Bucket, by_proxy: Bucket, s3_proxy: S3Proxy) -> None:
    s3_proxy.rule(Rule(Fault.TWICE, _PUTS))
    obstore.put(by_proxy.store(), "over", b"1")
    with pytest.raises(AlreadyExistsError):
        obstore.put(by_proxy.store(), "created", b"1", mode="create")
    assert _content(bucket, "created") == b"1"
    assert _fates(s3_proxy) == [((200, 200), 200), ((200, 412), 412)]


def test_a_late_put_lands_after_the_one_that_repeated_it(
    bucket: Bucket, by_proxy: Bucket, s3_proxy: S3Proxy
) -> None:
    s3_proxy.rule(Rule(Fault.LATE, _PUTS, times=1))
    obstore.put(by_proxy.store(_RETRIES), "over", b"1")
    obstore.put(by_proxy.store(), "over", b"2")
    assert s3_proxy.deliver_late() == [200]
    assert _content(bucket, "over") == b"1", "it overwrites what is newer"
    s3_proxy.rule(Rule(Fault.LATE, _PUTS, times=1))
    with pytest.raises(GenericError):
        obstore.put(by_proxy.store(), "created", b"1", mode="create")
    assert _content(bucket, "created") is None
    assert s3_proxy.deliver_late() == [200]
    assert _content(bucket, "created") == b"1", "though the client was told of a fault, and saw nothing there"
    s3_proxy.rule(Rule(Fault.LATE, _PUTS, times=1))
    obstore.put(by_proxy.store(_RETRIES), "again", b"1", mode="create")
    assert s3_proxy.deliver_late() == [412], "a create meets the one that repeated it"
    assert s3_proxy.deliver_late() == []


@pytest.mark.parametrize("fault", [Fault.LOSE, Fault.LOSE_WITH_ERROR])
def test_the_end_of_an_upload_whose_answer_is_lost(
    bucket: Bucket, by_proxy: Bucket, s3_proxy: S3Proxy, fault: Fault
) -> None:
    """The object is there. A client that does not repeat breaks the upload off, which is no more: it reads 404."""
    content = b"1" * (6 << 20)
    s3_proxy.rule(Rule(fault, frozenset({Kind.COMPLETE}), times=1))
    with pytest.raises(FileNotFoundError):
        obstore.put(by_proxy.store(), "a", content, use_multipart=True, chunk_size=5 << 20)
    assert _content(bucket, "a") == content
    s3_proxy.rule(Rule(fault, frozenset({Kind.COMPLETE}), times=1))
    obstore.put(by_proxy.store(_RETRIES), "b", content, use_multipart=True, chunk_size=5 << 20)
    assert _content(bucket, "b") == content
    assert s3_proxy.counts()[Kind.COMPLETE] == 3


def test_reads_and_lists_go_on_after_faults(by_proxy: Bucket, s3_proxy: S3Proxy) -> None:
    store = by_proxy.store(_RETRIES)
    obstore.put(store, "k", b"1")
    for fault in (Fault.SLOW_DOWN, Fault.DROP, Fault.LOSE, Fault.LOSE_WITH_ERROR):
        s3_proxy.rule(*(Rule(fault, frozenset({kind}), times=1) for kind in (Kind.GET, Kind.HEAD, Kind.LIST)))
        s3_proxy.forget()
        assert bytes(obstore.get(store, "k").bytes()) == b"1"
        assert obstore.head(store, "k")["size"] == 1
        assert len(obstore.list(store).collect()) == 1
        assert s3_proxy.counts() == {Kind.GET: 2, Kind.HEAD: 2, Kind.LIST: 2}


def test_a_delay(by_proxy: Bucket, s3_proxy: S3Proxy) -> None:
    """A request that is delayed for longer than any test holds up no other one. Delays of rules add up."""
    s3_proxy.rule(Rule(delay=1e6, keys="slow/*"))
    with pytest.raises(GenericError, match=r"timed out|error sending request"):
        obstore.put(by_proxy.store(seconds=0.3), "slow/k", b"1")
    obstore.put(by_proxy.store(), "fast/k", b"1")
    assert [one.key for one in s3_proxy.seen()] == ["fast/k"]
    rules = Rules([Rule(delay=0.25), Rule(delay=0.5, keys="slow/*")])
    assert [rules.fate(Kind.PUT, key).delay for key in ("slow/k", "fast/k")] == [0.75, 0.25]


def test_a_create_that_waited_too_long_is_not_repeated_and_lands(
    bucket: Bucket, by_proxy: Bucket, s3_proxy: S3Proxy
) -> None:
    store = by_proxy.store(_RETRIES, seconds=0.3)
    obstore.put(store, "first", b"1")  # so the client has a connection, and its time is that of the answer
    s3_proxy.forget()
    s3_proxy.rule(Rule(delay=1.0, times=1))
    with pytest.raises(GenericError):
        obstore.put(store, "k", b"1", mode="create")
    until("the create reaches the server", s3_proxy.seen)
    assert _content(bucket, "k") == b"1"
    assert s3_proxy.counts() == {Kind.PUT: 1}


def test_which_requests_a_rule_is_for(by_proxy: Bucket, s3_proxy: S3Proxy) -> None:
    store = by_proxy.store()
    s3_proxy.rule(Rule(Fault.ERROR, _PUTS, keys="*/_delta_log/*.json", first=2, times=2))
    keys = [
        "t/_delta_log/0.json",
        "t/data",
        "t/_delta_log/1.json",
        "u/_delta_log/2.json",
        "t/_delta_log/3.json",
    ]
    assert [_put(store, key) for key in keys] == [True, True, False, False, True]
    s3_proxy.rule()
    assert all(_put(store, key) for key in keys)


def test_chance_depends_on_the_seed_and_not_on_the_order(by_proxy: Bucket, s3_proxy: S3Proxy) -> None:
    store = by_proxy.store()
    keys = [f"k/{number}" for number in range(60)]

    def lost(seed: int, order: list[str]) -> set[str]:
        s3_proxy.rule(Rule(Fault.ERROR, _PUTS, chance=0.3, seed=seed))
        return {key for key in order if not _put(store, key)}

    first = lost(1, keys)
    assert 5 < len(first) < 35
    assert lost(1, keys[::-1]) == first
    assert lost(2, keys) != first


def test_a_connection_carries_many_requests(by_proxy: Bucket, s3_proxy: S3Proxy) -> None:
    store = by_proxy.store()
    for number in range(50):
        obstore.put(store, f"k/{number}", b"")
    assert s3_proxy.connections() < 25, "a client opens some beside each other, but not one for each"


def test_a_server_that_is_gone_ends_connections_until_it_is_back() -> None:
    with S3Server(had(versity)) as server, server.fresh_bucket() as bucket, S3Proxy(server.port) as proxy:
        store = bucket.at(proxy.endpoint).store()
        obstore.put(store, "k", b"1")
        server.kill9()
        with pytest.raises(GenericError, match="error sending request"):
            obstore.get(store, "k")
        assert proxy.seen()[-1].answered is None
        server.start()
        assert bytes(obstore.get(store, "k").bytes()) == b"1"


def test_a_library_that_waits_with_pythons_lock_in_hand_is_served(
    by_proxy: Bucket, s3_proxy: S3Proxy
) -> None:
    options = by_proxy.storage_options()
    place = f"s3://{by_proxy.name}/t"
    write_deltalake(place, pa.table({"id": [1, 2]}), storage_options=options)
    table = DeltaTable(place, storage_options=options)
    assert QueryBuilder().register("t", table).execute("SELECT id FROM t").read_all().num_rows == 2


def test_arrows_client_is_served(by_proxy: Bucket, s3_proxy: S3Proxy) -> None:
    """It sends bodies in chunks, without their length, and waits for "100 Continue" before large ones."""
    files = S3FileSystem(
        access_key=by_proxy.access_key,
        secret_key=by_proxy.secret_key,
        endpoint_override=by_proxy.endpoint.removeprefix("http://"),
        scheme="http",
        region=REGION,
    )
    for size in (10, 9 << 20):
        content = b"1" * size
        with files.open_output_stream(f"{by_proxy.name}/k") as stream:
            stream.write(content)
        with files.open_input_file(f"{by_proxy.name}/k") as file:
            assert file.read() == content
