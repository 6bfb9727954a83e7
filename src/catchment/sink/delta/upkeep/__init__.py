"""What a lake needs beside the feed: its tables settled, its files joined, and what nobody needs removed."""
