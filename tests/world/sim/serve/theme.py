"""What a seed of the server of streams turns around, and which clients it has."""

from dataclasses import dataclass, replace

from catchment.serve.server import stream_pb2 as pb
from tests.world.sim.serve.client import CURRENT, Habits
from tests.world.sim.serve.wanted import ALL, ONE, OTHER, SELECTED
from tests.world.sim.theme import Theme as Writing

_NEVER = float("inf")
EAGER = Habits(ALL)
LEAVING = Habits(ALL, leaves=0.1)
VANISHING = Habits(ALL, leaves=0.1, noticed=5.0)
NOW = Habits(ALL, begins=CURRENT, heartbeat=0.5)
NOW_LEAVING = Habits(ALL, begins=CURRENT, leaves=0.3)
SLOW = Habits(ALL, pace=0.6)
GAPPED = Habits(ALL, pace=0.6, slow=pb.SLOW_GAP)
ENDED = Habits(ALL, pace=0.6, slow=pb.SLOW_END)
DEAD = Habits(ALL, pace=_NEVER)
NARROW = Habits(ONE, leaves=0.05)
QUIET = Habits(OTHER, heartbeat=1.0)
CHOOSY = Habits(SELECTED, leaves=0.05)
IMPATIENT = Habits(ALL, waits=3.0)
ALIGNED = Habits(ALL, aligned=True, leaves=0.05)
SUBSCRIBER = Habits(ALL, subscriber="a", leaves=0.05, acknowledges=2)
RIVAL = Habits(ALL, subscriber="a", leaves=0.1, acknowledges=3)
ANOTHER = Habits(ONE, subscriber="b", leaves=0.05)

_WRITING = Writing(
    rotations=(1, 4),
    xa=(1, 6),
    purges=(0, 4),
    holds=((0.0, 0.0, 0.0, 0.05, 0.4, 1.5), (0.0,)),
    paces=(0.3, 0.8, 2.0),
    late=(0.0, 0.3, 1.0),
    rows=(0, 12, 30),
    select_seconds=(0.0, 0.0, 0.3),
    trouble=(2.0, 4.0, 7.0),
)


@dataclass(frozen=True)
class Theme:
    """Of each, one choice is taken for a seed; of `clients` so many as `crowd` says. `shards`: how many there are.

    `copying`, `catching_up`, `fresh`: how many clients may read by themselves. `buffers`, `unacknowledged`: bytes.
    `turns`: bytes of a shard's log in one turn; `messages`: of a message. `chunks`: rows of one. `kills`: how likely a
    server dies at a step, and `deaths`: a client. `exercises`: what is tried once trouble is over. `lags`: seconds by
    which a shard's log is behind its primary. `truncates`: weight of TRUNCATE. `breaks`: one after the other, what
    takes log away that a client may not have been told, or a shard for some seconds.
    """

    clients: tuple[Habits, ...]
    shards: int = 2
    crowd: tuple[int, ...] = (3, 4, 5)
    hosts: tuple[int, ...] = (1, 2)
    copying: tuple[int, ...] = (1, 2, 8)
    catching_up: tuple[int, ...] = (1, 2, 4)
    fresh: tuple[int, ...] = (1, 2)
    most: tuple[int, ...] = (100,)
    buffers: tuple[int, ...] = (400, 1500, 64 << 20)
    unacknowledged: tuple[int, ...] = (1, 3000, 64 << 20)
    turns: tuple[int, ...] = (300, 1500, 4 << 20)
    messages: tuple[int, ...] = (200, 1 << 20)
    chunks: tuple[int, ...] = (3, 8, 20)
    kills: tuple[float, ...] = (0.0, 0.0003, 0.001)
    freezes: tuple[float, ...] = (0.0, 0.0005)
    deaths: tuple[float, ...] = (0.0, 0.003, 0.02)
    exercises: tuple[str, ...] = ("steady",)
    lags: tuple[float, ...] = (0.0,)
    truncates: tuple[float, ...] = (0.0, 4.0)
    breaks: tuple[str, ...] = ()
    writing: Writing = _WRITING


