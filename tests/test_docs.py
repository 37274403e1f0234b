"""The documents agree with the code, and with each other."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

import whygrad
from docs import generate
from whygrad.rules import all_rules
from whygrad.runfile import schema

ROOT = generate.ROOT
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "tests/corpus/README.md"])


def test_no_generated_page_is_out_of_date():
    assert generate.outdated() == [], "run `make docs`"


def test_a_page_that_was_edited_lost_or_orphaned_is_out_of_date(tmp_path):
    (tmp_path / "docs/rules").mkdir(parents=True)
    (tmp_path / "README.md").write_text("<!-- generated: rules -->\n<!-- end -->\n", encoding="utf-8")
    generate.write(tmp_path)
    assert generate.outdated(tmp_path) == []

    (tmp_path / "docs/run-file.md").write_text("edited", encoding="utf-8")
    (tmp_path / "docs/rules/index.md").unlink()
    (tmp_path / "docs/rules/no-such-rule.md").write_text("orphan", encoding="utf-8")
    late = generate.outdated(tmp_path)
    generate.write(tmp_path)

    assert [str(path) for path in late] == ["docs/rules/index.md", "docs/rules/no-such-rule.md", "docs/run-file.md"]
    assert generate.outdated(tmp_path) == []


def test_a_block_is_filled_between_its_marks():
    text = "a\n<!-- generated: one -->\nold\n\nold\n<!-- end -->\nb\n<!-- generated: two by hand -->\n<!-- end -->\n"

    filled = generate.fill(text, {"one": r"new \1", "two": "| x |"})

    assert filled == (
        "a\n<!-- generated: one -->\nnew \\1\n<!-- end -->\nb\n<!-- generated: two by hand -->\n| x |\n<!-- end -->\n"
    )
    assert generate.fill(filled, {"one": r"new \1", "two": "| x |"}) == filled


def test_a_block_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="'three', found 0"):
        generate.fill("<!-- generated: one -->\n<!-- end -->\n", {"three": ""})


def test_every_table_of_the_run_file_is_described():
    connection = sqlite3.connect(":memory:")
    connection.executescript(schema.DDL)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    connection.close()

    described = re.findall(r"^## `(\w+)`\n\n\w", generate.run_file_page(), flags=re.MULTILINE)

    assert tables
    assert sorted(described) == sorted(tables)


def test_comments_before_a_table_become_prose_and_those_inside_stay():
    section = generate.ddl_section(
        "-- Lines of\n-- the program.\nCREATE TABLE place (\n    id INTEGER  -- its number\n);"
    )

    assert section == (
        "## `place`\n\nLines of the program.\n\n```sql\nCREATE TABLE place (\n    id INTEGER  -- its number\n);\n```"
    )


def test_every_rule_has_a_page_that_names_its_source():
    pages = generate.pages()

    for slug, rule in all_rules().items():
        page = pages[Path(f"docs/rules/{slug}.md")]
        assert rule.page in page
        assert (ROOT / generate.rule_source(rule)).exists()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(document):
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    broken = [target for target in targets if "://" not in target and not (document.parent / target).exists()]

    assert not broken


def test_the_changelog_has_an_entry_for_this_version():
    assert f"## {whygrad.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
