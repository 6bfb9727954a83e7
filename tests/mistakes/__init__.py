"""Mistakes planted in the product, each with the test that finds it: proofs that the proofs can fail (docs/testing.md)."""
