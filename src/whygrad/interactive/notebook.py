"""How texts of whygrad look in a notebook."""

from __future__ import annotations

import html
import re

MimeBundle = dict[str, str]  # MIME type -> text: what Jupyter shows, by what its frontend can

_CODE = re.compile(r"`([^`]+)`")


def mime_bundle(text: str) -> MimeBundle:
    """Return a text whose first line is a summary as plain text and as escaped HTML."""
    summary, *sentences = text.splitlines()
    lines = [f"<div><code>{html.escape(summary)}</code></div>"]
    lines += [f"<div>{_marked_up(sentence.strip())}</div>" for sentence in sentences]
    return {"text/plain": text, "text/html": "\n".join(lines)}


def _marked_up(sentence: str) -> str:
    return _CODE.sub(r"<code>\1</code>", html.escape(sentence))
