"""Operations without a derivative, or with one that is zero everywhere."""

import pytest
import torch

from tests.dataflow.cases import REACHED, Case, check, cut, ends
from whygrad.probe.dataflow.operations import Effect, classified

FIRST = "m.enc.weight"


def two(middle, expected):
    return Case(
        f"{middle}\nm = Two(middle)\nF.cross_entropy(m(X), Y).backward()", {FIRST: expected, "m.head.weight": REACHED}
    )


CASES = {
    "argmax": two(
        """
def middle(h):
    i = h.argmax(-1)  # <-
    return F.one_hot(i, 4).float()
""",
        cut("nondifferentiable", "argmax", distance=2),
    ),
    "argmax into an embedding": two(
        """
emb = nn.Embedding(4, 4)
def middle(h):
    return emb(h.argmax(-1))  # <-
""",
        cut("nondifferentiable", "argmax"),
    ),
    "indices of topk": two(
        """
bank = torch.randn(4, 4)
def middle(h):
    i = torch.topk(h, 1, -1).indices.squeeze(-1)  # <-
    return bank[i]
""",
        cut("nondifferentiable", "topk"),
    ),
    "a comparison": two(
        """
def middle(h):
    return (h > 0).float() * X  # <-
""",
        cut("nondifferentiable", "gt"),
    ),
    "a comparison as a mask": two(
        """
def middle(h):
    return torch.where(h > 0, X, torch.zeros_like(X))  # <-
""",
        cut("nondifferentiable", "gt"),
    ),
    "a cast to integers": two(
        """
emb = nn.Embedding(10, 4)
def middle(h):
    return emb(h.abs().long().clamp(max=9)).mean(1)  # <-
""",
        cut("nondifferentiable", "long"),
    ),
    "a cast by to()": two(
        """
def middle(h):
    return h.to(torch.int64).to(torch.float32)  # <-
""",
        cut("nondifferentiable", "to"),
    ),
    "bucketize": two(
        """
emb = nn.Embedding(4, 4)
def middle(h):
    return emb(torch.bucketize(h.detach().mean(1), torch.tensor([-1.0, 0.0, 1.0])))  # <-
""",
        cut("detach", "detach"),
    ),
    "multinomial": two(
        """
emb = nn.Embedding(4, 4)
def middle(h):
    return emb(torch.multinomial(h.softmax(-1), 1).squeeze(-1))  # <-
""",
        cut("nondifferentiable", "multinomial"),
    ),
    "a sample of a categorical": two(
        """
emb = nn.Embedding(4, 4)
def middle(h):
    return emb(torch.distributions.Categorical(logits=h).sample())  # <-
""",
        cut("nondifferentiable", "multinomial", within="Categorical.sample"),
    ),
    "nonzero": two(
        """
def middle(h):
    return X[(h.sum(1) > -100).nonzero().squeeze(1)]  # <-
""",
        cut("nondifferentiable", "gt"),
    ),
    "argsort": two(
        """
def middle(h):
    return X[h.sum(1).argsort()]  # <-
""",
        cut("nondifferentiable", "argsort"),
    ),
    "round": two(
        """
def middle(h):
    return torch.round(h * 10) / 10  # <-
""",
        cut("nondifferentiable", "round", distance=3),
    ),
    "round in place": two(
        """
def middle(h):
    h = h * 10
    h.round_()  # <-
    return h
""",
        cut("nondifferentiable", "round_"),
    ),
    "sign": two(
        """
def middle(h):
    return 0.5 * (torch.sign(h) + 1)  # <-
""",
        cut("nondifferentiable", "sign"),
    ),
    "floor, on both ways": two(
        """
def middle(h):
    return h.floor() + X * (h.ceil() > 0)  # <-
""",
        cut("nondifferentiable", "floor"),
    ),
    "bernoulli": two(
        """
def middle(h):
    return torch.bernoulli(h.sigmoid())  # <-
""",
        cut("nondifferentiable", "bernoulli"),
    ),
    "a write over the value": two(
        """
def middle(h):
    h = h * 1
    h.copy_(X)  # <-
    return h
""",
        cut("overwritten", "copy_"),
    ),
    "a slice assignment over the value": Case(
        """
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.head = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        h = self.enc(x) * 1
        h.fill_(0.5)  # <-
        return self.head(h)
m = Recurrent()
F.cross_entropy(m(X), Y).backward()
""",
        {"m.enc.weight": cut("overwritten", "fill_"), "m.head.weight": REACHED},
    ),
    "a part that the loss does not use": Case(
        """
m = nn.GRU(4, 4, num_layers=2)
_, states = m(X[:, None])
F.cross_entropy(states[0], Y[:1]).backward()
""",
        {"m.weight_hh_l1": ends("reached", "getitem"), "m.weight_hh_l0": REACHED},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_operation_is_named(tmp_path, name):
    check(CASES[name], tmp_path / "program.py")


HARD = torch.tensor([0.3, 1.7, -2.2, 0.6])
UNARY = [
    *("round", "floor", "ceil", "trunc", "fix", "sign", "sgn", "bernoulli", "poisson"),
    *("abs", "exp", "relu", "sigmoid", "tanh", "frac", "sqrt", "clamp_min", "sin", "erf", "neg", "log1p", "softplus"),
]


@pytest.mark.parametrize("name", UNARY)
def test_exactly_the_operations_with_a_zero_derivative_are_flat(name):
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    x = HARD.abs().clamp(0.1, 0.9).requires_grad_()
    y = function(x, 0.0) if name == "clamp_min" else function(x)

    (gradient,) = torch.autograd.grad(y.sum(), x)

    assert classified(function).flat == bool((gradient == 0).all())


@pytest.mark.parametrize(
    ("function", "effect"),
    [
        (torch.Tensor.detach, Effect.DETACH),
        (torch.Tensor.item, Effect.VALUE),
        (torch.Tensor.__float__, Effect.VALUE),
        (torch.Tensor.__bool__, Effect.LOOK),
        (torch.tensor, Effect.COPY),
        (torch.as_tensor, Effect.COPY),
        (torch.Tensor.__deepcopy__, Effect.COPY),
        (torch._C._set_grad_enabled, Effect.SWITCH),
        (torch.autograd.grad, Effect.GRADIENT),
        (torch.Tensor.backward, Effect.BACKWARD),
        (torch.matmul, Effect.COMPUTE),
    ],
)
def test_functions_are_told_apart(function, effect):
    assert classified(function).effect is effect


@pytest.mark.parametrize("name", ["zeros_like", "randn_like", "new_zeros", "empty_like", "full_like"])
def test_a_tensor_that_takes_only_the_shape_depends_on_nothing(tmp_path, name):
    argument = {"new_zeros": "(h.shape)", "full_like": "(h, 2.0)"}.get(name, "(h)")
    call = f"h.{name}{argument}" if name.startswith("new_") else f"torch.{name}{argument}"
    text = f"""
m, head = nn.Linear(4, 4), nn.Linear(4, 4)
h = m(X)  # <-
z = {call}.fill_(0.1)
F.cross_entropy(head(z), Y).backward()
"""
    check(Case(text, {"m.weight": ends("ignored", "linear")}), tmp_path / "program.py")


@pytest.mark.parametrize("name", ["type_as", "expand_as", "view_as", "reshape_as"])
def test_a_tensor_that_gives_only_type_or_shape_is_not_used(tmp_path, name):
    text = f"""
m, head = nn.Linear(4, 4), nn.Linear(4, 4)
h = m(X)  # <-
F.cross_entropy(head(X.{name}(h)), Y).backward()
"""
    check(Case(text, {"m.weight": ends("ignored", "linear")}), tmp_path / "program.py")
