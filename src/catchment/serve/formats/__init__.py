"""A stream's events as lines of text: for people, as JSON, in Debezium's envelope; and as files of Avro's."""
