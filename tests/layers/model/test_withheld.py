"""What rules hid of a table's columns, and whether other columns may show it."""

from catchment.model.column_rule import ColumnRule, Masking
from catchment.model.withheld import Withheld, withheld_among

RULES = (
    ColumnRule("email", masking=Masking.HMAC), ColumnRule("secret*", excluded=True), ColumnRule("c", name="tier"),
)  # fmt: skip


def test_another_name_does_not_show_what_was_hidden() -> None:
    withheld = withheld_among(["id", "Email", "c"], RULES)
    assert withheld == Withheld(("Email",), ("id", "Email", "c"))
    assert withheld.shown_by(["id", "EMAIL", "c", "n"], RULES) == ([], ["n"])
    assert withheld.shown_by(["id", "mail", "c"], RULES) == (["Email"], ["mail"])
    assert withheld.shown_by(["id", "secret_mail", "c"], RULES) == (["Email"], [])
    assert withheld.shown_by(["ID", "c"], RULES) == (["Email"], [])


def test_without_rules_that_hide_nothing_is_noted() -> None:
    assert withheld_among(["id", "c"], RULES) == Withheld()
    assert Withheld().shown_by(["id", "n"], RULES)[0] == []
