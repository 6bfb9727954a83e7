"""A stream's events as lines of text: for people, as JSON, and in Debezium's envelope."""
