"""The state store: plan, manifest, commit, lease and journal of a feed."""
