"""What a program printed, read: which lines say that something failed, and what identifies the failure.

In: a line, a pasted text, the sentences of a page, or the bytes of a log. Out: the kind of a line, a `Query`, error
lines, or the fingerprints that match a line. Everything works on text alone, in time linear in it.

    classify      the kind of a line: failure, warning, frame, progress ...; the only place that decides this
    levels        the part of it that needs a log: levels, processes, programs that go on, words of suspicion
    prefix        rank, worker, time and level in front of a message: taken off
    variables     the parts of a line that differ between two runs: masked
    codes         exit codes, Xid, CANN, InfiniBand, CUDA and HTTP codes of a text, and whether two texts contradict
    quantities    the named numbers of known messages: memory, the number of a collective, sizes of tensors
    conditions    what an article demands of these: `unallocated >= 0.5 GiB`
    structured    logs of JSON objects -> the lines that a plain log would have
    read          a pasted question or log -> `Query`: signatures, prose, context
    errors        the error lines that a page quotes, in a fence or inside a sentence
    fingerprints  error lines as runs of words, and what a word weighs
    lines         bytes of a log in pieces -> whole lines as text
    unpack        a packed log -> its bytes in pieces

Import from these modules: the package itself loads none of them, because a search needs only some of them.
"""

__all__: list[str] = []
