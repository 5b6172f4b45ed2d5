"""Pages in any form: `parse` reads one article, in this project's own form or as it stands on the web.

In go the bytes of a file and its path; out comes an `Article`: records, and a remark for every place that is in none of
them. Articles in our own form are read by `kb.articles`; nothing below `parse` is imported for them. For other pages,
`reader` runs these passes:

    repair       removes what HTML and scraping did to the lines
    boilerplate  marks the lines of the web page around the article
    shapes       names unknown labels that repeat from entry to entry
    sections     cuts the lines at headings, labels, questions, table rows; uses `headings`, `numbered`, `tables`
    tree         nests the sections
    issues       finds the issues among the sections; uses `pairing`
    fields       fills symptom, cause and fix; uses `sorting`, `replies`
    labels       the role of a heading; its words are in `vocabulary` and `phrases`
    prose        the kind of a sentence: problem, cause, action
    project      guesses the project of a page that states none; the known names are in `products`
"""

from kb.scraped.parse import parse

__all__ = ["parse"]
