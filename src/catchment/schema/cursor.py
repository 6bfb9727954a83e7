"""A place in the words of a statement, moved on by what stands there. Pure."""

from collections.abc import Collection, Sequence

from catchment.schema.statement import AmbiguousText, Word

_MARKS = frozenset("!\"#%&'()*+,-./:;<=>?@[]^{|}~")


class Untold(AmbiguousText):
    """What a clause leads to is not known for certain."""


class Cursor:
    """The words of a clause, and the place up to which they were read."""

    def __init__(self, words: Sequence[Word]) -> None:
        self._words = words
        self._keywords = [word.keyword for word in words]
        self._at = 0

    @property
    def ended(self) -> bool:
        """Whether every word was read."""
        return self._at >= len(self._words)

    @property
    def rest(self) -> Sequence[Word]:
        """The words that were not read yet."""
        return self._words[self._at :]

    def sees(self, *keywords: str) -> bool:
        """Whether these keywords come next."""
        return self._keywords[self._at : self._at + len(keywords)] == list(keywords)

    def took(self, *keywords: str) -> bool:
        """Whether these keywords come next, which are read then."""
        found = self.sees(*keywords)
        self._at += len(keywords) if found else 0
        return found

    def took_one(self, *keywords: str) -> str:
        """The one of these keywords that comes next, which is read then; empty where none does."""
        found = next((keyword for keyword in keywords if self.sees(keyword)), "")
        self._at += bool(found)
        return found

    def took_named(self, names: Collection[str]) -> bool:
        """Whether one of these names comes next, bare or in quotes, in any case, which is read then."""
        word = Word("") if self.ended else self._words[self._at]
        found = word.quote != "'" and word.text.upper() in names
        self._at += found
        return found

    def must(self, *keywords: str) -> None:
        """Read these keywords. Raises Untold where something else comes."""
        if not self.took(*keywords):
            raise Untold(f"{' '.join(keywords)} does not come where it should")

    def word(self) -> Word:
        """The next word, which is read. Raises Untold at the end."""
        if self.ended:
            raise Untold("the statement ends too early")
        self._at += 1
        return self._words[self._at - 1]

    def name(self) -> str:
        """The name that comes next, which is read. Raises Untold where none does."""
        word = self.word()
        if word.quote == "'" or word.keyword in _MARKS:
            raise Untold(f"{word.sql} is no name")
        return word.text

    def name_or_text(self) -> str:
        """The name or the string that comes next, which is read. Raises Untold where none does."""
        return self.text() if self.sees_text else self.name()

    def names_table(self) -> None:
        """Read `name` or `schema.name`. Raises Untold where none comes."""
        self.took(".")
        self.name()
        while self.took("."):
            self.name()

    @property
    def sees_text(self) -> bool:
        """Whether a string comes next."""
        return not self.ended and self._words[self._at].quote == "'"

    def text(self) -> str:
        """The string that comes next, which is read. Raises Untold where none does, or another one follows: servers
        join the two."""
        if not self.sees_text:
            raise Untold("no text comes where one should")
        text = self.word().text
        if self.sees_text:
            raise Untold("a text has two parts")
        return text

    def parenthesis(self) -> Sequence[Word]:
        """What stands in the parenthesis that comes next, which is read. Raises Untold where none does."""
        self.must("(")
        start, depth = self._at, 1
        while depth:
            keyword = self.word().keyword
            depth += (keyword == "(") - (keyword == ")")
        return self._words[start : self._at - 1]
