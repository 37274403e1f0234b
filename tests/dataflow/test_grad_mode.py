"""Values computed while grad mode is off, and who switched it."""

import pytest

from tests.dataflow.cases import REACHED, Case, check, cut

FIRST = "m.enc.weight"


def two(middle, expected):
    return Case(
        f"{middle}\nm = Two(middle)\nF.cross_entropy(m(X), Y).backward()", {FIRST: expected, "m.head.weight": REACHED}
    )


CASES = {
    "a block": two(
        """
def middle(h):
    with torch.no_grad():  # off
        z = h * 2  # <-
    return z + 1
""",
        cut("no-grad", "mul", mode="torch.no_grad()"),
    ),
    "several in one statement": two(
        """
import contextlib
def middle(h):
    with contextlib.nullcontext(), torch.no_grad():  # off
        return h * 2  # <-
""",
        cut("no-grad", "mul", mode="torch.no_grad()"),
    ),
    "a context kept in a variable": two(
        """
off = torch.no_grad()
def middle(h):
    with off:  # off
        return h * 2  # <-
""",
        cut("no-grad", "mul", mode="off"),
    ),
    "nested: the outer one counts": two(
        """
def middle(h):
    with torch.no_grad():  # off
        with torch.no_grad():
            h = h * 2  # <-
        return h * 3
""",
        cut("no-grad", "mul"),
    ),
    "switched on inside and off again": two(
        """
def middle(h):
    with torch.no_grad():  # off
        with torch.enable_grad():
            h = h * 2
        return h * 3  # <-
""",
        cut("no-grad", "mul", distance=3),
    ),
    "a decorator": Case(
        """
@torch.no_grad()  # off
def encode(m, x):
    return m(x)  # <-
enc, head = nn.Linear(4, 4), nn.Linear(4, 4)
F.cross_entropy(head(encode(enc, X)), Y).backward()
""",
        {"enc.weight": cut("no-grad", "linear", mode="@torch.no_grad() on encode"), "head.weight": REACHED},
    ),
    "one of several decorators": Case(
        """
import functools
@functools.lru_cache
@torch.no_grad()  # off
def encode(m):
    return m(X)  # <-
enc, head = nn.Linear(4, 4), nn.Linear(4, 4)
F.cross_entropy(head(encode(enc)), Y).backward()
""",
        {"enc.weight": cut("no-grad", "linear", mode="@torch.no_grad() on encode")},
    ),
    "a decorated method": Case(
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    @torch.no_grad()  # off
    def forward(self, x):
        return self.lin(x)  # <-
enc, head = Encoder(), nn.Linear(4, 4)
F.cross_entropy(head(enc(X)), Y).backward()
""",
        {"enc.lin.weight": cut("no-grad", "linear", mode="on forward"), "head.weight": REACHED},
    ),
    "a decorated generator": Case(
        """
@torch.no_grad()  # off
def batches(m):
    for x in X.split(3):
        yield m(x)  # <-
enc, head = nn.Linear(4, 4), nn.Linear(4, 4)
z = torch.cat(list(batches(enc)))
F.cross_entropy(head(z), Y).backward()
""",
        {"enc.weight": cut("no-grad", "linear", mode="on batches"), "head.weight": REACHED},
    ),
    "a function wrapped by a call": Case(
        """
def encode(m, x):  # off
    return m(x)  # <-
encode = torch.no_grad()(encode)
enc, head = nn.Linear(4, 4), nn.Linear(4, 4)
F.cross_entropy(head(encode(enc, X)), Y).backward()
""",
        {"enc.weight": cut("no-grad", "linear", mode="no_grad on encode")},
    ),
    "inference mode": Case(
        """
enc, head = nn.Linear(4, 4), nn.Linear(4, 4)
with torch.inference_mode():  # off
    z = enc(X)  # <-
F.cross_entropy(head(z.clone()), Y).backward()
""",
        {"enc.weight": cut("no-grad", "linear", mode="torch.inference_mode()"), "head.weight": REACHED},
    ),
    "inference mode as a decorator": Case(
        """
@torch.inference_mode()  # off
def encode(m, x):
    return m(x)  # <-
enc, head = nn.Linear(4, 4), nn.Linear(4, 4)
F.cross_entropy(head(encode(enc, X).clone()), Y).backward()
""",
        {"enc.weight": cut("no-grad", "linear", mode="@torch.inference_mode() on encode"), "head.weight": REACHED},
    ),
    "a call that leaves it off": Case(
        """
enc, head = nn.Linear(4, 4), nn.Linear(4, 4)
torch.set_grad_enabled(False)  # off
z = enc(X)  # <-
torch.set_grad_enabled(True)
F.cross_entropy(head(z), Y).backward()
""",
        {"enc.weight": cut("no-grad", "linear", mode="torch.set_grad_enabled(False)"), "head.weight": REACHED},
    ),
    "a call in a helper": Case(
        """
def freeze_everything():
    torch.set_grad_enabled(False)  # off
enc, head = nn.Linear(4, 4), nn.Linear(4, 4)
freeze_everything()
z = enc(X)  # <-
torch.set_grad_enabled(True)
F.cross_entropy(head(z), Y).backward()
""",
        {"enc.weight": cut("no-grad", "linear", mode="torch.set_grad_enabled(False)")},
    ),
    "a condition that is never true": Case(
        """
enc, head = nn.Linear(4, 4), nn.Linear(4, 4)
with torch.set_grad_enabled(enc.weight.mean().item() > 1e3):  # off
    z = enc(X)  # <-
F.cross_entropy(head(z), Y).backward()
""",
        {"enc.weight": cut("no-grad", "linear", mode="torch.set_grad_enabled(enc.weight")},
    ),
    "written into a buffer": two(
        """
def middle(h):
    buffer = torch.zeros(6, 4)
    with torch.no_grad():  # off
        buffer.copy_(h)  # <-
    return buffer
""",
        cut("no-grad", "copy_", distance=2),
    ),
    "written into a part of a buffer": two(
        """
def middle(h):
    buffer = torch.zeros(2, 6, 4)
    row = buffer[1]
    with torch.no_grad():  # off
        row.add_(h)  # <-
    return buffer.sum(0)
""",
        cut("no-grad", "add_"),
    ),
    "written by a foreach function": Case(
        """
m, head = nn.Linear(4, 4), nn.Linear(4, 4)
kept = [torch.zeros(4, 4), torch.zeros(4)]
with torch.no_grad():  # off
    torch._foreach_add_(kept, [m.weight, m.bias])  # <-
F.cross_entropy(head(X @ kept[0]), Y).backward()
""",
        {"m.weight": cut("no-grad", "_foreach_add_"), "head.weight": REACHED},
    ),
    "a library's own": Case(
        """
class Gaussian(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu, self.dec = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        z = torch.distributions.Normal(self.mu(x), 1.0).sample()  # <- off
        return self.dec(z)
m = Gaussian()
F.mse_loss(m(X), X).backward()
""",
        {
            "m.mu.weight": cut("no-grad", "expand", within="Normal.sample", mode="no_grad inside Normal.sample"),
            "m.dec.weight": REACHED,
        },
    ),
    "in a thread of its own": Case(
        """
enc, head, out = nn.Linear(4, 4), nn.Linear(4, 4), []
def work():
    with torch.no_grad():  # off
        out.append(enc(X))  # <-
thread = threading.Thread(target=work)
thread.start()
thread.join()
F.cross_entropy(head(out[0]), Y).backward()
""",
        {"enc.weight": cut("no-grad", "linear", mode="torch.no_grad()"), "head.weight": REACHED},
    ),
    "after an exception left the block": two(
        """
def middle(h):
    try:
        with torch.no_grad():
            raise ValueError
    except ValueError:
        pass
    with torch.no_grad():  # off
        return h * 2  # <-
""",
        cut("no-grad", "mul"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_switch_is_named(tmp_path, name):
    check(CASES[name], tmp_path / "program.py")
