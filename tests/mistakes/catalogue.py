"""All planted mistakes, by the part of the product that they are in."""

from tests.mistakes.of_epochs import OF_EPOCHS
from tests.mistakes.of_erasure import OF_ERASURE
from tests.mistakes.of_lake import OF_LAKE
from tests.mistakes.of_operations import OF_OPERATIONS
from tests.mistakes.of_streams import OF_STREAMS
from tests.mistakes.of_tables import OF_TABLES
from tests.mistakes.of_verify import OF_VERIFY
from tests.mistakes.planted import Mistake

MISTAKES: tuple[Mistake, ...] = (
    *OF_EPOCHS,
    *OF_TABLES,
    *OF_LAKE,
    *OF_ERASURE,
    *OF_VERIFY,
    *OF_OPERATIONS,
    *OF_STREAMS,
)
