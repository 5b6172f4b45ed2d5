"""What a reviewer of articles would send back."""

# Submodules, imported by whoever needs one: together they would cost every start.
__all__: list[str] = []
