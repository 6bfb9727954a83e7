"""Names of the columns that rows have beside those of their table, on the way from a shard to the lake.

Each ends with a space. No server takes such a name for a column (error 1166; seen: MariaDB 10.11, MySQL 8.0), and the
log's decoder refuses it. So no column of a table can ever have one of these names.
"""

SIDE, OP, SEQ, GROUP = "side ", "op ", "seq ", "group "  # of an image (wire/log/decoder.pyi)
DELETED = "deleted "  # of a state (rewind/states.py)
CHANGE = "change "  # of an image that a reader of the source gets (rewind/change_types.py)

INTERNAL = (SIDE, OP, SEQ, GROUP)

# Values of OP. UNCHECKED is added to each where the session had foreign_key_checks=0.
INSERT, DELETE, UPDATE = 0, 1, 2
UNCHECKED = 4
