from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AddedShards(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ADDED_SHARDS_UNSPECIFIED: _ClassVar[AddedShards]
    ADDED_SHARDS_COPY: _ClassVar[AddedShards]
    ADDED_SHARDS_IGNORE: _ClassVar[AddedShards]

class Slow(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SLOW_UNSPECIFIED: _ClassVar[Slow]
    SLOW_REREAD: _ClassVar[Slow]
    SLOW_GAP: _ClassVar[Slow]
    SLOW_END: _ClassVar[Slow]

class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KIND_UNSPECIFIED: _ClassVar[Kind]
    KIND_TINYINT: _ClassVar[Kind]
    KIND_SMALLINT: _ClassVar[Kind]
    KIND_MEDIUMINT: _ClassVar[Kind]
    KIND_INT: _ClassVar[Kind]
    KIND_BIGINT: _ClassVar[Kind]
    KIND_FLOAT: _ClassVar[Kind]
    KIND_DOUBLE: _ClassVar[Kind]
    KIND_DECIMAL: _ClassVar[Kind]
    KIND_BIT: _ClassVar[Kind]
    KIND_YEAR: _ClassVar[Kind]
    KIND_DATE: _ClassVar[Kind]
    KIND_TIME: _ClassVar[Kind]
    KIND_DATETIME: _ClassVar[Kind]
    KIND_TIMESTAMP: _ClassVar[Kind]
    KIND_TEXT: _ClassVar[Kind]
    KIND_BINARY: _ClassVar[Kind]
    KIND_BLOB: _ClassVar[Kind]
    KIND_ENUM: _ClassVar[Kind]
    KIND_SET: _ClassVar[Kind]
    KIND_JSON: _ClassVar[Kind]
    KIND_UUID: _ClassVar[Kind]
    KIND_INET4: _ClassVar[Kind]
    KIND_INET6: _ClassVar[Kind]
    KIND_GEOMETRY: _ClassVar[Kind]
ADDED_SHARDS_UNSPECIFIED: AddedShards
ADDED_SHARDS_COPY: AddedShards
ADDED_SHARDS_IGNORE: AddedShards
SLOW_UNSPECIFIED: Slow
SLOW_REREAD: Slow
SLOW_GAP: Slow
SLOW_END: Slow
KIND_UNSPECIFIED: Kind
KIND_TINYINT: Kind
KIND_SMALLINT: Kind
KIND_MEDIUMINT: Kind
KIND_INT: Kind
KIND_BIGINT: Kind
KIND_FLOAT: Kind
KIND_DOUBLE: Kind
KIND_DECIMAL: Kind
KIND_BIT: Kind
KIND_YEAR: Kind
KIND_DATE: Kind
KIND_TIME: Kind
KIND_DATETIME: Kind
KIND_TIMESTAMP: Kind
KIND_TEXT: Kind
KIND_BINARY: Kind
KIND_BLOB: Kind
KIND_ENUM: Kind
KIND_SET: Kind
KIND_JSON: Kind
KIND_UUID: Kind
KIND_INET4: Kind
KIND_INET6: Kind
KIND_GEOMETRY: Kind

class StreamRequest(_message.Message):
    __slots__ = ("feed", "vgtid", "rules", "flags", "slow", "message_bytes_max", "subscriber")
    FEED_FIELD_NUMBER: _ClassVar[int]
    VGTID_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    SLOW_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBER_FIELD_NUMBER: _ClassVar[int]
    feed: str
    vgtid: str
    rules: _containers.RepeatedCompositeFieldContainer[Rule]
    flags: Flags
    slow: Slow
    message_bytes_max: int
    subscriber: str
    def __init__(self, feed: _Optional[str] = ..., vgtid: _Optional[str] = ..., rules: _Optional[_Iterable[_Union[Rule, _Mapping]]] = ..., flags: _Optional[_Union[Flags, _Mapping]] = ..., slow: _Optional[_Union[Slow, str]] = ..., message_bytes_max: _Optional[int] = ..., subscriber: _Optional[str] = ...) -> None: ...

class AcknowledgeRequest(_message.Message):
    __slots__ = ("feed", "subscriber", "vgtid")
    FEED_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBER_FIELD_NUMBER: _ClassVar[int]
    VGTID_FIELD_NUMBER: _ClassVar[int]
    feed: str
    subscriber: str
    vgtid: str
    def __init__(self, feed: _Optional[str] = ..., subscriber: _Optional[str] = ..., vgtid: _Optional[str] = ...) -> None: ...

class AcknowledgeResponse(_message.Message):
    __slots__ = ("advanced",)
    ADVANCED_FIELD_NUMBER: _ClassVar[int]
    advanced: bool
    def __init__(self, advanced: _Optional[bool] = ...) -> None: ...

class ListSubscribersRequest(_message.Message):
    __slots__ = ("feed",)
    FEED_FIELD_NUMBER: _ClassVar[int]
    feed: str
    def __init__(self, feed: _Optional[str] = ...) -> None: ...

class ListSubscribersResponse(_message.Message):
    __slots__ = ("subscribers",)
    SUBSCRIBERS_FIELD_NUMBER: _ClassVar[int]
    subscribers: _containers.RepeatedCompositeFieldContainer[Subscriber]
    def __init__(self, subscribers: _Optional[_Iterable[_Union[Subscriber, _Mapping]]] = ...) -> None: ...

class Subscriber(_message.Message):
    __slots__ = ("name", "vgtid", "acknowledged_us", "generation")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VGTID_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_US_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    vgtid: str
    acknowledged_us: int
    generation: int
    def __init__(self, name: _Optional[str] = ..., vgtid: _Optional[str] = ..., acknowledged_us: _Optional[int] = ..., generation: _Optional[int] = ...) -> None: ...

class RemoveSubscriberRequest(_message.Message):
    __slots__ = ("feed", "subscriber")
    FEED_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBER_FIELD_NUMBER: _ClassVar[int]
    feed: str
    subscriber: str
    def __init__(self, feed: _Optional[str] = ..., subscriber: _Optional[str] = ...) -> None: ...

class RemoveSubscriberResponse(_message.Message):
    __slots__ = ("removed",)
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    removed: bool
    def __init__(self, removed: _Optional[bool] = ...) -> None: ...

class Rule(_message.Message):
    __slots__ = ("match", "filter", "of", "index")
    MATCH_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    match: str
    filter: str
    of: int
    index: int
    def __init__(self, match: _Optional[str] = ..., filter: _Optional[str] = ..., of: _Optional[int] = ..., index: _Optional[int] = ...) -> None: ...

class Flags(_message.Message):
    __slots__ = ("minimize_skew", "heartbeat_interval", "added_shards")
    MINIMIZE_SKEW_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    ADDED_SHARDS_FIELD_NUMBER: _ClassVar[int]
    minimize_skew: bool
    heartbeat_interval: float
    added_shards: AddedShards
    def __init__(self, minimize_skew: _Optional[bool] = ..., heartbeat_interval: _Optional[float] = ..., added_shards: _Optional[_Union[AddedShards, str]] = ...) -> None: ...

class EventBatch(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("begin", "field", "rows", "last_pk", "commit", "ddl", "restart", "copy_completed", "vgtid", "heartbeat", "gap")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    LAST_PK_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    DDL_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    COPY_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    VGTID_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    begin: Begin
    field: Field
    rows: Rows
    last_pk: LastPk
    commit: Commit
    ddl: Ddl
    restart: Restart
    copy_completed: CopyCompleted
    vgtid: VGtid
    heartbeat: Heartbeat
    gap: Gap
    def __init__(self, begin: _Optional[_Union[Begin, _Mapping]] = ..., field: _Optional[_Union[Field, _Mapping]] = ..., rows: _Optional[_Union[Rows, _Mapping]] = ..., last_pk: _Optional[_Union[LastPk, _Mapping]] = ..., commit: _Optional[_Union[Commit, _Mapping]] = ..., ddl: _Optional[_Union[Ddl, _Mapping]] = ..., restart: _Optional[_Union[Restart, _Mapping]] = ..., copy_completed: _Optional[_Union[CopyCompleted, _Mapping]] = ..., vgtid: _Optional[_Union[VGtid, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., gap: _Optional[_Union[Gap, _Mapping]] = ...) -> None: ...

class Table(_message.Message):
    __slots__ = ("schema", "name")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    schema: str
    name: str
    def __init__(self, schema: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class Begin(_message.Message):
    __slots__ = ("keyspace", "shard", "gtid", "time", "copied")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    GTID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    COPIED_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    shard: str
    gtid: str
    time: int
    copied: bool
    def __init__(self, keyspace: _Optional[str] = ..., shard: _Optional[str] = ..., gtid: _Optional[str] = ..., time: _Optional[int] = ..., copied: _Optional[bool] = ...) -> None: ...

class Field(_message.Message):
    __slots__ = ("keyspace", "shard", "table", "columns", "key")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    shard: str
    table: Table
    columns: _containers.RepeatedCompositeFieldContainer[Column]
    key: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, keyspace: _Optional[str] = ..., shard: _Optional[str] = ..., table: _Optional[_Union[Table, _Mapping]] = ..., columns: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., key: _Optional[_Iterable[str]] = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("name", "kind", "unsigned", "length", "scale", "charset", "labels")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    UNSIGNED_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    CHARSET_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: Kind
    unsigned: bool
    length: int
    scale: int
    charset: str
    labels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[Kind, str]] = ..., unsigned: _Optional[bool] = ..., length: _Optional[int] = ..., scale: _Optional[int] = ..., charset: _Optional[str] = ..., labels: _Optional[_Iterable[str]] = ...) -> None: ...

class Rows(_message.Message):
    __slots__ = ("keyspace", "shard", "table", "rows")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    shard: str
    table: Table
    rows: _containers.RepeatedCompositeFieldContainer[Row]
    def __init__(self, keyspace: _Optional[str] = ..., shard: _Optional[str] = ..., table: _Optional[_Union[Table, _Mapping]] = ..., rows: _Optional[_Iterable[_Union[Row, _Mapping]]] = ...) -> None: ...

class Row(_message.Message):
    __slots__ = ("before", "after")
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    before: Side
    after: Side
    def __init__(self, before: _Optional[_Union[Side, _Mapping]] = ..., after: _Optional[_Union[Side, _Mapping]] = ...) -> None: ...

class Side(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("int_value", "uint_value", "float_value", "double_value", "decimal_value", "text_value", "bytes_value", "date_value", "time_value", "datetime_value", "timestamp_value")
    INT_VALUE_FIELD_NUMBER: _ClassVar[int]
    UINT_VALUE_FIELD_NUMBER: _ClassVar[int]
    FLOAT_VALUE_FIELD_NUMBER: _ClassVar[int]
    DOUBLE_VALUE_FIELD_NUMBER: _ClassVar[int]
    DECIMAL_VALUE_FIELD_NUMBER: _ClassVar[int]
    TEXT_VALUE_FIELD_NUMBER: _ClassVar[int]
    BYTES_VALUE_FIELD_NUMBER: _ClassVar[int]
    DATE_VALUE_FIELD_NUMBER: _ClassVar[int]
    TIME_VALUE_FIELD_NUMBER: _ClassVar[int]
    DATETIME_VALUE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_VALUE_FIELD_NUMBER: _ClassVar[int]
    int_value: int
    uint_value: int
    float_value: float
    double_value: float
    decimal_value: str
    text_value: str
    bytes_value: bytes
    date_value: int
    time_value: int
    datetime_value: int
    timestamp_value: int
    def __init__(self, int_value: _Optional[int] = ..., uint_value: _Optional[int] = ..., float_value: _Optional[float] = ..., double_value: _Optional[float] = ..., decimal_value: _Optional[str] = ..., text_value: _Optional[str] = ..., bytes_value: _Optional[bytes] = ..., date_value: _Optional[int] = ..., time_value: _Optional[int] = ..., datetime_value: _Optional[int] = ..., timestamp_value: _Optional[int] = ...) -> None: ...

class LastPk(_message.Message):
    __slots__ = ("keyspace", "shard", "table", "key")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    shard: str
    table: Table
    key: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, keyspace: _Optional[str] = ..., shard: _Optional[str] = ..., table: _Optional[_Union[Table, _Mapping]] = ..., key: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...

class Commit(_message.Message):
    __slots__ = ("keyspace", "shard", "gtid", "time")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    GTID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    shard: str
    gtid: str
    time: int
    def __init__(self, keyspace: _Optional[str] = ..., shard: _Optional[str] = ..., gtid: _Optional[str] = ..., time: _Optional[int] = ...) -> None: ...

class Ddl(_message.Message):
    __slots__ = ("keyspace", "shard", "table", "statement", "added", "dropped", "renamed", "emptied")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    RENAMED_FIELD_NUMBER: _ClassVar[int]
    EMPTIED_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    shard: str
    table: Table
    statement: str
    added: _containers.RepeatedCompositeFieldContainer[Added]
    dropped: _containers.RepeatedScalarFieldContainer[str]
    renamed: _containers.RepeatedCompositeFieldContainer[Renamed]
    emptied: bool
    def __init__(self, keyspace: _Optional[str] = ..., shard: _Optional[str] = ..., table: _Optional[_Union[Table, _Mapping]] = ..., statement: _Optional[str] = ..., added: _Optional[_Iterable[_Union[Added, _Mapping]]] = ..., dropped: _Optional[_Iterable[str]] = ..., renamed: _Optional[_Iterable[_Union[Renamed, _Mapping]]] = ..., emptied: _Optional[bool] = ...) -> None: ...

class Added(_message.Message):
    __slots__ = ("column", "value")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    column: str
    value: Value
    def __init__(self, column: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...

class Renamed(_message.Message):
    __slots__ = ("old", "new")
    OLD_FIELD_NUMBER: _ClassVar[int]
    NEW_FIELD_NUMBER: _ClassVar[int]
    old: str
    new: str
    def __init__(self, old: _Optional[str] = ..., new: _Optional[str] = ...) -> None: ...

class Restart(_message.Message):
    __slots__ = ("keyspace", "shard", "table", "reason", "gone")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    shard: str
    table: Table
    reason: str
    gone: bool
    def __init__(self, keyspace: _Optional[str] = ..., shard: _Optional[str] = ..., table: _Optional[_Union[Table, _Mapping]] = ..., reason: _Optional[str] = ..., gone: _Optional[bool] = ...) -> None: ...

class CopyCompleted(_message.Message):
    __slots__ = ("keyspace", "shard", "table")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    shard: str
    table: Table
    def __init__(self, keyspace: _Optional[str] = ..., shard: _Optional[str] = ..., table: _Optional[_Union[Table, _Mapping]] = ...) -> None: ...

class VGtid(_message.Message):
    __slots__ = ("text", "time_us")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TIME_US_FIELD_NUMBER: _ClassVar[int]
    text: str
    time_us: int
    def __init__(self, text: _Optional[str] = ..., time_us: _Optional[int] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("time_us",)
    TIME_US_FIELD_NUMBER: _ClassVar[int]
    time_us: int
    def __init__(self, time_us: _Optional[int] = ...) -> None: ...

class Gap(_message.Message):
    __slots__ = ("since_vgtid", "until_vgtid")
    SINCE_VGTID_FIELD_NUMBER: _ClassVar[int]
    UNTIL_VGTID_FIELD_NUMBER: _ClassVar[int]
    since_vgtid: str
    until_vgtid: str
    def __init__(self, since_vgtid: _Optional[str] = ..., until_vgtid: _Optional[str] = ...) -> None: ...
