"""For the site's reference: the first paragraph of an attribute's docstring, on one line.

Tables of settings show the first line alone, which would end in the middle of a sentence.
"""

from __future__ import annotations

from typing import Any

import griffe


class WholeSentences(griffe.Extension):
    """Joins the lines of the first paragraph of every attribute's docstring."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Is called for each attribute that is found."""
        if attr.docstring is not None:
            first, *others = attr.docstring.value.split("\n\n", 1)
            attr.docstring.value = "\n\n".join([" ".join(first.split()), *others])
