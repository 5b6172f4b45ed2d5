"""A question and an open index; the issues that are nearest, each with a score and a confidence."""

# Submodules, imported by whoever needs one: together they would cost every start.
__all__: list[str] = []
