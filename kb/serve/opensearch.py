"""`/opensearch.xml`: by this a browser offers kb as a search engine, and a word in its address bar asks it.

The format is OpenSearch 1.1 (https://github.com/dewitt/opensearch).
"""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, tostring

from starlette.requests import Request
from starlette.responses import Response

from kb.serve.routes import NOT_KEPT, Table, origin

__all__ = ["table"]

_SPACE = "http://a9.com/-/spec/opensearch/1.1/"


def table() -> Table:
    async def describe(request: Request) -> Response:
        described = Element("OpenSearchDescription", {"xmlns": _SPACE})
        for name, text in (
            ("ShortName", "kb"),
            ("Description", "Known issues, their causes and fixes · 已知问题、原因与解决办法"),
            ("InputEncoding", "UTF-8"),
        ):
            SubElement(described, name).text = text
        image = {"height": "16", "width": "16", "type": "image/svg+xml"}
        SubElement(described, "Image", image).text = f"{origin(request)}/kb.svg"
        template = {"type": "text/html", "template": f"{origin(request)}/#/?q={{searchTerms}}"}
        SubElement(described, "Url", template)
        body: bytes = tostring(described, encoding="utf-8", xml_declaration=True)
        return Response(body, headers=NOT_KEPT, media_type="application/opensearchdescription+xml")

    return Table({"/opensearch.xml": {"GET": describe}})
