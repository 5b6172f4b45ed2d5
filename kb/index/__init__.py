"""The index: made from articles, kept in a folder, found, opened and followed.

In: a folder of articles. Out: an opened store (`store.Store`), which names candidates and gives records, vectors and
term weights; what they are worth is decided in `kb.search`.

    build      articles -> a published index; takes over what did not change
    intake     articles -> chunks of what an index keeps of them; processes: in several of them
    chunk      what some articles contribute
    passages   which texts of a record are encoded and indexed
    profile    what a record says, field by field
    twins      which issues of an English and a Chinese article are the same
    faults     which issues tell the same fault; same: across segments
    writer     chunks -> a segment; invert: their terms -> postings
    pieces     the segments that a build has in hand: which are joined, what an interrupted build left
    interrupts a signal waits until a segment is written
    hashes     which articles changed, without reading them
    snapshot   commits files to a folder in one step; lock, manifest, checksums
    store      the seam: what a store must do
    faiss      the store in a folder; segment: one set of its files; mapped, parts: how they are read
    header     what each row is, and what is known of a term
    vectors    the nearest by vector, exactly or by a FAISS index that proposes
    lexicon    terms, postings and what they weigh (bm25, maxscore, rank)
    prints     what lines of logs are recognised by
    encoded    which encoder made an index, and is it this one?
    locate     which base is meant here; trust: may it answer?
    user       the user's cache and settings folders
    cache      indexes of articles that have none of their own
    names      ids and projects of an index, cheaply, for completion
    follow     a reader moves to the newest snapshot
    fsck       checks an index, repairs nothing

Nothing is imported here: each module costs a start something, and a search needs only a few.
"""

__all__: list[str] = []
