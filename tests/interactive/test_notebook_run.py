"""In a real notebook: what `watch`, a run, a finding and `explain` show, as HTML and as text."""

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = [
    """
import torch, whygrad
from torch import nn
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
with whygrad.watch(model) as watching:
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
watching
""",
    "watching.run",
    "watching.run.findings[0]",
    "whygrad.explain(model[0].weight)",
    "import json; json.dumps(sorted(watching.run.table()))",
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    folder = tmp_path_factory.mktemp("notebook")
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell.outputs[-1]["data"] for cell in notebook.cells]


def test_a_watch_and_its_run_show_the_verdict(outputs):
    for shown in outputs[:2]:
        assert "2 of 4 parameters do not learn" in shown["text/html"]
        assert "not-in-optimizer" in shown["text/html"]
        assert "not-in-optimizer" in shown["text/plain"]


def test_a_finding_shows_its_message_and_its_fix(outputs):
    assert "<b>error not-in-optimizer</b>" in outputs[2]["text/html"]
    assert "<b>fix</b>" in outputs[2]["text/html"]


def test_an_explanation_is_text_and_html(outputs):
    assert "leaf" in outputs[3]["text/plain"]
    assert "leaf" in outputs[3]["text/html"]


def test_the_table_is_a_dict_of_lists(outputs):
    assert "mean_abs" in outputs[4]["text/plain"]
