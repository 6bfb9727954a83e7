"""All planted mistakes, by the part of the product that they are in."""

from tests.mistakes.planted import Mistake

MISTAKES: tuple[Mistake, ...] = ()
