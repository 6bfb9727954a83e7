"""Messages of the network, and what is published of them."""
