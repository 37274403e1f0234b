"""The examples of a rule's page."""

import re


def examples(rule):
    """Return the sources of the page's examples by kind, "bad" and "good".

    Raises:
        ValueError: There are two of one kind.
    """
    found = re.findall(r"^```python (\w+)\n(.*?)^```$", rule.page, flags=re.MULTILINE | re.DOTALL)
    if len(dict(found)) < len(found):
        msg = f"{rule.slug}: two examples of one kind"
        raise ValueError(msg)
    return dict(found)


def marked_lines(source, slug):
    """Return the numbers of the lines that end with the comment `# slug`."""
    return [number for number, text in enumerate(source.splitlines(), 1) if text.rstrip().endswith(f"# {slug}")]
