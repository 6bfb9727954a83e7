"""The feed file: what it means, and every fault it can have."""

import pickle
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from catchment.config import Feed, SchemaChange, load
from catchment.model.column_rule import ColumnRule, Masking
from catchment.model.errors import ConfigError
from catchment.model.source import Endpoint, Tls
from catchment.model.table import TableId

MINIMAL = """
name: shop
source:
  keyspace: shop
  shards:
    - {name: "-80", host: db1, user: copier, password: hunter2}
tables: [shop.*]
sink: {path: lake}
"""


def feed_of(tmp_path: Path, text: str) -> Feed:
    file = tmp_path / "feed.yaml"
    file.write_text(text)
    return load(file)


def faults_of(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        feed_of(tmp_path, text)
    prefix = f"{tmp_path}/feed.yaml:"
    return [line.removeprefix(prefix) for line in str(caught.value).splitlines()]


def test_defaults_and_paths_relative_to_the_file(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, MINIMAL)
    assert feed.sink.path == tmp_path / "lake"
    assert feed.state.get_secret_value() == f"sqlite:///{tmp_path}/shop.state.db"
    assert (feed.epoch.interval, feed.epoch.tick) == (1.0, 0.1)
    assert (feed.copying.chunk_time, feed.copying.groups_per_shard, feed.copying.log_budget) == (
        0.5,
        2,
        64 << 20,
    )
    assert (feed.sink.settle, feed.sink.keep) == (10, 3600)
    assert (feed.sink.keep_hourly, feed.sink.keep_daily) == (0, 0)
    assert feed.sink.index is None
    assert feed.schema_change is SchemaChange.EVOLVE
    assert feed.shard("-80").port == 3306
    assert feed.spark.master == "local[2]"


def test_everything_given(tmp_path: Path) -> None:
    feed = feed_of(
        tmp_path,
        MINIMAL.replace(
            "password: hunter2", "password: hunter2, port: 3307, tls: {ca: ca.pem, verify: false}"
        )
        + """
epoch: {interval: 2s, tick: 50ms}
copy: {chunk_time: 0.25s, chunk_rows_max: 5000, groups_per_shard: 3, log_budget: 128MB}
schema_change: fail
state: mysql://keeper:s3cret@host/db
metrics: {file: out/metrics.prom, port: 9464}
spark: {master: "local[4]", conf: {spark.ui.enabled: false, spark.task.cpus: 1}}
""",
    )
    tls = feed.shard("-80").tls
    assert tls is not None
    assert (tls.ca, tls.verify) == (tmp_path / "ca.pem", False)
    assert feed.epoch.tick == 0.05
    assert feed.copying.log_budget == 128 << 20
    assert feed.state.get_secret_value() == "mysql+pymysql://keeper:s3cret@host/db"
    assert feed.metrics.file == tmp_path / "out/metrics.prom"
    assert feed.spark.conf == {"spark.ui.enabled": "false", "spark.task.cpus": "1"}


def test_all_faults_at_once_with_line_and_path(tmp_path: Path) -> None:
    faults = faults_of(
        tmp_path,
        """name: Shop
source:
  keyspace: shop
  shards:
    - {name: -80, host: h, user: u, prot: 3}
    - {name: b, host: h, user: u, port: 70000, tls: {cert: a.pem}}
tables: ["shop.", "/(/", "!a.b"]
epoch: {interval: 5, tick: 2}
copy: 4
sink: {path: lake, setle: 5s, keep: 200%, fold: 0.1}
zzzz: 1
""",
    )
    expected = [
        ("1: name:", "lower-case letters"),
        ("5: source.shards[0].name:", "in quotes"),
        ("5: source.shards[0].prot:", "did you mean port?"),
        ("6: source.shards[1].port:", "65535"),
        ("6: source.shards[1].tls:", "cert and key belong together"),
        ("7: tables:", "shop. is not of the form"),
        ("8: epoch.interval:", "a duration such as"),
        ("8: epoch.tick:", "a duration such as"),
        ("9: copy:", "a mapping with the keys chunk_time"),
        ("10: sink.fold:", "sink.settle, a duration, took its place"),
        ("10: sink.keep:", "a duration such as"),
        ("10: sink.setle:", "did you mean settle?"),
        ("11: zzzz:", "unknown key; known are name, source"),
    ]
    assert len(faults) == len(expected), faults
    for fault, (start, part) in zip(faults, expected, strict=True):
        assert fault.startswith(start)
        assert part in fault


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tables: [shop.*]", "tables: ['!shop.a']", "7: tables: no rule takes a table"),
        (
            "tables: [shop.*]",
            "tables:\n  - !shop.a",
            "8: a text that begins with * or ! must be put in quotes",
        ),
        ("tables: [shop.*]", "tables: [*.a]", "7: "),
        ("tables: [shop.*]", "tables: [shop.*", "8: a bracket is opened in line 7"),
        ("sink: {path: lake}", "", "sink: is missing"),
        ("sink: {path: lake}", "sink: {path: lake}\nsink: {path: pond}", "9: sink: given twice"),
        ("name: shop", "name: [&a [*a]]\nnmae: x", "alias contains itself"),
        ("hunter2}", "hunter2}\n    - {name: '80-', host: db1, user: u}", "more than one shard: db1:3306"),
        ("hunter2}", "hunter2}\n    - {name: '-80', host: db2, user: u}", "more than one shard: -80"),
        ("    - {name", "    []\n#", "source.shards: give at least one shard"),
        ("sink:", "epoch: {interval: 1s, tick: 2s}\nsink:", "epoch: tick must not be longer than interval"),
        ("{path: lake}", "{path: ~nosuchuser/lake}", "8: sink.path: begins with ~ and the name of a user"),
        ("hunter2", "{file: ~nosuchuser/secret}", "6: source.shards[0].password: begins with ~"),
        ("{path: lake}", '{path: "a\\0b"}', "8: sink.path: expected a path"),
        ("{path: lake}", "{path: a%20b}", "because of %20 in it"),
        ("{path: lake}", r"{path: a\b}", r"because of \ in it"),
        ("{path: lake}", "{path: ''}", "8: sink.path: expected a path"),
        ("{path: lake}", "{path: 5}", "8: sink.path: expected a path, as a text"),
        ("[shop.*]", "shop.*", "7: tables: expected a list"),
        ("sink:", "state: ''\nsink:", "8: state: expected a path"),
        ("sink:", "copy: {chunk_time: 1h}\nsink:", "copy.chunk_time: at most 1min"),
        ("sink:", f"epoch: {{interval: {'9' * 400}s}}\nsink:", "8: epoch.interval: expected a duration"),
        (
            "sink:",
            "spark: {conf: {spark.hadoop.fs.s3a.secret.key: hunter2}}\nsink:",
            "8: spark.conf: spark.hadoop.fs.s3a.secret.key: PySpark hands",
        ),
        ("sink:", "spark: {master: 'loca[2]'}\nsink:", "8: spark.master: expected local, local[4]"),
        ("sink:", "epoch: {tick: 1ms}\nsink:", "epoch.tick: at least 10ms"),
    ],
)
def test_single_faults(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in MINIMAL
    assert said in "\n".join(faults_of(tmp_path, MINIMAL.replace(old, new, 1)))


@pytest.mark.parametrize("text", ["", "- a", "just words", "\0"])
def test_files_that_are_no_feed(tmp_path: Path, text: str) -> None:
    assert len(faults_of(tmp_path, text)) == 1


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "absent.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"name: \xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(tmp_path / "binary.yaml")


def test_password_from_environment_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "from-env")
    (tmp_path / "secret").write_text("from-file\n")
    for source, password in (("{env: SHOP_PASSWORD}", "from-env"), ("{file: secret}", "from-file")):
        feed = feed_of(tmp_path, MINIMAL.replace("hunter2", source))
        assert feed.shard("-80").password.get_secret_value() == password


