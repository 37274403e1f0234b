"""What the tracer promises whoever holds it: services, bounds, threads, and that errors of its own stay its own."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tests.dataflow.tracing import Trace
from whygrad.model import PathEnd as PathKind
from whygrad.probe.dataflow import window as window_module
from whygrad.probe.dataflow.nodes import Node
from whygrad.probe.source import place

X = torch.ones(5, 4)


@pytest.fixture
def trace():
    trace = Trace()
    with trace.on():
        yield trace
    trace.flow.switch_off()
    assert not trace.guard.failures


def test_an_intermediate_is_known_by_the_line_that_made_it(trace):
    w = torch.ones(3, requires_grad=True)
    h = w * 2

    site = trace.flow.made_at(h)

    assert site is not None
    assert place(site).code == "h = w * 2"
    assert trace.flow.made_at(torch.ones(2)) is None


def test_the_line_of_an_intermediate_outlives_the_step_if_the_tensor_does(trace):
    w = torch.ones(3, requires_grad=True)
    kept, dropped = w * 2, w * 3
    del dropped

    trace.flow.forget()
    trace.flow.forget()

    assert place(trace.flow.made_at(kept)).code == "kept, dropped = w * 2, w * 3"
    assert len(trace.flow._made) == 1


def test_a_leaf_is_known_by_the_line_that_made_it(trace):
    loss = torch.zeros((), requires_grad=True)

    assert place(trace.flow.made_at(loss)).code == "loss = torch.zeros((), requires_grad=True)"


def test_uses_of_parameters_are_counted(trace):
    m = nn.Linear(4, 2)
    m(m(X[:, :4])[:, :1].expand(5, 4))

    use = trace.flow.uses[id(m.weight)]

    assert use.ref() is m.weight
    assert use.count == 2
    assert place(use.site).code == "m(m(X[:, :4])[:, :1].expand(5, 4))"
    trace.flow.uses = {}
    assert trace.flow.uses == {}


def test_uses_within_a_teacher_on_the_fused_path_are_counted(trace):
    m = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    with torch.no_grad():
        m(X[None])

    assert trace.flow.uses[id(m.linear1.weight)].count == 1


def test_freezing_and_reading_the_gradient_of_an_intermediate_are_reported(trace):
    m = nn.Linear(4, 2)
    m.bias.requires_grad = False
    h = m(X)
    h.sum().backward()
    with pytest.warns(UserWarning, match="not a leaf"):
        assert h.grad is None

    assert [shape for shape, _ in trace.freezes] == [(2,)]
    assert place(trace.freezes[0][1]).code == "m.bias.requires_grad = False"
    assert [shape for shape, _ in trace.reads] == [(5, 2)]
    assert place(trace.reads[0][1]).code == "assert h.grad is None"


def test_a_kept_gradient_is_not_reported(trace):
    w = torch.ones(3, requires_grad=True)
    h = w * 2
    h.retain_grad()
    h.sum().backward()

    assert h.grad is not None
    assert trace.reads == []


def test_released_tensors_can_be_swapped(trace):
    a, b = nn.Linear(4, 2), nn.Linear(4, 2)
    for m in (a, b):
        m(X).sum().backward()
        m.requires_grad_(False)
    before = a.weight.detach().clone()
    a.weight.grad = b.weight.grad = None  # torch refuses to swap what others refer to

    for tensor in (a.weight, b.weight):
        trace.flow.release(tensor)
    torch.utils.swap_tensors(a.weight, b.weight)

    assert torch.equal(b.weight, before)


def test_what_is_paused_is_not_recorded(trace):
    w = torch.ones(3, requires_grad=True)
    trace.flow.paused = True
    h = w * 2
    trace.flow.paused = False

    assert trace.flow.made_at(h) is None


@pytest.mark.usefixtures("trace")
def test_no_tensor_is_kept_alive():
    w = torch.ones(1000, requires_grad=True)
    h = w * 2
    value = h.detach()
    array = value.numpy()
    references = [weakref.ref(t) for t in (h, value, array)]
    h.sum().backward()

    del h, value, array

    assert [reference() for reference in references] == [None, None, None]


def test_a_graph_is_not_kept_alive():
    freed = []

    class Note(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.note = Noting(freed)
            return x * 2

        @staticmethod
        def backward(_ctx, gradient):
            return gradient

    trace = Trace()
    with trace.on():
        h = Note.apply(torch.ones(3, requires_grad=True))
        assert freed == []
        del h
        gc.collect()
        assert freed == [True]
    trace.flow.switch_off()


class Noting:
    """Notes when it is collected."""

    def __init__(self, freed):
        self.freed = freed

    def __del__(self):
        self.freed.append(True)


def test_nothing_grows_with_the_steps(trace):
    m, optimizer = nn.Linear(4, 4), None
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
    state = torch.zeros(4)
    alive = []
    for _ in range(40):
        optimizer.zero_grad()
        h = m(X)
        state = 0.9 * state + h.detach().mean(0)
        (h.sum() * float(state.sum())).backward()
        optimizer.step()
        trace.flow.forget()
        gc.collect()
        alive.append(sum(type(thing) is Node for thing in gc.get_objects()))

    assert max(alive[20:]) == min(alive[20:])
    assert len(trace.flow._made) <= 5


def test_a_step_that_is_too_large_is_called_so(monkeypatch):
    monkeypatch.setattr(window_module, "MAX_NODES", 100)
    trace = Trace()
    with trace.on():
        used, unused = torch.ones(3, requires_grad=True), nn.Parameter(torch.ones(3))
        h = unused * 1
        for _ in range(200):
            used = used * 1.01
        used.sum().backward()

        assert len(trace.flow._observer.window.nodes) == 100
        assert trace.explain(unused).kind is PathKind.UNKNOWN
    trace.flow.switch_off()
    del h


def test_preparing_data_leaves_no_nodes(trace):
    x = torch.rand(100, 4)
    for _ in range(50):
        x = (x - x.mean(0)) / x.std(0)
        x = torch.cat([x[50:], x[:50]]).contiguous()

    assert trace.flow._observer.window.created == 0


def test_the_step_is_searched_once_for_many_parameters(trace, monkeypatch):
    layers = [nn.Linear(4, 4) for _ in range(30)]
    h = X
    for layer in layers:
        h = layer(h)
    F.mse_loss(h.detach() * nn.Parameter(torch.ones(4)), X).backward()
    made = []
    original = window_module.Window.__init__
    monkeypatch.setattr(window_module.Window, "__init__", lambda self, *a: made.append(1) or original(self, *a))

    kinds = {trace.explain(layer.weight).kind for layer in layers}
    first = trace.flow._explanation

    assert kinds == {PathKind.CUT}
    trace.explain(layers[0].bias)
    assert trace.flow._explanation is first


def test_nothing_is_left_behind():
    seen = {
        "apply": lambda: torch.autograd.Function.__dict__["apply"],
        "parameter": lambda: nn.Parameter.__dict__["__new__"],
        "from_numpy": lambda: torch.from_numpy,
        "inference": lambda: (torch.inference_mode.__enter__, torch.inference_mode.__exit__),
        "thread": lambda: threading.Thread._bootstrap_inner,
        "modes": torch._C._len_torch_function_stack,
    }
    before = {key: look() for key, look in seen.items()}
    trace = Trace()
    with trace.on():
        assert {key for key, look in seen.items() if look() != before[key]} == set(seen)
        nn.Linear(4, 4)(X).sum().backward()
    trace.flow.switch_off()

    assert {key: look() for key, look in seen.items()} == before


def test_an_error_of_its_own_is_reported_and_the_program_goes_on(monkeypatch):
    trace = Trace()
    monkeypatch.setattr(type(trace.flow._observer.recorder), "call", lambda *_, **__: 1 / 0)
    m = nn.Linear(4, 2)
    with trace.on():
        m(X).sum().backward()
        answer = trace.flow.explain(m.weight)
    trace.flow.switch_off()

    assert m.weight.grad is not None
    assert list(trace.guard.failures) == ["tracer"]
    assert "ZeroDivisionError" in trace.guard.failures["tracer"]
    assert answer.kind is PathKind.UNKNOWN


def test_the_users_interrupt_passes(monkeypatch):
    trace = Trace()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(trace.flow._observer.recorder), "call", interrupt)
    with trace.on(), pytest.raises(KeyboardInterrupt):
        torch.ones(2, requires_grad=True) * 2
    trace.flow.switch_off()


def test_a_thread_that_outlives_the_tracer_gets_rid_of_it():
    trace, go, done = Trace(), threading.Event(), threading.Event()
    seen = []

    def work():
        torch.ones(2) + 1
        seen.append(torch._C._len_torch_function_stack())
        go.wait(5)
        for _ in range(3):
            torch.add(torch.ones(2), 1)
        seen.append(torch._C._len_torch_function_stack())
        done.set()

    with trace.on():
        thread = threading.Thread(target=work)
        thread.start()
        while not seen:
            pass
        trace.flow.switch_off()
        go.set()
        thread.join()

    assert done.is_set()
    assert seen == [1, 0]


def test_the_workers_of_a_pool_are_watched_task_by_task():
    trace = Trace()
    with ThreadPoolExecutor(1) as pool:
        with trace.on():
            w = torch.ones(3, requires_grad=True)
            h = pool.submit(lambda: w * 2).result()
            assert trace.flow.made_at(h) is not None
            trace.flow.switch_off()
        assert pool.submit(torch._C._len_torch_function_stack).result() == 0


def test_a_fused_module_in_eval_mode_computes_the_same_bits(trace):
    m = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2, enable_nested_tensor=False)
    m.eval()
    trace.flow.switch_off()
    with torch.no_grad():
        plain = m(X[None])
        trace.flow.switch_on()
        traced = m(X[None])

    assert torch.equal(plain, traced)
    assert torch._C._len_torch_function_stack() == 1


ODD = {
    "sparse": lambda: torch.eye(3).to_sparse().requires_grad_() * 2,
    "sparse rows": lambda: torch.eye(3).to_sparse_csr() @ torch.ones(3, requires_grad=True),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], requires_grad=True) * 2,
    "complex": lambda: torch.ones(3, dtype=torch.complex64, requires_grad=True).conj().real,
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8).dequantize(),
    "on no device": lambda: torch.ones(3, device="meta", requires_grad=True) * 2,
    "of no elements": lambda: torch.ones(0, requires_grad=True).sum().item(),
    "expanded": lambda: torch.ones(1, requires_grad=True).expand(1000, 1000)[::7] + 1,
    "in inference mode": lambda: inference(torch.ones(3, requires_grad=True)),
    "of a subclass": lambda: torch.ones(3, requires_grad=True).as_subclass(Sub) * 2,
    "in torch.func": lambda: torch.func.vmap(torch.func.grad(lambda x: (x * x).sum()))(torch.ones(2, 3)),
    "forward mode": lambda: torch.func.jvp(torch.sin, (torch.ones(3),), (torch.ones(3),)),
    "by keyword": lambda: torch.add(input=torch.ones(3, requires_grad=True), other=torch.ones(3)),
    "out": lambda: torch.add(torch.ones(3), 1, out=torch.empty(3)),
    "foreach": lambda: torch._foreach_add([torch.ones(3, requires_grad=True)], 1.0),
    "a name that is a number": lambda: torch.ones(3, requires_grad=True)[torch.tensor(1)],
    "set": lambda: torch.empty(0).set_(torch.ones(3)),
}


def inference(w):
    with torch.inference_mode():
        h = w * 2
        return h.add_(1).view(3)


class Sub(torch.Tensor):
    """A user's kind of tensor."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize("kind", ODD)
