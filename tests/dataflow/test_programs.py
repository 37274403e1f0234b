"""Programs as people write them: the fault lies in a helper, a class, a loop, another setting."""

import pytest

from tests.dataflow.cases import REACHED, UNUSED, Case, check, cut

CASES = {
    "a variational autoencoder that samples": Case(
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mu, self.log_var = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 2)
    def forward(self, x):
        h = torch.tanh(self.body(x))
        return torch.distributions.Normal(self.mu(h), (0.5 * self.log_var(h)).exp())
def draw(posterior):
    return posterior.sample()  # <-
encoder, decoder = Encoder(), nn.Linear(2, 4)
F.mse_loss(decoder(draw(encoder(X))), X).backward()
""",
        {
            **dict.fromkeys(["encoder.mu.weight", "encoder.log_var.bias", "encoder.body.weight"], cut("no-grad")),
            "decoder.weight": REACHED,
        },
    ),
    "a vector quantiser without a way through": Case(
        """
class Quantiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.codebook = nn.Embedding(5, 4)
    def forward(self, z):
        nearest = torch.cdist(z, self.codebook.weight).argmin(dim=1)  # <-
        return self.codebook(nearest)
encoder, quantiser, decoder = nn.Linear(4, 4), Quantiser(), nn.Linear(4, 4)
F.mse_loss(decoder(quantiser(encoder(X))), X).backward()
""",
        {"encoder.weight": cut("nondifferentiable", "argmin"), "quantiser.codebook.weight": REACHED},
    ),
    "keypoints by argmax": Case(
        """
def keypoints(heat):
    flat = heat.flatten(1).argmax(-1)  # <-
    return torch.stack([flat // 2, flat % 2], -1).float()
net, scale = nn.Linear(4, 4), nn.Parameter(torch.ones(2))
F.mse_loss(keypoints(net(X).view(-1, 2, 2)) * scale, torch.rand(6, 2)).backward()
""",
        {"net.weight": cut("nondifferentiable", "argmax"), "scale": REACHED},
    ),
    "a policy whose log-probabilities are taken under no_grad": Case(
        """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)
    def act(self, state):
        with torch.no_grad():  # off
            choice = torch.distributions.Categorical(logits=self.net(state))  # <-
            action = choice.sample()
        return action, choice.log_prob(action)
policy, baseline = Policy(), nn.Parameter(torch.zeros(1))
steps = [policy.act(state) for state in X]
returns = torch.linspace(0, 1, len(steps))
loss = -(torch.stack([log_prob for _, log_prob in steps]) * (returns - baseline)).mean()
loss.backward()
""",
        {"policy.net.weight": cut("no-grad", "linear", mode="torch.no_grad()"), "baseline": REACHED},
    ),
    "a replay buffer of arrays": Case(
        """
class Buffer:
    def __init__(self, size):
        self.states = np.zeros((size, 4), dtype=np.float32)
        self.filled = 0
    def push(self, state):
        self.states[self.filled] = state
        self.filled += 1
    def sample(self, n):
        return torch.from_numpy(self.states[np.arange(n) % self.filled])
encoder, critic, buffer = nn.Linear(4, 4), nn.Linear(4, 4), Buffer(8)
for x in X:
    buffer.push(encoder(x).detach().numpy())  # <-
F.cross_entropy(critic(buffer.sample(6)), Y).backward()
""",
        {"critic.weight": REACHED, "encoder.weight": cut("detach", "detach", inferred=True)},
    ),
    "a replay list of tensors": Case(
        """
from collections import deque
class Buffer:
    def __init__(self):
        self.kept = deque(maxlen=100)
    def push(self, state):
        self.kept.append(state.detach().clone())  # <-
    def sample(self):
        return torch.stack(list(self.kept))
encoder, critic, buffer = nn.Linear(4, 4), nn.Linear(4, 4), Buffer()
for x in X:
    buffer.push(encoder(x))
F.cross_entropy(critic(buffer.sample()), Y).backward()
""",
        {"encoder.weight": cut("detach", "detach"), "critic.weight": REACHED},
    ),
    "features that are computed once": Case(
        """
class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.classify, self.cache = nn.Linear(4, 4), nn.Linear(4, 4), {}
    @torch.no_grad()  # off
    def features(self, x):
        if "x" not in self.cache:
            self.cache["x"] = self.project(x)  # <-
        return self.cache["x"]
    def forward(self, x):
        return self.classify(self.features(x))
m = Cached()
F.cross_entropy(m(X) + m(X), Y).backward()
""",
        {"m.project.weight": cut("no-grad", "linear", mode="on features"), "m.classify.weight": REACHED},
    ),
    "a mixture whose gate only chooses": Case(
        """
class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 2), nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
    def forward(self, x):
        chosen = F.softmax(self.gate(x), -1).topk(1).indices.squeeze(-1)  # <-
        out = torch.zeros(len(x), 4)
        for number, expert in enumerate(self.experts):
            mask = chosen == number
            if mask.any():
                out[mask] = expert(x[mask])
        return out
m = Mixture()
F.cross_entropy(m(X), Y).backward()
""",
        {"m.gate.weight": cut("nondifferentiable", "topk")},
    ),
    "a learnt mask with a threshold": Case(
        """
class Select(nn.Module):
    def __init__(self):
        super().__init__()
        self.logits, self.lin = nn.Parameter(torch.randn(4)), nn.Linear(4, 4)
    def forward(self, x):
        keep = torch.sigmoid(self.logits) > 0.5  # <-
        return self.lin(x * keep)
m = Select()
F.cross_entropy(m(X), Y).backward()
""",
        {"m.logits": cut("nondifferentiable", "gt"), "m.lin.weight": REACHED},
    ),
    "a learnt temperature read as a number": Case(
        """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature, self.lin = nn.Parameter(torch.tensor(1.5)), nn.Linear(4, 4)
    def forward(self, x):
        scale = 1.0 / max(self.temperature.item(), 1e-3)  # <-
        return self.lin(x) * scale  # back
m = Scaled()
F.cross_entropy(m(X), Y).backward()
""",
        {"m.temperature": cut("value", "item", inferred=True), "m.lin.weight": REACHED},
    ),
    "weights of a loss as numbers": Case(
        """
def importance(net, x):
    return [float(value.detach()) for value in net(x)]  # <-
m, net = nn.Linear(4, 4), nn.Linear(4, 1)
losses = F.cross_entropy(m(X), Y, reduction="none")
total = sum(w * loss for w, loss in zip(importance(net, X), losses))
total.backward()
""",
        {"net.weight": cut("detach", "detach"), "m.weight": REACHED},
    ),
    "a metric in numpy as the loss": Case(
        """
def error_rate(logits, target):
    predicted = logits.detach().numpy().argmax(1)  # <-
    return 1.0 - float((predicted == target.numpy()).mean())
m = nn.Linear(4, 4)
loss = torch.tensor(error_rate(m(X), Y), requires_grad=True)
loss.backward()
""",
        {"m.weight": cut("detach", "detach", inferred=True)},
    ),
    "copies stacked": Case(
        """
parts, head = nn.ModuleList(nn.Linear(4, 4) for _ in range(3)), nn.Linear(4, 4)
means = [torch.mean(part(X), 0) for part in parts]
z = torch.stack([torch.tensor(mean) for mean in means])  # <-
F.cross_entropy(head(z), Y[:3]).backward()
""",
        {"parts[0].weight": cut("copy", "tensor"), "parts[2].weight": cut("copy", "tensor"), "head.weight": REACHED},
    ),
    "a teacher that is a moving average": Case(
        """
student, teacher, predictor = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
teacher.load_state_dict(student.state_dict())
def update():
    with torch.no_grad():
        for kept, new in zip(teacher.parameters(), student.parameters()):
            kept.mul_(0.9).add_(new, alpha=0.1)
update()
target = teacher(X).detach()  # <-
F.mse_loss(predictor(student(X)), target).backward()
""",
        {"teacher.weight": cut("detach", "detach"), "student.weight": REACHED, "predictor.weight": REACHED},
    ),
    "a student that only reaches the loss through the average": Case(
        """
student, teacher = nn.Linear(4, 4), nn.Linear(4, 4)
with torch.no_grad():  # off
    for kept, new in zip(teacher.parameters(), student.parameters()):
        kept.copy_(new)  # <-
F.mse_loss(teacher(X), X).backward()
""",
        {"student.weight": cut("no-grad", "copy_"), "teacher.weight": REACHED},
    ),
    "a student made by deepcopy": Case(
        """
teacher = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
student = copy.deepcopy(teacher)  # <-
F.cross_entropy(student(X), Y).backward()
""",
        {"teacher[0].weight": cut("copy"), "student[0].weight": REACHED},
    ),
    "a penalty on a gradient that is a number": Case(
        """
critic, scale = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)), nn.Parameter(torch.ones(()))
x = X.clone().requires_grad_(True)
(slope,) = torch.autograd.grad(critic(x).sum(), x)  # <-
penalty = ((slope.norm(dim=1) - scale) ** 2).mean()
penalty.backward()
""",
        {"critic[0].weight": cut("first-order"), "scale": REACHED},
    ),
    "a hidden state that is always cut": Case(
        """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.out = nn.Linear(4, 4), nn.GRUCell(4, 4), nn.Linear(4, 4)
        self.start = nn.Linear(4, 4)
    def forward(self, xs):
        h, outputs = self.start(xs[0]), []
        for x in xs:
            h = self.cell(self.embed(x), h.detach())  # <-
            outputs.append(self.out(h))
        return torch.stack(outputs)
