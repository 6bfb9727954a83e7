"""Mistakes planted in the product, each with the test that finds it: so a proof is known to be able to fail."""
