"""How the suite runs: which test belongs to which tier and slice, in which order, with which seed (docs/testing.md)."""
