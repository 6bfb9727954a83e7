"""The stream API over the network: gRPC with TLS, a token for each feed, and clear ends."""