@pytest.mark.parametrize(
    "source", ["{env: UNSET_HUNTER}", "{file: absent}", "{env: A, file: b}", "{file: .}"]
)
def test_password_that_cannot_be_read(tmp_path: Path, source: str) -> None:
    (fault,) = faults_of(tmp_path, MINIMAL.replace("hunter2", source))
    assert fault.startswith("6: source.shards[0].password:")


def test_secrets_that_are_not_asked_for_are_not_read(tmp_path: Path) -> None:
    """All else is checked, and nobody can take them for what they are not."""
    file = tmp_path / "feed.yaml"
    file.write_text(MINIMAL.replace("hunter2", "{env: UNSET_HUNTER}") + "state: kept.db\n")
    feed = load(file, secrets=("state",))
    assert feed.state.get_secret_value() == f"sqlite:///{tmp_path}/kept.db"
    with pytest.raises(LookupError, match="without this secret"):
        feed.endpoints()
    file.write_text(file.read_text() + "zzzz: 1\n")
    with pytest.raises(ConfigError, match=r"^\S+feed\.yaml:10: zzzz: unknown key[^\n]*$"):
        load(file, secrets=())


def test_secrets_are_never_shown(tmp_path: Path) -> None:
    text = MINIMAL + "state: mysql://keeper:hunter2@host/db\n"
    feed = feed_of(tmp_path, text)
    assert "hunter2" not in repr(feed) + str(feed) + feed.model_dump_json()
    assert pickle.loads(pickle.dumps(feed)) == feed


