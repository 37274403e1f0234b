"""Reading from the source which statements may have made a value."""

import textwrap

import pytest

from whygrad.probe.dataflow.slices import escapes, feeds, names_at
from whygrad.probe.source import Site

FROM, TO = "leaves(", "enters("


def sites(text, path):
    """The positions of the calls of `leaves` and `enters` in a text, as a running program has them."""
    path.write_text(textwrap.dedent(text))
    found = {}

    def visit(code):
        for index, (line, _, column, end) in enumerate(code.co_positions()):
            if line and column is not None and end:
                called = path.read_text().splitlines()[line - 1][column:end]
                for name in (FROM, TO):
                    if called.startswith(name) and called.endswith(")"):
                        found[name] = Site(code, 2 * index)
        for constant in code.co_consts:
            if hasattr(constant, "co_code"):
                visit(constant)

    visit(compile(path.read_text(), str(path), "exec"))
    return found[FROM], found[TO]


FEEDING = {
    "an assignment": "v = leaves(h)\nenters(v)",
    "a chain of them": "v = leaves(h)\nw = v * 2\nu = [w]\nenters(u[0] + 1)",
    "the expression itself": "enters(leaves(h) * 2)",
    "a list that is filled": "kept = []\nkept.append(leaves(h))\nenters(sum(kept))",
    "a dict": "kept = {}\nkept['a'] = leaves(h)\nenters(kept['a'])",
    "an unpacked tuple": "a, *b = leaves(h)\nenters(b)",
    "an attribute": "box.value = leaves(h)\nenters(box.value)",
    "a loop": "total = 0\nfor x in xs:\n    total += leaves(x)\nenters(total)",
    "a loop over it": "for v in leaves(h):\n    enters(v)",
    "a comprehension": "vs = [leaves(x) for x in xs]\nenters(vs)",
    "inside a comprehension": "vs = leaves(h)\nz = [enters(v) for v in vs]",
    "a walrus": "if (v := leaves(h)) > 0:\n    enters(v)",
    "an annotation": "v: float = leaves(h)\nenters(v)",
    "a with statement": "with leaves(h) as v:\n    enters(v)",
    "an augmented assignment": "v = leaves(h)\nw = 1\nw *= v\nenters(w)",
    "a function's own names": "def f(h):\n    v = leaves(h)\n    return enters(v)",
    "an attribute set by another method": """
        class A:
            def measure(self, h):
                v = leaves(h)
                self.scale = v + 1
            def forward(self, x):
                return enters(x * self.scale)
        """,
}
NOT_FEEDING = {
    "another name": "v = leaves(h)\nenters(w)",
    "the same name in two comprehensions": "a = [x for x in leaves(h)]\nb = [enters(x) for x in xs]",
    "the same name in two functions": "def f(h):\n    v = leaves(h)\ndef g(v):\n    enters(v)",
    "a local of another method": """
        class A:
            def measure(self, h):
                v = leaves(h)
            def forward(self, v):
                return enters(v)
        """,
    "a method that fills nothing": "bar.set_postfix(a=leaves(h))\nenters(bar)",
    "a call beside it": "f(leaves(h), 1)\nenters(f)",
}


@pytest.mark.parametrize("kind", FEEDING)
def test_a_value_is_followed(tmp_path, kind):
    source, target = sites(FEEDING[kind], tmp_path / "text.py")

    assert feeds(source, target)


@pytest.mark.parametrize("kind", NOT_FEEDING)
def test_another_value_is_not_taken_for_it(tmp_path, kind):
    source, target = sites(NOT_FEEDING[kind], tmp_path / "text.py")

    assert not feeds(source, target)


def test_the_names_that_hold_the_value_can_be_given(tmp_path):
    source, target = sites("a = leaves(h)\nenters(a, b)", tmp_path / "text.py")

    assert names_at(target) == {"enters", "a", "b"}
    assert feeds(source, target, frozenset({"a"}))
    assert not feeds(source, target, frozenset({"b"}))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return leaves(h)", True),
        ("v = leaves(h)\n    w = v + 1\n    return [w]", True),
        ("yield leaves(h)", True),
        ("store.append(leaves(h))", True),
        ("print(leaves(h))\n    return h", False),
        ("v = leaves(h)\n    return h", False),
        ("self.log.append(leaves(h))\n    return h", False),
    ],
)
def test_whether_a_value_leaves_its_function(tmp_path, body, expected):
    source, _ = sites(f"def f(self, h, store):\n    {body}\nenters(1)", tmp_path / "text.py")

    assert escapes(source) is expected


def test_no_source_no_link(tmp_path):
    source, target = sites("v = leaves(h)\nenters(v)", tmp_path / "text.py")
    (tmp_path / "other.py").write_text("")
    elsewhere = Site(compile("v = 1", str(tmp_path / "other.py"), "exec"), 0)
    nowhere = Site(compile("v = 1", "<string>", "exec"), 0)

    assert not feeds(source, elsewhere)
    assert not feeds(nowhere, target)
    assert not feeds(nowhere, nowhere)
