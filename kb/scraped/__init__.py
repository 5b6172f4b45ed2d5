"""Pages in any form: `parse` reads one article, in this project's own form or as it stands on the web.

In go the bytes of a file and its path; out comes an `Article`: records, and a remark for every place that is in none of
them. Articles in our own form are read by `kb.articles`; nothing below `parse` is imported for them. For other pages,
`reader` takes these steps:

    markup    frees the lines of what HTML, wikis and scraping did to them
    code      finds code that has lost its fences; its weights are `code.safetensors`
    blocks    cuts them into blocks: headings, sentences, fences, cells of tables
    features  says what can be seen of each block; `labels` knows the words of headings (`words.json`)
    tagger    says what each block is for: title, symptom, cause, fix, ...; its weights are `tagger.safetensors`
    records   makes issues of tagged blocks; `pairing` where all symptoms stand first and all fixes later
    project   ranks the names on the page, of which one is the project
    explain   tells how each line was read, and which features decided

`scripts/reader` fits the weights on tagged pages and says how well they do.
"""

from kb.scraped.parse import parse, parse_and_tell

__all__ = ["parse", "parse_and_tell"]
