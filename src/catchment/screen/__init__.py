"""What a person sees of a run and of a comparison."""
