"""autograd.Function, checkpointing, compiled and scripted modules: what runs out of the tracer's direct sight."""

import pytest

from tests.dataflow.cases import REACHED, Case, check, cut, ends

FIRST = "m.enc.weight"


def two(middle, expected):
    return Case(
        f"{middle}\nm = Two(middle)\nF.cross_entropy(m(X), Y).backward()", {FIRST: expected, "m.head.weight": REACHED}
    )


CASES = {
    "a backward that returns None": two(
        """
class Silent(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        return None
def middle(h):
    return Silent.apply(h)  # <-
""",
        ends("undefined", "Silent"),
    ),
    "the one of two that returns None": two(
        """
class Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient
class Silent(Pass):
    @staticmethod
    def backward(ctx, gradient):
        return None
def middle(h):
    h = Pass.apply(h)
    return Silent.apply(h)  # <-
""",
        cut("custom", "Silent", distance=3),
    ),
    "None for one of two inputs": Case(
        """
class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w
    @staticmethod
    def backward(ctx, gradient):
        x, w = ctx.saved_tensors
        return gradient * w, None
m, w = nn.Linear(4, 4), nn.Parameter(torch.ones(4))
F.cross_entropy(Product.apply(m(X), w), Y).backward()  # <-
""",
        {"m.weight": REACHED, "w": ends("undefined", "Product")},
    ),
    "marked as not differentiable": two(
        """
class Hard(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = (x > 0).float()
        ctx.mark_non_differentiable(y)
        return y
    @staticmethod
    def backward(ctx, gradient):
        return gradient
def middle(h):
    return Hard.apply(h)  # <-
""",
        cut("custom", "Hard", distance=2),
    ),
    "applied under no_grad": two(
        """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient
def middle(h):
    with torch.no_grad():  # off
        return Double.apply(h)  # <-
""",
        cut("no-grad", "Double", mode="torch.no_grad()"),
    ),
    "a parameter that forward takes by itself": Case(
        """
w, head = nn.Parameter(torch.ones(4)), nn.Linear(4, 4)
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * w
    @staticmethod
    def backward(ctx, gradient):
        return gradient
x = X.clone().requires_grad_()
F.cross_entropy(head(Scale.apply(x)), Y).backward()  # <-
""",
        {"w": cut("custom", "Scale"), "head.weight": REACHED},
    ),
    "a function and a cut behind it": two(
        """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient
def middle(h):
    h = Double.apply(h)
    return h.detach()  # <-
""",
        cut("detach", "detach", distance=3),
    ),
    "reentrant checkpointing without an input that requires grad": Case(
        """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        return self.lin(x).relu()
enc, head = Block(), nn.Linear(4, 4)
z = checkpoint(enc, X, use_reentrant=True)  # <-
F.cross_entropy(head(z), Y).backward()
""",
        {"enc.lin.weight": cut("custom", "CheckpointFunction", within="checkpoint"), "head.weight": REACHED},
    ),
    "a cut inside reentrant checkpointing": Case(
        """
first, enc, head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
def block(x):
    return enc(x).detach() + x  # <-
z = checkpoint(block, first(X), use_reentrant=True)
F.cross_entropy(head(z), Y).backward()
""",
        {"enc.weight": cut("detach", "detach"), "first.weight": REACHED, "head.weight": REACHED},
    ),
    "a cut inside checkpointing": Case(
        """
first, enc, head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
def block(x):
    return enc(x).detach() + x  # <-
z = checkpoint(block, first(X), use_reentrant=False)
F.cross_entropy(head(z), Y).backward()
""",
        {"enc.weight": cut("detach", "detach"), "first.weight": REACHED},
    ),
    "a scripted module, then a cut": Case(
        """
m, head = torch.jit.script(nn.Linear(4, 4)), nn.Linear(4, 4)
z = m(X).detach()  # <-
F.cross_entropy(head(z), Y).backward()
""",
        {"m.weight": cut("detach", "detach")},
    ),
    "a cut inside a scripted module": Case(
        """
class Cutting(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        return self.b(self.a(x).detach())
import linecache
m = torch.jit.trace(Cutting(), X)
F.cross_entropy(m(X), Y).backward()  # <-
""",
        {"m.a.weight": cut("opaque"), "m.b.weight": REACHED},
    ),
    "torch.func, then a cut": Case(
        """
m = nn.Linear(4, 4)
def loss(parameters, x):
    return torch.func.functional_call(m, parameters, (x[None],)).square().sum()
gradients = torch.func.grad(loss)({key: p.detach() for key, p in m.named_parameters()}, X[0])  # <-
total = sum(g.sum() for g in gradients.values())
w = torch.ones((), requires_grad=True)
(w * total).backward()
""",
        {"m.weight": cut("detach", "detach", inferred=True), "w": REACHED},
    ),
    "a parametrization with a cut behind it": Case(
        """
m = Two(lambda h: h.detach())  # <-
torch.nn.utils.parametrizations.weight_norm(m.enc)
F.cross_entropy(m(X), Y).backward()
""",
        {
            "m.enc.parametrizations.weight.original0": cut("detach", "detach"),
            "m.enc.parametrizations.weight.original1": cut("detach", "detach"),
            "m.enc.bias": cut("detach", "detach"),
        },
    ),
    "attention and recurrent layers": Case(
        """
attention, recurrent, head = nn.MultiheadAttention(4, 2, batch_first=True), nn.GRU(4, 4), nn.Linear(4, 4)
a, _ = attention(X[None], X[None], X[None])
h, _ = recurrent(a)
h = h.data  # <-
F.cross_entropy(head(h[0]), Y).backward()
""",
        {
            **dict.fromkeys(["attention.in_proj_weight", "attention.out_proj.weight"], cut("data", "data")),
            **dict.fromkeys(["recurrent.weight_ih_l0", "recurrent.bias_hh_l0"], cut("data", "data")),
        },
    ),
    "a teacher on the fused path": Case(
        """
layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
teacher = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()
head = nn.Linear(4, 4)
with torch.no_grad():  # off
    z = teacher(X[None])  # <-
F.cross_entropy(head(z[0]), Y).backward()
""",
        {"teacher.layers[0].linear1.weight": cut("no-grad", "TransformerEncoder"), "head.weight": REACHED},
    ),
    "autocast": Case(
        """
m = Two(lambda h: h.detach())  # <-
with torch.autocast("cpu", dtype=torch.bfloat16):
    out = m(X)
F.cross_entropy(out.float(), Y).backward()
""",
        {"m.enc.weight": cut("detach", "detach"), "m.head.weight": REACHED},
    ),
    "a hook": Case(
        """
m = Two(F.relu)
m.enc.register_forward_hook(lambda module, args, output: output.detach())  # <-
F.cross_entropy(m(X), Y).backward()
""",
        {"m.enc.weight": cut("detach", "detach"), "m.head.weight": REACHED},
    ),
    "a thread pool": Case(
        """
from concurrent.futures import ThreadPoolExecutor
enc, head = nn.Linear(4, 4), nn.Linear(4, 4)
with ThreadPoolExecutor(1) as pool:
    z = pool.submit(lambda: enc(X).detach()).result()  # <-
F.cross_entropy(head(z), Y).backward()
""",
        {"enc.weight": cut("detach", "detach"), "head.weight": REACHED},
    ),
    "models in threads": Case(
        """
enc, head, out = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)]), nn.Linear(4, 4), {}
def work(i):
    out[i] = enc[i](X).detach()  # <-
threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
F.cross_entropy(head(out[0] + out[1]), Y).backward()
""",
        {"enc[0].weight": cut("detach"), "enc[1].weight": cut("detach"), "head.weight": REACHED},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_end_of_the_path_is_named(tmp_path, name):
    check(CASES[name], tmp_path / "program.py")


BOUND_BEFORE = """
def middle(h):
    return bound_before(h){cut}
m = Two(middle)
F.cross_entropy(m(X), Y).backward()
"""


@pytest.mark.parametrize(("cutting", "answer"), [("", REACHED), (".detach()  # <-", cut("detach", "detach"))])
def test_a_function_whose_apply_was_taken_before_the_tracer_came(tmp_path, cutting, answer):
    text = "from tests.dataflow.bound import bound_before\n" + BOUND_BEFORE.format(cut=cutting)
    check(Case(text, {FIRST: answer}), tmp_path / "program.py")
