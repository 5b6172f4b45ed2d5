"""The index in a folder: made from articles, committed in one step, found, opened, followed and checked."""

# Submodules, imported by whoever needs one: together they would cost every start.
__all__: list[str] = []