def test_odd_tensors_do_no_harm(kind):
    ODD[kind]()


def test_a_flop_counter_counts_the_same(trace):
    def flops():
        with FlopCounterMode(display=False) as counter:
            nn.Linear(4, 4)(X).sum().backward()
        return counter.get_total_flops()

    traced = flops()
    trace.flow.switch_off()

    assert traced == flops() > 0


def test_grad_mode_that_was_off_before_is_not_blamed_on_a_line():
    trace = Trace()
    m, head = nn.Linear(4, 4), nn.Linear(4, 4)
    with torch.no_grad():
        with trace.on():
            z = m(X)
            torch.set_grad_enabled(True)
            head(z).sum().backward()
            (cut,) = trace.explain(m.weight).cuts
        torch.set_grad_enabled(False)
        trace.flow.switch_off()

    assert (cut.kind, cut.mode_place, cut.mode_text) == ("no-grad", None, "")
    assert cut.place.code == "z = m(X)"


def test_a_lost_term_is_named_with_its_nearest_parameters(trace):
    body, gate, head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
    h = body(X)
    weights = gate(h).softmax(-1)
    balance = (weights.mean(0) ** 2).sum()
    loss = (head(h) * weights).pow(2).mean() + 0.1 * balance.item()
    loss.backward()

    ((cut, parameters),) = trace.flow.lost_terms()

    assert (cut.kind, cut.operation) == ("value", "item")
    assert cut.place.code.startswith("loss = ")
    assert {id(p) for p in parameters} == {id(gate.weight), id(gate.bias)}
    assert trace.explain(gate.weight).kind is PathKind.REACHED
