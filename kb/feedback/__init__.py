"""What people say of the answers, and what they asked that the base does not know.

In: questions, answers, and who said "this helped" or "did not fit". Out: confidences that the voices have moved a
little, and the gaps in the base. All of it is kept in one file (sqlite), apart from articles and index: without that
file everything is as if nobody had said anything.

    gist      what is kept of a question: its telling lines, masked
    store     the file: votes and misses
    voices    how far the votes of many persons move a confidence
    gaps      what was asked and not known, put together
    told      a vote, and a question that was not known, as every door hands them over
    place     which file that is

Nothing is imported here: a search without such a file needs none of it.
"""

__all__: list[str] = []
