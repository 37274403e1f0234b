"""Programs that stop gradients on purpose, log, sample, save: nothing in them may be called cut, unused or ignored."""

import warnings

import pytest
import torch

from tests.dataflow.cases import names
from tests.dataflow.tracing import Trace, program
from whygrad.model import PathEnd as PathKind

PROGRAMS = {
    "logging everywhere": """
m = Two(F.relu)
log = []
for x, y in zip(X.split(3), Y.split(3)):
    out = m(x)
    loss = F.cross_entropy(out, y)
    log.append({"loss": loss.item(), "accuracy": (out.argmax(1) == y).float().mean().item()})
    print(end=f"{float(loss.detach()):.3f} {m.enc.weight.norm().item():.2f}"[:0])
    kept = out.detach().numpy().copy()
    if loss.item() > 100:
        break
    loss.backward()
""",
    "straight-through": """
m = Two(lambda h: h + (h.round() - h).detach())
F.cross_entropy(m(X), Y).backward()
""",
    "straight-through in a function": """
class Ste(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x > 0).float()
    @staticmethod
    def backward(ctx, gradient):
        return gradient
m = Two(Ste.apply)
F.cross_entropy(m(X), Y).backward()
""",
    "a vector quantiser": """
encoder, codebook, decoder = nn.Linear(4, 4), nn.Embedding(5, 4), nn.Linear(4, 4)
z = encoder(X)
q = codebook(torch.cdist(z, codebook.weight).argmin(1))
commit = F.mse_loss(z, q.detach()) + F.mse_loss(q, z.detach())
(F.mse_loss(decoder(z + (q - z).detach()), X) + commit).backward()
""",
    "a gumbel softmax, hard": """
m = Two(lambda h: F.gumbel_softmax(h, hard=True))
F.cross_entropy(m(X), Y).backward()
""",
    "a soft argmax": """
m = Two(lambda h: (h.softmax(-1) * torch.arange(4.0)).sum(-1, keepdim=True).expand(-1, 4))
F.cross_entropy(m(X), Y).backward()
""",
    "reparametrised sampling": """
mu, log_var, decoder = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
z = torch.distributions.Normal(mu(X), log_var(X).exp()).rsample()
F.mse_loss(decoder(z), X).backward()
""",
    "the log-probability trick": """
policy = nn.Linear(4, 3)
choice = torch.distributions.Categorical(logits=policy(X))
action = choice.sample()
reward = (action == Y).float()
loss = -(choice.log_prob(action) * (reward - reward.mean())).mean()
loss.backward()
""",
    "an old policy": """
policy = nn.Linear(4, 3)
with torch.no_grad():
    old = torch.distributions.Categorical(logits=policy(X))
    action = old.sample()
    old_log_prob = old.log_prob(action)
ratio = (torch.distributions.Categorical(logits=policy(X)).log_prob(action) - old_log_prob).exp()
advantage = torch.rand(6)
loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
loss.backward()
""",
    "truncated backpropagation through time": """
cell, out = nn.GRUCell(4, 4), nn.Linear(4, 4)
h = torch.zeros(1, 4)
for chunk, targets in zip(X.split(2), Y.split(2)):
    h = h.detach()
    loss = 0
    for x, y in zip(chunk, targets):
        h = cell(x[None], h)
        loss = loss + F.cross_entropy(out(h), y[None])
    loss.backward()
""",
    "a mixture with a weighted gate": """
gate, experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
weights, chosen = gate(X).softmax(-1).topk(2)
out = torch.zeros(6, 4)
for number, expert in enumerate(experts):
    rows, place = (chosen == number).nonzero(as_tuple=True)
    if len(rows):
        out = out.index_add(0, rows, weights[rows, place, None] * expert(X[rows]))
out = out + sum(expert(X) for expert in experts) * 1e-3
F.cross_entropy(out, Y).backward()
""",
    "a gradient penalty": """
critic = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
x = X.clone().requires_grad_(True)
score = critic(x)
(slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)
(score.mean() + ((slope.norm(dim=1) - 1) ** 2).mean()).backward()
""",
    "meta learning": """
from torch.func import functional_call
m, rate = nn.Linear(4, 4), nn.Parameter(torch.tensor(0.1))
fast = dict(m.named_parameters())
inner = F.cross_entropy(functional_call(m, fast, (X[:3],)), Y[:3])
gradients = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
fast = {key: p - rate * g for (key, p), g in zip(fast.items(), gradients)}
F.cross_entropy(functional_call(m, fast, (X[3:],)), Y[3:]).backward()
""",
    "checkpointing, both kinds": """
first, second, head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
h = checkpoint(first, X, use_reentrant=False)
h = checkpoint(second, h, use_reentrant=True)
F.cross_entropy(head(h), Y).backward()
""",
    "in-place writes": """
m = Two(nn.ReLU(inplace=True))
buffer = torch.zeros(6, 4)
out = m(X)
for i in range(6):
    buffer[i] = out[i]
buffer += 1
buffer.mul_(2)
F.cross_entropy(buffer, Y).backward()
""",
    "a buffer written by rows of a view": """
m = nn.Linear(4, 4)
buffer = torch.zeros(2, 6, 4)
buffer[1].copy_(m(X))
F.cross_entropy(buffer.sum(0), Y).backward()
""",
    "shared and tied weights": """
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(4, 4), nn.Linear(4, 4, bias=False)
        self.out.weight = self.embed.weight
    def forward(self, i):
        return self.out(self.embed(i))
m = Tied()
F.cross_entropy(m(Y), Y).backward()
""",
    "weights in one flat storage": """
m = Two(F.relu)
flat = torch.cat([p.detach().flatten() for p in m.parameters()])
start = 0
for p in m.parameters():
    p.data = flat[start:start + p.numel()].view_as(p)
    start += p.numel()
F.cross_entropy(m(X), Y).backward()
""",
    "weights loaded, averaged, clamped and saved": """
import io
m, average = Two(F.relu), None
m.load_state_dict({key: value.clone() for key, value in m.state_dict().items()})
with torch.no_grad():
    m.enc.weight.clamp_(-1, 1)
    m.head.weight.data.mul_(0.5)
    average = [p.detach().clone() for p in m.parameters()]
torch.save(m.state_dict(), io.BytesIO())
F.cross_entropy(m(X), Y).backward()
with torch.no_grad():
    for kept, p in zip(average, m.parameters()):
        kept.lerp_(p, 0.1)
""",
    "parametrizations": """
m = Two(F.relu)
torch.nn.utils.parametrizations.weight_norm(m.enc)
torch.nn.utils.parametrizations.orthogonal(m.head)
F.cross_entropy(m(X), Y).backward()
""",
    "spectral norm and batch norm": """
m = nn.Sequential(torch.nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), nn.BatchNorm1d(4), nn.Linear(4, 4))
F.cross_entropy(m(X), Y).backward()
""",
    "weights of the loss that learn": """
m, scales = Two(F.relu), nn.Parameter(torch.zeros(2))
losses = torch.stack([F.cross_entropy(m(X), Y), m(X).pow(2).mean()])
((-scales).exp() * losses + scales).sum().backward()
""",
    "losses balanced by their sizes": """
m = Two(F.relu)
a, b = F.cross_entropy(m(X), Y), m(X).pow(2).mean()
(a + a.item() / (b.item() + 1e-8) * b).backward()
""",
    "a hard example selected by its loss": """
m = Two(F.relu)
losses = F.cross_entropy(m(X), Y, reduction="none")
losses[losses.detach().topk(3).indices].mean().backward()
""",
    "self-distillation with a detached target": """
m, predictor = nn.Linear(4, 4), nn.Linear(4, 4)
a, b = m(X), m(X + 0.1)
near = F.cosine_similarity(predictor(a), b.detach()) + F.cosine_similarity(predictor(b), a.detach())
(-near.mean()).backward()
""",
    "gradient reversal": """
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, gradient):
        return -gradient
body, domain, label = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
h = body(X)
(F.cross_entropy(label(h), Y) + F.cross_entropy(domain(Reverse.apply(h)), Y)).backward()
""",
    "autocast": """
m = Two(F.relu)
with torch.autocast("cpu", dtype=torch.bfloat16):
    loss = F.cross_entropy(m(X), Y)
loss.backward()
""",
    "scripted and traced modules": """
m, t = torch.jit.script(nn.Linear(4, 4)), torch.jit.trace(nn.Linear(4, 4), X)
F.cross_entropy(t(m(X)), Y).backward()
""",
    "recurrent nets of padded sequences": """
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
rnn, out = nn.LSTM(4, 4, batch_first=True), nn.Linear(4, 4)
packed = pack_padded_sequence(X.view(2, 3, 4), torch.tensor([3, 2]), batch_first=True)
h, _ = pad_packed_sequence(rnn(packed)[0], batch_first=True)
F.cross_entropy(out(h).flatten(0, 1), Y).backward()
""",
    "attention": """
m = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.1)
F.cross_entropy(m(X[None])[0], Y).backward()
""",
    "a second order method": """
m = nn.Linear(4, 4)
loss = F.cross_entropy(m(X), Y)
gradients = torch.autograd.grad(loss, list(m.parameters()), create_graph=True)
(loss + 0.1 * sum(g.pow(2).sum() for g in gradients)).backward()
""",
    "implicit layers": """
f = nn.Linear(4, 4)
with torch.no_grad():
    z = torch.zeros_like(X)
    for _ in range(5):
        z = torch.tanh(f(z) * 0.1 + X)
z = torch.tanh(f(z) * 0.1 + X)
F.cross_entropy(z, Y).backward()
""",
    "sparse gradients": """
m = nn.Sequential(nn.Embedding(5, 4, sparse=True), nn.Linear(4, 4))
F.cross_entropy(m(Y), Y).backward()
""",
    "complex numbers": """
m = nn.Linear(4, 4)
z = torch.fft.fft(m(X))
(z.real.pow(2) + z.imag.abs() + z.abs()).sum().backward()
""",
    "a generator step": """
generator, discriminator = nn.Linear(4, 4), nn.Linear(4, 1)
fake = generator(X)
F.softplus(discriminator(fake.detach())).mean().backward()
F.softplus(-discriminator(fake)).mean().backward()
""",
    "gradients of parts of the model": """
a, b = nn.Linear(4, 4), nn.Linear(4, 4)
loss = F.cross_entropy(b(a(X)), Y)
loss.backward(inputs=list(a.parameters()), retain_graph=True)
loss.backward(inputs=list(b.parameters()))
""",
    "values that come back beside the gradient's way": """
m = Two(F.relu)
out = m(X)
scale = out.abs().max().item()
F.cross_entropy(out / scale + torch.tensor(out.tolist()) * 0.0, Y).backward()
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_parameter_is_reached(tmp_path, name):
    trace, space = Trace(), names()
    code = program(PROGRAMS[name], tmp_path / "program.py")
    with trace.on(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, space)  # noqa: S102 - programs are texts
        answers = {key: trace.explain(tensor) for key, tensor in parameters(space).items()}
        lost = trace.flow.lost_terms()
    trace.flow.switch_off()

    assert answers
    assert {key: answer for key, answer in answers.items() if answer.kind is not PathKind.REACHED} == {}
    assert lost == []
    assert not trace.guard.failures


def parameters(space):
    """The parameters that a program's variables hold, by name."""
    found = {}
    for key, value in space.items():
        if isinstance(value, torch.nn.Module):
            found |= {f"{key}.{name}": p for name, p in value.named_parameters()}
        elif isinstance(value, torch.nn.Parameter):
            found[key] = value
    return found