@pytest.mark.parametrize(
    "password", ["*hunter2", "!hunter2 x", "[hunter2", "12345678", "'hunter2", "@hunter2", "%hunter2"]
)
def test_faults_never_show_the_password(tmp_path: Path, password: str) -> None:
    text = "\n".join(faults_of(tmp_path, MINIMAL.replace("hunter2", password)))
    assert "hunter2" not in text
    assert "12345678" not in text


@pytest.mark.parametrize(
    "written",
    [
        "password:hunter2",
        'password:"hunter2"',
        "password=hunter2",
        "password: {hunter2: 1}",
        "password: {hunter2: 1, hunter2: 2}",
        r'password: "hunter2\ud800"',
        "tls: {state:mysql://keeper:hunter2@host/db}",
    ],
)
def test_a_password_where_it_does_not_belong_is_not_shown(tmp_path: Path, written: str) -> None:
    faults = faults_of(tmp_path, MINIMAL.replace("password: hunter2", written))
    assert "hunter2" not in "\n".join(faults)
    assert faults[0].startswith(("6: source.shards[0].password: ", "6: source.shards[0].tls.state: ")), faults


@pytest.mark.parametrize(
    "state",
    [
        "mysql://keeper:hunter2@host:port/db",
        "://hunter2",
        "mysql:/keeper:hunter2@host/db",
        "mysql:///keeper:hunter2@host/db",
        "mysql://keeper:pa@ss/hunter2@host/db",
        "mysql//keeper:hunter2@host/db",
        "MySQL+pymysql:keeper:hunter2@host/db",
        "msql:/keeper:hunter2@host/db",
        "//keeper:hunter2@host/db",
        "keeper:hunter2@host/db",
        "postgresql:host/hunter2",
        "sqlite:hunter2.db",
        "sqlite://",
    ],
)
def test_malformed_state_url_is_not_repeated(tmp_path: Path, state: str) -> None:
    (fault,) = faults_of(tmp_path, MINIMAL + f'state: "{state}"\n')
    assert "state: expected a path, or a URL" in fault
    assert "hunter2" not in fault


@pytest.mark.parametrize(
    "state", ["feed:1.db", "./mysql:1.db", "{}/a:b@c.db", "a@b:1.db", "mysql.db", "x@y.db"]
)
def test_state_files_with_odd_names(tmp_path: Path, state: str) -> None:
    path = state.format(tmp_path)
    feed = feed_of(tmp_path, MINIMAL + f'state: "{path}"\n')
    assert make_url(feed.state.get_secret_value()).database == str(tmp_path / path)


@pytest.mark.parametrize(
    "name",
    [
        "spark.authenticate.secret",
        "spark.connect.authenticate.token",
        "spark.executorEnv.AWS_SECRET_ACCESS_KEY",
        "spark.executorEnv.MYSQL_PWD",
        "spark.executorEnv.SHOP_PASSWORD_DB1",
        "spark.hadoop.dfs.webhdfs.oauth2.credential",
        "spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.lake.shop.blob.core.windows.net",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.bucket.lake.encryption.key",
        "spark.hadoop.fs.s3a.session.token",
        "spark.hadoop.google.cloud.auth.service.account.private.key",
        "spark.hadoop.google.cloud.auth.service.account.private.key.id",
        "spark.hadoop.shop.credentials.json",
        "spark.kubernetes.authenticate.submission.oauthToken",
        "spark.ssl.rpc.trustStorePassword",
        "spark.yarn.appMasterEnv.DB_PASSWORD",
    ],
)
def test_settings_of_spark_that_hold_a_secret(tmp_path: Path, name: str) -> None:
    (fault,) = faults_of(tmp_path, MINIMAL + f"spark: {{conf: {{{name}: hunter2}}}}\n")
    assert fault.startswith(
        f"9: spark.conf: {name}: PySpark hands these settings to Java in the process list"
    )
    assert "hunter2" not in fault


