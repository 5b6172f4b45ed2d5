"""A base in Milvus: the engine searches, filters and keeps the records of many machines' readers.

In: an address (`milvus://host:19530/base`) and a published index folder. Out: a store that answers as the one in the
folder does, with the same numbers.

    address    what an address says, and the token for it
    engine     the connection; the only module that imports pymilvus
    layout     collections, fields and names; bytes as the engine can keep them
    publish    an index folder -> new collections, then one switch of an alias
    store      what an alias names, opened (`kb.index.store.Store`)
"""

__all__: list[str] = []
