"""A server of streams in the simulator's world: its hub, its subscribers and the streams themselves are the product's.

The network between clients and servers, the clients, and the judges of what they receive are the simulator's.
"""
