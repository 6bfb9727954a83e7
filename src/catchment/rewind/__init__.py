"""Bring rows to an epoch: net changes, chunks rewound, states compared. Pure."""
