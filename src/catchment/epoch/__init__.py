"""What an epoch is: chain, seal, XA, the work that it asks for, and receipts added up to a manifest. Pure."""
