"""Reviews a folder of articles: in comes its path, out come problems (`review`) or counts (`tally`).

lint    runs the rules that count
rules   the table of all rules: name, words, where each counts
pages   the articles as rules see them
files   rules about a file       form    about an issue
twins   about translations       among   about all articles together
tally   counts
drafts  what a reviewer decides about a draft; it alone writes, in `keep`       words   what `kb review` says
"""

# Submodules, imported by whoever needs one: together they would cost every start.
__all__: list[str] = []
