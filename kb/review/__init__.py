"""Reviews a folder of articles: in comes its path, out come problems (`review`) or counts (`tally`). Changes nothing.

lint   one function for each kind of problem: missing sections, dead links, translations that differ, duplicates
"""

# Submodules, imported by whoever needs one: together they would cost every start.
__all__: list[str] = []
