"""From a question to the nearest issues, each with a confidence, and what the base says of them.

In: pasted text and an opened store. Out: a `kb.records.SearchResult`.

    searcher   one opened snapshot and its encoder; `Searcher.search`
    features   the candidates for a question and their features
    terms      how much each term of a question says
    ranking    from features to a score
    front      the vectors of the terms of records, each once
    evidence   what speaks for and against the first few, looked at closely
    verdict    from evidence to a confidence: known, likely or unknown
    same       do records of different bases tell the same fault?
    explain    the same for the output of a command that failed

weights.json holds the fitted weights of ranking and evidence.

Nothing is imported here: numpy costs a start 80 ms, and `kb --help` needs none of it.
"""

__all__: list[str] = []