def test_settings_of_spark_that_say_where_a_secret_is(tmp_path: Path) -> None:
    conf = {
        "spark.authenticate.secret.file": "/etc/spark/secret",
        "spark.authenticate.secretBitLength": "256",
        "spark.executorEnv.GOOGLE_APPLICATION_CREDENTIALS": "/etc/google.json",
        "spark.hadoop.fs.azure.account.oauth.provider.type": "a.Class",
        "spark.hadoop.fs.s3a.aws.credentials.provider": "a.Class",
        "spark.hadoop.google.cloud.auth.service.account.json.keyfile": "/etc/google.json",
        "spark.hadoop.hadoop.security.credential.provider.path": "jceks://file/etc/spark.jceks",
        "spark.hadoop.hadoop.security.credstore.java-keystore-provider.password-file": "/etc/spark/password",
        "spark.kubernetes.authenticate.oauthTokenFile": "/var/run/token",
        "spark.kubernetes.container.image.pullSecrets": "registry",
        "spark.kubernetes.driver.secretKeyRef.DB_PASSWORD": "shop:password",
        "spark.kubernetes.executor.secrets.shop-secret": "/etc/secrets",
        "spark.kubernetes.kerberos.tokenSecret.name": "kerberos",
        "spark.security.credentials.hive.enabled": "false",
        "spark.ssl.rpc.keyStore": "/etc/spark/key.jks",
        "spark.ssl.rpc.trustStore": "/etc/spark/trust.jks",
    }
    lines = "".join(f"    {name}: {value}\n" for name, value in conf.items())
    assert feed_of(tmp_path, f"{MINIMAL}spark:\n  conf:\n{lines}").spark.conf == conf


def test_endpoints(tmp_path: Path) -> None:
    text = MINIMAL.replace("password: hunter2", "password: hunter2, tls: {ca: ca.pem}")
    (endpoint,) = feed_of(tmp_path, text).endpoints()
    assert endpoint == Endpoint("-80", "db1", 3306, "copier", "hunter2", Tls(ca=str(tmp_path / "ca.pem")))


def test_feeds_are_immutable(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, MINIMAL)
    with pytest.raises(ValueError, match="frozen"):
        feed.name = "other"


COLUMNS = """
columns:
  - {match: "*.*.password*", exclude: true}
  - {match: shop.users.email, mask: hmac}
  - {match: shop.users.card, mask: partial, show: 2}
  - {match: shop.orders.c, rename: comment, mask: nulls}
mask_key: sixteen-hunter-2
"""


def test_columns(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, MINIMAL + COLUMNS)
    key = feed.key_of_masks()
    assert key is not None
    assert feed.treatment_of(TableId("shop", "users")).rules == (
        ColumnRule("password*", excluded=True),
        ColumnRule("email", masking=Masking.HMAC, key_mark=key.mark),
        ColumnRule("card", masking=Masking.PARTIAL, shown=2),
    )
    assert feed.treatment_of(TableId("shop", "orders")).rules[1:] == (
        ColumnRule("c", masking=Masking.NULLS, name="comment"),
    )
    assert feed.treatment_of(TableId("other", "t.x")).rules == (ColumnRule("password*", excluded=True),)
    assert feed.columns[0].takes(TableId("shop", "a"), "PassWord_2")
    assert "hunter" not in repr(feed) + feed.model_dump_json() + repr(
        feed.treatment_of(TableId("shop", "users"))
    )


def test_the_mask_key_is_not_read_by_who_does_not_need_it(tmp_path: Path) -> None:
    file = tmp_path / "feed.yaml"
    file.write_text(MINIMAL + COLUMNS.replace("sixteen-hunter-2", "{env: UNSET_HUNTER}"))
    feed = load(file, secrets=("password",))
    assert feed.treatment_of(TableId("other", "t")).rules == (ColumnRule("password*", excluded=True),)
    with pytest.raises(LookupError, match="without this secret"):
        feed.key_of_masks()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("mask_key: sixteen-hunter-2", "", "mask: hmac needs a mask_key"),
        ("sixteen-hunter-2", "hunter", "mask_key: expected 16 characters at least"),
        ("shop.users.email, ", "users.email, ", "columns[1].match: users.email is not of the form"),
        ("exclude: true", "exclude: false", "columns[0]: say what to do"),
        ("exclude: true", "exclude: true, mask: nulls", "columns[0]: a column that is excluded"),
        ("mask: partial", "mask: half", "columns[2].mask: "),
        ("show: 2", "show: -1", "columns[2].show: "),
        ("rename: comment", "rename: ''", "columns[3].rename: expected a column's name"),
    ],
)
def test_faults_of_columns(tmp_path: Path, old: str, new: str, said: str) -> None:
    faults = faults_of(tmp_path, MINIMAL + COLUMNS.replace(old, new))
    assert said in "\n".join(faults), faults
    assert "hunter" not in "\n".join(faults)


@pytest.mark.parametrize(
    ("text", "value"), [("off", False), ("false", False), ("side", "side"), ("/var/i", "/var/i")]
)
def test_the_index_has_a_directory_or_is_off(tmp_path: Path, text: str, value: object) -> None:
    index = feed_of(tmp_path, MINIMAL.replace("path: lake", f"path: lake, index: {text}")).sink.index
    assert index == (tmp_path / value if isinstance(value, str) else value)
