"""What a program printed, read: which lines say that something failed, and what identifies the failure."""

# Submodules, imported by whoever needs one: together they would cost every start.
__all__: list[str] = []
