"""Random rows of the demo's tables: NULLs, empty and full texts, extreme numbers and dates."""

import random
from datetime import date, datetime, timedelta
from decimal import Decimal

# spellings that utf8mb4_unicode_ci takes for one another (case, accent, trailing blank) are different bytes
SPELLINGS = ("ada {}", "ADA {}", "Ada {}", "Adá {}", "ada {} ", "李 {}", "😀 {}")
SKUS = ("a", "A", "b-1", "b-10", "b-2", "", "z" * 24)
_START = datetime(2026, 1, 1)


def _maybe(value: object, rng: random.Random) -> object:
    return None if rng.random() < 0.25 else value


def _decimal(digits: int, scale: int, rng: random.Random) -> Decimal:
    """Any size from one digit to all of them, either sign."""
    size = rng.randint(1, digits)
    return Decimal(rng.randint(-(10**size) + 1, 10**size - 1)).scaleb(-scale)


def _moment(rng: random.Random) -> datetime:
    return _START + timedelta(microseconds=rng.randrange(10**14))


def order(key: int, rng: random.Random) -> tuple[object, ...]:
    """A row of `orders`."""
    return (
        key,
        rng.choice(("Ada", "", "naïve ☃", "x" * 60)),
        _decimal(12, 2, rng),
        _maybe(_decimal(5, 4, rng), rng),
        _maybe("é" * rng.randrange(300), rng),
        rng.randrange(256),
        _moment(rng),
        _maybe(date(1900, 1, 1) + timedelta(days=rng.randrange(90_000)), rng),
    )


def item(key: int, rng: random.Random) -> tuple[object, ...]:
    """A row of `items`."""
    label = _maybe(rng.choice(("", "a", "naïve", "twelve chars")), rng)
    quantity = rng.randint(-(2**31), 2**31 - 10**6)
    return (key, rng.choice(SKUS), quantity, _maybe(_decimal(10, 3, rng), rng), label)


def person(name: str, rng: random.Random) -> tuple[object, ...]:
    """A row of `people`."""
    city = _maybe(rng.choice(("Zürich", "", "東京")), rng)
    rating = _maybe(rng.choice((0.1, -1e300, 5e-324, rng.random())), rng)
    return (name, city, _decimal(14, 2, rng), rating, _maybe(_moment(rng), rng))
