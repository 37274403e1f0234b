"""Values that go on to the loss while their gradient stops: detach, .data, Python and numpy values, copies."""

import pytest

from tests.dataflow.cases import REACHED, Case, check, cut

FIRST = "m.enc.weight"


def two(middle, expected, loss="F.cross_entropy(m(X), Y).backward()"):
    """A model with `middle` between its layers: the first is cut, the second learns."""
    return Case(f"{middle}\nm = Two(middle)\n{loss}", {FIRST: expected, "m.head.weight": REACHED})


CASES = {
    "detach": two(
        """
def middle(h):
    return F.relu(h).detach()  # <-
""",
        cut("detach", "detach", distance=3),
    ),
    "detach_": two(
        """
def middle(h):
    h = h * 2
    h.detach_()  # <-
    return h
""",
        cut("detach", "detach_", distance=3),
    ),
    "the data attribute": two(
        """
def middle(h):
    return F.relu(h).data * 2  # <-
""",
        cut("data", "data"),
    ),
    "data assigned": Case(
        """
m, hyper = Two(F.relu), nn.Linear(4, 4)
m.head.weight.data = hyper(X[:1]).expand(4, 4).clone()  # <-
F.cross_entropy(m(X), Y).backward()
""",
        {"hyper.weight": cut("data", "data="), "m.head.weight": REACHED, FIRST: REACHED},
    ),
    "written into data": two(
        """
def middle(h):
    buffer = torch.zeros(6, 4)
    buffer.data.copy_(h)  # <-
    return buffer + 0
""",
        cut("data"),
    ),
    "item": two(
        """
def middle(h):
    value = h.mean().item()  # <-
    return torch.tensor([[value] * 4] * 6)  # back
""",
        cut("value", "item", distance=3),
    ),
    "float and arithmetic": two(
        """
def middle(h):
    value = float(h.detach().mean())  # <-
    scale = math.exp(value) + 1
    return X * scale
""",
        cut("detach", "detach", inferred=True),
    ),
    "float": two(
        """
def middle(h):
    value = float(h.mean())  # <-
    scale = math.exp(value) + 1
    return X * scale  # back
""",
        cut("value", "float", inferred=True),
    ),
    "math on a tensor": two(
        """
def middle(h):
    return X * math.tanh(h.mean())  # <-
""",
        cut("value", "float", inferred=True),
    ),
    "tolist and a comprehension": two(
        """
def middle(h):
    rows = h.tolist()  # <-
    rows = [[2 * value for value in row] for row in rows]
    return torch.tensor(rows)  # back
""",
        cut("value", "tolist", inferred=True),
    ),
    "tolist as it is": two(
        """
def middle(h):
    return torch.tensor(h.tolist())  # <- back
""",
        cut("value", "tolist"),
    ),
    "rows of tolist": two(
        """
def middle(h):
    kept = []
    for row in h.tolist():  # <-
        kept.append(row)
    return torch.stack([torch.tensor(row) for row in kept])  # back
""",
        cut("value", "tolist"),
    ),
    "a generator of lists": two(
        """
def rows(h):
    for row in h:
        yield row.tolist()  # <-
def middle(h):
    return torch.tensor(list(rows(h)))
""",
        cut("value", "tolist"),
    ),
    "numpy and back": two(
        """
def middle(h):
    values = h.detach().numpy()  # <-
    return torch.from_numpy(values)  # back
""",
        cut("detach", "detach"),
    ),
    "numpy computed with": two(
        """
def middle(h):
    values = h.detach().cpu().numpy()  # <-
    values = np.tanh(values) * 2
    return torch.from_numpy(values)  # back
""",
        cut("detach", "detach", inferred=True),
    ),
    "numpy views": two(
        """
def middle(h):
    values = h.detach().numpy()[:, ::-1]  # <-
    return torch.as_tensor(values[::-1].copy()[:, :]) * 1 + torch.as_tensor(np.flip(values, 0).copy()) * 0
""",
        cut("detach", "detach", inferred=True),
    ),
    "numpy in other functions": two(
        """
def away(t):
    return np.sqrt(np.abs(t.detach().numpy()))  # <-
def home(values):
    return torch.as_tensor(values, dtype=torch.float32)  # back
def middle(h):
    values = away(h)
    values = values + 1
    return home(values)
""",
        cut("detach", "detach", inferred=True),
    ),
    "from_numpy under another name": two(
        """
from torch import from_numpy as home
def middle(h):
    values = h.detach().numpy() * 2  # <-
    z = home(values)
    return z + 1
""",
        cut("detach", "detach", inferred=True),
    ),
    "numpy's function on a tensor": two(
        """
def middle(h):
    return torch.as_tensor(np.tanh(h.detach()))  # <-
""",
        cut("detach", "detach"),
    ),
    "torch.tensor of a tensor": two(
        """
def middle(h):
    return torch.tensor(h)  # <-
""",
        cut("copy", "tensor", distance=2),
    ),
    "torch.tensor of tensors": two(
        """
def middle(h):
    return torch.tensor([[row.mean()] * 4 for row in h])  # <-
""",
        cut("copy", "tensor"),
    ),
    "a fresh leaf": two(
        """
def middle(h):
    return torch.tensor(h, requires_grad=True)  # <-
""",
        cut("copy", "tensor"),
    ),
    "nn.Parameter of a tensor": two(
        """
def middle(h):
    return nn.Parameter(h)  # <-
""",
        cut("copy", "nn.Parameter"),
    ),
    "Variable": two(
        """
def middle(h):
    return torch.autograd.Variable(h.data, requires_grad=True)  # <-
""",
        cut("data", "data"),
    ),
    "Tensor of numbers": Case(
        """
m, head = nn.Linear(4, 4), nn.Linear(1, 4)
value = m(X).mean()
z = torch.Tensor([[value]])  # <-
F.cross_entropy(head(z), Y[:1]).backward()
""",
        {"m.weight": cut("value", "float", inferred=True), "head.weight": REACHED},
    ),
    "FloatTensor of numbers": two(
        """
def middle(h):
    values = [row.mean().item() for row in h]  # <-
    z = torch.FloatTensor([[value] * 4 for value in values])
    return z
""",
        cut("value", "item", inferred=True),
    ),
    "pickled": two(
        """
import pickle
def middle(h):
    return pickle.loads(pickle.dumps(h.detach()))  # <-
""",
        cut("detach", "detach", inferred=True),
    ),
    "deepcopy": two(
        """
def middle(h):
    return copy.deepcopy(h.detach())  # <-
""",
        cut("detach", "detach"),
    ),
    "deepcopy of a module": Case(
        """
source, head = nn.Linear(4, 4), nn.Linear(4, 4)
student = copy.deepcopy(source)  # <-
F.cross_entropy(head(student(X)), Y).backward()
""",
        {"source.weight": cut("copy", "data", within="deepcopy"), "student.weight": REACHED},
    ),
    "a loss made anew": Case(
        """
m = nn.Linear(4, 4)
loss = F.cross_entropy(m(X), Y)
loss = torch.tensor(loss.item(), requires_grad=True)  # <- back
loss.backward()
""",
        {"m.weight": cut("value", "item")},
    ),
    "a detached loss that requires grad": Case(
        """
m = nn.Linear(4, 4)
loss = F.cross_entropy(m(X), Y).detach()  # <-
loss.requires_grad_(True)
loss.backward()
""",
        {"m.weight": cut("detach", "detach")},
    ),
    "a term of the loss as a number": Case(
        """
m = Two(F.relu)
extra = nn.Linear(4, 4)
term = extra(X).pow(2).mean()
loss = F.cross_entropy(m(X), Y) + 0.1 * term.item()  # <- back
loss.backward()
""",
        {"extra.weight": cut("value", "item", inferred=True), FIRST: REACHED},
    ),
    "numbers collected in a list": two(
        """
def middle(h):
    sums = []
    for row in h:
        sums.append(row.sum().item())  # <-
    return X * (sum(sums) / len(sums))  # back
""",
        cut("value", "item", inferred=True),
    ),
    "numbers kept in an attribute": two(
        """
class Memory:
    pass
memory = Memory()
def middle(h):
    memory.means = {"mean": h.mean(0).tolist()}  # <-
    return X * torch.tensor(memory.means["mean"])  # back
""",
        cut("value", "tolist"),
    ),
    "a number computed in one method and used in another": Case(
        """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.probe, self.head = nn.Linear(4, 1), nn.Linear(4, 4)
    def measure(self, x):
        mean = self.probe(x).mean().item()  # <-
        self.scale = 2 * mean + 1
    def forward(self, x):
        self.measure(x)
        return self.head(x * self.scale)  # back
m = Scaled()
F.cross_entropy(m(X), Y).backward()
""",
        {"m.probe.weight": cut("value", "item", inferred=True), "m.head.weight": REACHED},
    ),
    "a number that came back equal": two(
        """
import json
def middle(h):
    text = json.dumps({"mean": h.mean().item()})  # <-
    return X * store(text)
def store(text):
    return json.loads(text)["mean"]
""",
        cut("value", "item", inferred=True),
    ),
    "an index as a number": Case(
        """
scorer, bank = nn.Linear(4, 1), nn.Embedding(6, 4)
best = scorer(X).argmax().item()  # <-
F.cross_entropy(bank.weight[best][None], Y[:1]).backward()
""",
        {"scorer.weight": cut("nondifferentiable", "argmax", inferred=True), "bank.weight": REACHED},
    ),
    "out=": two(
        """
def middle(h):
    buffer = torch.empty(6, 4)
    torch.mul(h.detach(), 2, out=buffer)  # <-
    return buffer
""",
        cut("detach", "detach"),
    ),
    "rows written one by one": two(
        """
def middle(h):
    buffer = torch.zeros(6, 4)
    for i in range(6):
        buffer[i] = h[i].data  # <-
    return buffer
""",
        cut("data", "data"),
    ),
    "two cuts": two(
        """
def middle(h):
    a = h.detach()  # <-
    b = h.argmax(-1)  # <-
    return a + b[:, None]
""",
        cut("detach", "detach"),
    ),
    "logging beside the cut is not blamed": two(
        """
def middle(h):
    _ = h.mean().item()
    _ = h.detach().numpy().mean()
    z = h.detach()  # <-
    return z * 1.0
""",
        cut("detach", "detach"),
    ),
    "a dataclass": two(
        """
from dataclasses import dataclass
@dataclass
class Output:
    h: torch.Tensor
def middle(h):
    return Output(h.detach()).h  # <-
""",
        cut("detach", "detach"),
    ),
    "kept in an object": two(
        """
class Memory:
    def put(self, h):
        self.h = h.detach()  # <-
memory = Memory()
def middle(h):
    memory.put(h)
    return memory.h
""",
        cut("detach", "detach"),
    ),
    "a gradient as a value": Case(
        """
m, w = nn.Linear(4, 1), nn.Parameter(torch.ones(4))
x = X.clone().requires_grad_(True)
(gradient,) = torch.autograd.grad(m(x).sum(), x)  # <-
((gradient * w) ** 2).sum().backward()
""",
        {"m.weight": cut("first-order", "autograd.grad"), "w": REACHED},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_cut_is_named(tmp_path, name):
    check(CASES[name], tmp_path / "program.py")
