"""All other ways a path can end."""

import pytest

from tests.dataflow.cases import REACHED, UNUSED, Case, check, cut, ends

CASES = {
    "never used": Case(
        """
m, spare = Two(F.relu), nn.Linear(4, 4)
F.cross_entropy(m(X), Y).backward()
""",
        {"spare.weight": UNUSED, "m.enc.weight": REACHED},
    ),
    "only saved, copied and logged": Case(
        """
m, spare = Two(F.relu), nn.Linear(4, 4)
kept = spare.state_dict()
twin = copy.deepcopy(spare)
print(end=f"{spare.weight.detach().norm().item():.3f}"[:0])
print(end=str(spare.weight.norm())[:0])
total = sum(p.numel() for p in spare.parameters())
F.cross_entropy(m(X), Y).backward()
""",
        {"spare.weight": UNUSED, "spare.bias": UNUSED},
    ),
    "initialised only": Case(
        """
m, spare = Two(F.relu), nn.Linear(4, 4)
nn.init.xavier_uniform_(spare.weight)
with torch.no_grad():
    spare.bias.zero_()
    spare.weight.mul_(2).clamp_(-1, 1)
F.cross_entropy(m(X), Y).backward()
""",
        {"spare.weight": UNUSED, "spare.bias": UNUSED},
    ),
    "an output that nobody takes": Case(
        """
m = Two(F.relu)
extra = m.enc(X).tanh()
other = nn.Linear(4, 4)
aux = other(X).sigmoid()  # <-
F.cross_entropy(m(X), Y).backward()
""",
        {"other.weight": ends("ignored", "sigmoid")},
    ),
    "an output that is only logged": Case(
        """
m, other = Two(F.relu), nn.Linear(4, 4)
aux = other(X).pow(2).mean()
print(end=f"{aux.item():.2f}"[:0])  # <-
F.cross_entropy(m(X), Y).backward()
""",
        {"other.weight": ends("ignored", "item")},
    ),
    "an output that only decides": Case(
        """
m, gate = Two(F.relu), nn.Linear(4, 1)
loss = F.cross_entropy(m(X), Y)
if gate(X).mean() > 1e9:  # <-
    loss = loss * 2
loss.backward()
""",
        {"gate.weight": cut("nondifferentiable", "gt", inferred=True)},
    ),
    "a number of repetitions": Case(
        """
m, gate = Two(F.relu), nn.Linear(4, 1)
n = int(gate(X).sigmoid().mean() * 4) + 1  # <-
h = X
for _ in range(n):
    h = h * 1.1
F.cross_entropy(m(h), Y).backward()
""",
        {"gate.weight": cut("value", "int", inferred=True)},
    ),
    "a second loss": Case(
        """
m, other = Two(F.relu), nn.Linear(4, 4)
first = F.cross_entropy(m(X), Y)
second = F.mse_loss(other(X), X)  # <-
first.backward()
""",
        {"other.weight": ends("ignored", "mse_loss"), "m.enc.weight": REACHED},
    ),
    "one output of two": Case(
        """
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 4)
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})
    def forward(self, x):
        h = self.trunk(x).relu()
        return {key: head(h) for key, head in self.heads.items()}  # <-
m = Heads()
out = m(X)
F.cross_entropy(out["a"], Y).backward()
""",
        {"m.heads['b'].weight": ends("ignored", "linear"), "m.trunk.weight": REACHED},
    ),
    "logged, and an unrelated number in the loss": Case(
        """
m, other = Two(F.relu), nn.Linear(4, 4)
log = []
log.append(other(X).pow(2).mean().item())  # <-
w = 0.5
(F.cross_entropy(m(X), Y) * w).backward()
""",
        {"other.weight": ends("ignored", "item")},
    ),
    "logged where the loss is computed": Case(
        """
class Logging(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.aux, self.log = nn.Linear(4, 4), nn.Linear(4, 4), []
    def forward(self, x):
        self.log.append(self.aux(x).mean().item())  # <-
        return self.lin(x)
m = Logging()
F.cross_entropy(m(X), Y, label_smoothing=0.1).backward()
""",
        {"m.aux.weight": ends("ignored", "item"), "m.lin.weight": REACHED},
    ),
    "logged through the loop's own bar": Case(
        """
class Bar(list):
    def set_postfix(self, **values):
        self.values = values
m, aux = Two(F.relu), nn.Linear(4, 4)
bar = Bar([(X, Y), (X + 1, Y)])
for x, y in bar:
    bar.set_postfix(aux=aux(x).mean().item())  # <-
    F.cross_entropy(m(x) * 0.5, y).backward()
""",
        {"aux.weight": ends("ignored", "item")},
    ),
    "a non-leaf": Case(
        """
w = torch.randn(4, 4, requires_grad=True) * 0.1  # <-
F.cross_entropy(X @ w, Y).backward()
""",
        {"w": ends("non-leaf", "mul")},
    ),
    "a parameter that was moved": Case(
        """
w = nn.Parameter(torch.randn(4, 4)).to(torch.float64).float()  # <-
F.cross_entropy(X @ w, Y).backward()
""",
        {"w": ends("non-leaf", "float")},
    ),
    "frozen by a loop": Case(
        """
m = Two(F.relu)
for p in m.enc.parameters():
    p.requires_grad = False  # <-
F.cross_entropy(m(X), Y).backward()
""",
        {"m.enc.weight": ends("frozen"), "m.enc.bias": ends("frozen"), "m.head.weight": REACHED},
    ),
    "frozen by its module": Case(
        """
m = Two(F.relu)
m.enc.requires_grad_(False)  # <-
F.cross_entropy(m(X), Y).backward()
""",
        {"m.enc.weight": ends("frozen")},
    ),
    "frozen while it was used": Case(
        """
m = Two(F.relu)
m.enc.requires_grad_(False)  # <-
loss = F.cross_entropy(m(X), Y)
m.enc.requires_grad_(True)
loss.backward()
""",
        {"m.enc.weight": cut("frozen"), "m.head.weight": REACHED},
    ),
    "cleared before the step": Case(
        """
m = nn.Linear(4, 4)
optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
F.cross_entropy(m(X), Y).backward()
optimizer.zero_grad()  # <-
optimizer.step()
""",
        {"m.weight": ends("cleared", within="Optimizer.zero_grad")},
    ),
    "cleared by hand": Case(
        """
m = nn.Linear(4, 4)
F.cross_entropy(m(X), Y).backward()
for p in m.parameters():
    p.grad = None  # <-
""",
        {"m.weight": ends("cleared")},
    ),
    "cleared and computed again": Case(
        """
m = nn.Linear(4, 4)
F.cross_entropy(m(X), Y).backward()
m.zero_grad()
F.cross_entropy(m(X), Y).backward()
""",
        {"m.weight": REACHED},
    ),
    "backward with inputs": Case(
        """
m = Two(F.relu)
F.cross_entropy(m(X), Y).backward(inputs=list(m.head.parameters()))  # <-
""",
        {"m.enc.weight": ends("restricted", "backward"), "m.head.weight": REACHED},
    ),
    "autograd.grad that was not asked": Case(
        """
m = Two(F.relu)
gradients = torch.autograd.grad(F.cross_entropy(m(X), Y), list(m.head.parameters()))  # <-
""",
        {"m.enc.weight": ends("restricted", "autograd.grad"), "m.head.weight": REACHED},
    ),
    "no backward": Case(
        """
m = nn.Linear(4, 4)
value = F.cross_entropy(m(X), Y).item()
""",
        {"m.weight": ends("no-backward")},
    ),
    "a loss without grad": Case(
        """
m = Two(F.relu)
with torch.no_grad():  # off
    loss = F.cross_entropy(m(X), Y)
try:
    loss.backward()
except RuntimeError:
    pass
""",
        {"m.head.weight": cut("no-grad", "linear", mode="torch.no_grad()")},
    ),
    "a loss that is a fresh leaf": Case(
        """
m = Two(F.relu)
out = m(X)
loss = torch.zeros((), requires_grad=True)
loss.backward()
""",
        {"m.head.weight": ends("ignored", "linear"), "loss": REACHED},
    ),
    "one part of a composite operation": Case(
        """
scale, shift = nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(1, 4))
a, b = torch.broadcast_tensors(scale, shift)  # <-
F.cross_entropy(X * a, Y).backward()
""",
        {"scale": REACHED, "shift": ends("ignored", "broadcast_tensors")},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_end_of_the_path_is_named(tmp_path, name):
    check(CASES[name], tmp_path / "program.py")
