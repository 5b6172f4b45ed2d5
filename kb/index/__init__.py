"""The index: made from articles, kept in a folder, found, opened and followed.

In: a folder of articles. Out: an opened store (`store.Store`), which names candidates and gives records, vectors and
term weights; what they are worth is decided in `kb.search`.

    build      articles -> a published index; takes over what did not change
    passages   which texts of a record are encoded and indexed
    twins      which issues of an English and a Chinese article are the same
    faults     which issues tell the same fault
    bm25       term weights
    snapshot   commits files to a folder in one step; lock, manifest, checksums
    store      the seam: what a store must do
    batch      what a build hands to a store
    header     what of an index is read at once: rows, terms
    faiss      the store in a folder: vectors searched by FAISS, terms by postings
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