m = Reader()
F.cross_entropy(m(X[:, None]).squeeze(1), Y).backward()
""",
        {"m.start.weight": cut("detach", "detach"), "m.cell.weight_hh": REACHED, "m.embed.weight": REACHED},
    ),
    "modules in a dict": Case(
        """
class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.routes = {"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)}
        self.head = nn.Linear(4, 4)
    def forward(self, x):
        outputs = {key: route(x) for key, route in self.routes.items()}
        outputs["b"] = outputs["b"].data  # <-
        return self.head(outputs["a"] + outputs["b"])
m = Router()
F.cross_entropy(m(X), Y).backward()
""",
        {"m.routes['b'].weight": cut("data", "data"), "m.routes['a'].weight": REACHED},
    ),
    "functional_call with detached parameters": Case(
        """
from torch.func import functional_call
m, head = nn.Linear(4, 4), nn.Linear(4, 4)
fast = {name: p.detach() for name, p in m.named_parameters()}  # <-
z = functional_call(m, fast, (X,))
F.cross_entropy(head(z), Y).backward()
""",
        {"m.weight": cut("detach", "detach", distance=1), "m.bias": cut("detach"), "head.weight": REACHED},
    ),
    "an inner loop that forgets the outer": Case(
        """
from torch.func import functional_call
m = nn.Linear(4, 4)
meta = nn.Parameter(torch.ones(4))
fast = {name: p.clone() for name, p in m.named_parameters()}
inner = F.cross_entropy(functional_call(m, fast, (X * meta,)), Y)
gradients = torch.autograd.grad(inner, list(fast.values()))  # <-
fast = {name: p - 0.1 * g for (name, p), g in zip(fast.items(), gradients)}
F.cross_entropy(functional_call(m, fast, (X,)), Y).backward()
""",
        {"m.weight": REACHED, "meta": cut("first-order", "autograd.grad")},
    ),
    "a decoder tied by a copy": Case(
        """
class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(4, 3), nn.Linear(3, 4)
    def forward(self, x):
        with torch.no_grad():  # off
            code = self.encode(x)  # <-
        self.decode.weight.data = self.encode.weight.data.t()
        return self.decode(code)
m = Autoencoder()
F.mse_loss(m(X), X).backward()
""",
        {"m.encode.bias": cut("no-grad", "linear"), "m.decode.bias": REACHED},
    ),
    "a hypernetwork that fills parameters": Case(
        """
class Hyper(nn.Module):
    def __init__(self):
        super().__init__()
        self.generate, self.target = nn.Linear(4, 16), nn.Linear(4, 4)
    def forward(self, x):
        self.target.weight = nn.Parameter(self.generate(x.mean(0)).view(4, 4))  # <-
        return self.target(x)
m = Hyper()
F.cross_entropy(m(X), Y).backward()
""",
        {"m.generate.weight": cut("copy", "nn.Parameter"), "m.target.bias": REACHED},
    ),
    "quantised activations": Case(
        """
class Quantise(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.levels, self.range = levels, nn.Parameter(torch.tensor(2.0))
    def forward(self, x):
        step = self.range / self.levels
        return torch.round(x / step) * step  # <-
m = nn.Sequential(nn.Linear(4, 4), Quantise(4), nn.Linear(4, 4))
F.cross_entropy(m(X), Y).backward()
""",
        {"m[0].weight": cut("nondifferentiable", "round"), "m[1].range": REACHED, "m[2].weight": REACHED},
    ),
    "an energy computed with numpy": Case(
        """
def energy(positions):
    points = positions.detach().numpy()  # <-
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    return float(np.exp(-distances).sum())
positions, scale = nn.Parameter(torch.randn(5, 2)), nn.Parameter(torch.ones(()))
(scale * energy(positions)).backward()
""",
        {"positions": cut("detach", "detach", inferred=True), "scale": REACHED},
    ),
    "a loss that is averaged over numbers": Case(
        """
class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0
    def add(self, value):
        self.total += value
        self.count += 1
    def mean(self):
        return self.total / self.count
m, meter = nn.Linear(4, 4), Meter()
for x, y in zip(X.split(3), Y.split(3)):
    meter.add(F.cross_entropy(m(x), y).item())  # <-
loss = torch.tensor(meter.mean(), requires_grad=True)
loss.backward()
""",
        {"m.weight": cut("value", "item", inferred=True)},
    ),
    "a discriminator step with the generator's parameters": Case(
        """
generator, discriminator = nn.Linear(4, 4), nn.Linear(4, 1)
fake = generator(X).detach()  # <-
loss = F.softplus(discriminator(fake)).mean() + F.softplus(-discriminator(X)).mean()
loss.backward()
""",
        {"generator.weight": cut("detach", "detach"), "discriminator.weight": REACHED},
    ),
    "a value head that the advantage cuts": Case(
        """
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.actor, self.critic = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
    def forward(self, x):
        h = self.body(x).tanh()
        return torch.distributions.Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)
agent = Agent()
choice, value = agent(X)
action, reward = choice.sample(), torch.rand(6)
advantage = (reward - value).detach()  # <-
loss = -(choice.log_prob(action) * advantage).mean()
loss.backward()
""",
        {"agent.critic.weight": cut("detach", "detach"), "agent.actor.weight": REACHED, "agent.body.weight": REACHED},
    ),
    "embeddings looked up by rounded positions": Case(
        """
class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.locate, self.table = nn.Linear(4, 1), nn.Embedding(9, 4)
    def forward(self, x):
        index = (self.locate(x).squeeze(-1) + 4).clamp(0, 8)
        return self.table(index.to(torch.long))  # <-
m = Positions()
F.cross_entropy(m(X), Y).backward()
""",
        {"m.locate.weight": cut("nondifferentiable", "to"), "m.table.weight": REACHED},
    ),
    "the layer before a resampling that goes through PIL-like arrays": Case(
        """
class Resize:
    def __init__(self, factor):
        self.factor = factor
    def __call__(self, image):
        pixels = np.asarray(image.detach())  # <-
        pixels = pixels.repeat(self.factor, axis=-1)[..., ::self.factor]
        return torch.from_numpy(np.ascontiguousarray(pixels))
front, back, resize = nn.Linear(4, 4), nn.Linear(4, 4), Resize(2)
F.cross_entropy(back(resize(front(X))), Y).backward()
""",
        {"front.weight": cut("detach", "detach", inferred=True), "back.weight": REACHED},
    ),
    "an auxiliary head behind a flag": Case(
        """
class Net(nn.Module):
    def __init__(self, aux):
        super().__init__()
        self.body, self.head, self.aux_head, self.aux = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2), aux
    def forward(self, x):
        h = self.body(x)
        if self.aux:
            return self.head(h), self.aux_head(h)
        return self.head(h), None
m = Net(aux=False)
F.cross_entropy(m(X)[0], Y).backward()
""",
        {"m.aux_head.weight": UNUSED, "m.body.weight": REACHED},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_fault_is_found(tmp_path, name):
    check(CASES[name], tmp_path / "program.py")