SHARED = Theme(
    (EAGER, EAGER, LEAVING, VANISHING, NOW, NOW_LEAVING, SLOW, GAPPED, ENDED, NARROW, CHOOSY),
    exercises=("steady", "quiet", "absence"),
)
# Slow clients are overtaken soon, and there is always one.
SLOWLY = Theme(
    (SLOW, EAGER, GAPPED, GAPPED, ENDED, DEAD), buffers=(300, 800), kills=(0.0,), deaths=(0.0, 0.003)
)
# Tables begin again while clients are slow or away, and their copies take several turns.
ALTERED = Theme(
    (EAGER, EAGER, LEAVING, SLOW, SLOW, CHOOSY),
    buffers=(300, 800),
    chunks=(3,),
    turns=(4 << 20,),
    kills=(0.0,),
    truncates=(20.0,),
    writing=replace(_WRITING, rows=(30,)),
)
# Shards are away again and again, while clients come to the reader that they share.
AWAY = Theme(
    (EAGER, LEAVING, LEAVING, NOW_LEAVING, SLOW),
    buffers=(300, 64 << 20),
    kills=(0.0,),
    breaks=("away",) * 6,
    exercises=("absence", "steady"),
)
LINE = Theme(
    (EAGER, LEAVING, LEAVING, VANISHING, SLOW, DEAD, NARROW, NOW),
    crowd=(5, 6),
    hosts=(1,),
    copying=(1, 2),
    catching_up=(1,),
    fresh=(1,),
    most=(4, 5, 100),
    kills=(0.0,),
)
# Copies take long, and some do not wait for their turn.
QUEUE = replace(
    LINE,
    clients=(EAGER, IMPATIENT, IMPATIENT, LEAVING),
    crowd=(5,),
    most=(5, 100),
    writing=replace(_WRITING, rows=(20,), xa=(0,), select_seconds=(0.8,), trouble=(16.0,)),
    chunks=(3,),
)
SUBSCRIBERS = Theme(
    (SUBSCRIBER, SUBSCRIBER, RIVAL, ANOTHER, EAGER), hosts=(2,), unacknowledged=(1, 600, 64 << 20)
)
FROM_NOW = Theme((NOW, NOW, NOW_LEAVING, NOW_LEAVING, EAGER, QUIET), exercises=("quiet", "steady"))
SKEW = Theme(
    (ALIGNED, ALIGNED, EAGER),
    crowd=(2, 3),
    hosts=(1,),
    kills=(0.0, 0.0003),
    exercises=("backlog", "absence", "away_in_a_backlog", "steady"),
    lags=(0.0, 6.0),
)
LOST = Theme(
    (EAGER, LEAVING, SLOW, NOW_LEAVING, NARROW),
    breaks=("purge", "reset", "reset"),
    writing=replace(_WRITING, rotations=(4, 20)),
)
# One shard, whose log comes by itself once a client has caught up: in small parts, which end, break off, and come late.
ALONE = Theme(
    (EAGER, EAGER, LEAVING, NOW, SLOW, NARROW, CHOOSY),
    shards=1,
    crowd=(1, 2, 3),
    breaks=("away", "reset"),
    exercises=("steady", "quiet", "absence"),
    writing=replace(_WRITING, rotations=(1, 4, 12), paces=(0.1, 0.3, 0.8)),
)
# Servers are restarted with another base name for their logs, once or twice in a row, while clients follow or are away.
RENAMED = Theme(
    (EAGER, LEAVING, LEAVING, NOW_LEAVING, SLOW),
    breaks=("renamed",) * 4,
    writing=replace(_WRITING, rotations=(1, 4), purges=(0,)),
)
# A seed takes one of these.
THEMES = {
    "shared": SHARED,
    "slowly": SLOWLY,
    "altered": ALTERED,
    "away": AWAY,
    "line": LINE,
    "queue": QUEUE,
    "subscribers": SUBSCRIBERS,
    "from_now": FROM_NOW,
    "skew": SKEW,
    "lost": LOST,
    "alone": ALONE,
}
# These have seeds of their own.
ALL_THEMES = {**THEMES, "renamed": RENAMED}
