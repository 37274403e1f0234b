"""The words of whygrad as types: what every layer shares.

No torch and no I/O here: the probe fills these in, the run file stores them, rules and reports read them.

Words (one per idea, everywhere): run, step, parameter, output, gradient, leaf, intermediate, cut, statistic, run file,
evidence, rule, finding, rank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How bad a finding is.

    error: something that was meant to learn cannot, or the numbers are broken.
    warning: it learns badly, with evidence.
    info: worth knowing, often meant.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def order(self) -> int:
        """Return 0 for the most severe level, counting up."""
        return list(Severity).index(self)


class Role(StrEnum):
    """Which tensor a statistic describes."""

    GRADIENT = "gradient"  # `.grad` of a parameter as its optimizer step uses it
    BACKWARD = "backward"  # as the last backward before that step left it, unscaled; where it differs
    WEIGHT = "weight"  # the parameter before its step
    UPDATE = "update"  # the parameter after its step minus before; zeros are elements that did not change
    OUTPUT = "output"  # what a module returned in forward
    VARIATION = "variation"  # what a module returned, minus its mean over the samples (dimension 0); a sample of it
    OUTPUT_GRADIENT = "output_gradient"  # the gradient of the loss with respect to that output
    EARLY_GRADIENT = "early_gradient"  # that of the first call, where a step calls a module four times or more
    LATE_GRADIENT = "late_gradient"  # that of the last call


class PathEnd(StrEnum):
    """What became, in the traced steps, of the path from a parameter to the loss."""

    REACHED = "reached"  # the graph of some backward pass reached it
    CUT = "cut"  # its values reach the loss, but the graph is cut on every way
    IGNORED = "ignored"  # it is used, and nothing computed from it reaches the loss
    UNUSED = "unused"  # no operation took it
    NON_LEAF = "non-leaf"  # it is the output of an operation, so `.grad` is never filled
    FROZEN = "frozen"  # requires_grad is False
    UNDEFINED = "undefined"  # in the graph, but the gradient that came back was None
    CLEARED = "cleared"  # it had a gradient, which was cleared before the step
    RESTRICTED = "restricted"  # backward(inputs=...) or autograd.grad did not ask for it
    NO_BACKWARD = "no-backward"  # no backward pass ran in the step
    UNKNOWN = "unknown"  # too much happened in the step to remember all of it


class CutKind(StrEnum):
    """How a path is cut."""

    DETACH = "detach"  # detach()
    DATA = "data"  # .data
    VALUE = "value"  # left torch as a number, a list or an array: item(), float(), tolist(), numpy()
    COPY = "copy"  # copied into a fresh tensor: torch.tensor(x), nn.Parameter(x), from_numpy, deepcopy
    NO_GRAD = "no-grad"  # computed while grad mode was off
    NONDIFFERENTIABLE = "nondifferentiable"  # an operation without a derivative, or with one that is 0 everywhere
    CUSTOM = "custom"  # in an autograd.Function that returns no gradient, or nothing but zeros
    OVERWRITTEN = "overwritten"  # its value was replaced in place or through `.data`
    OPAQUE = "opaque"  # inside a compiled or scripted module
    FIRST_ORDER = "first-order"  # a gradient that was taken without create_graph
    FROZEN = "frozen"  # requires_grad was off while it was used


STATISTICS: tuple[str, ...] = (
    "count",
    "sum",
    "sum_squares",
    "sum_abs",
    "max_abs",
    "zeros",
    "nans",
    "infs",
)
"""The columns of a statistics matrix, float64 each, in this order. All add up over tensors, except `max_abs`, which
takes the maximum. `count` counts every element looked at; sums and the maximum run over the finite elements only."""

HISTOGRAM_BINS = 32
"""Bins of the log2-size histogram. Bin k counts finite, nonzero elements with floor((floor(log2|x|) + 48) / 2) == k,
clamped to 0..31: two powers of two per bin, from below 2**-46 (bin 0) to 2**14 and above (bin 31)."""
HISTOGRAM_LOWEST_EXPONENT = -48
HISTOGRAM_EXPONENTS_PER_BIN = 2


@dataclass(frozen=True, slots=True)
class Statistics:
    """Additive statistics of one tensor, or of several added up."""

    count: float = 0.0
    sum: float = 0.0
    sum_squares: float = 0.0
    sum_abs: float = 0.0
    max_abs: float = 0.0
    zeros: float = 0.0
    nans: float = 0.0
    infs: float = 0.0

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.count + other.count,
            self.sum + other.sum,
            self.sum_squares + other.sum_squares,
            self.sum_abs + other.sum_abs,
            max(self.max_abs, other.max_abs),
            self.zeros + other.zeros,
            self.nans + other.nans,
            self.infs + other.infs,
        )

    @property
    def finite(self) -> float:
        """Return the number of finite elements."""
        return self.count - self.nans - self.infs

    @property
    def mean(self) -> float:
        """Return the mean of the finite elements; NaN if there is none."""
        return self.sum / self.finite if self.finite > 0 else math.nan

    @property
    def mean_abs(self) -> float:
        """Return the mean size |x| of the finite elements; NaN if there is none."""
        return self.sum_abs / self.finite if self.finite > 0 else math.nan

    @property
    def rms(self) -> float:
        """Return the root mean square of the finite elements; NaN if there is none."""
        return math.sqrt(self.sum_squares / self.finite) if self.finite > 0 else math.nan

    @property
    def l2(self) -> float:
        """Return the Euclidean norm of the finite elements."""
        return math.sqrt(self.sum_squares)

    @property
    def std(self) -> float:
        """Return the sample standard deviation (n - 1) of the finite elements; NaN below two elements."""
        n = self.finite
        if n < 2:
            return math.nan
        return math.sqrt(max(0.0, (self.sum_squares - self.sum * self.sum / n) / (n - 1)))

    @property
    def zero_share(self) -> float:
        """Return the share of elements that are exactly zero; NaN for an empty tensor."""
        return self.zeros / self.count if self.count > 0 else math.nan

    @property
    def nonfinite(self) -> float:
        """Return the number of NaN and Inf elements."""
        return self.nans + self.infs


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's program.

    `code` is the source line, stripped. `excerpt` holds (line number, text) pairs of the line and its neighbours, so
    that a report can show them where the source file is not at hand.
    """

    file: str
    line: int
    function: str = ""
    code: str = ""
    excerpt: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Module:
    """A module of a root model that ran or holds parameters."""

    id: int
    name: str  # qualified name in its root model; "" for the root itself
    root: str  # variable or attribute that holds the root model; the root's class name where none is known
    type: str  # class name
    made_at: Place | None = None  # innermost user line that constructed it
    order: int | None = None  # position of its first call, over all modules of the run; None: never called
    calls: int = 0  # calls with grad enabled in recorded steps
    training: bool | None = None  # `module.training` at the last such call
    taught: int = 0  # watched steps before whose last backward pass it was called as a root model
    taught_in_eval: int = 0  # of those: it was in eval mode at that call
    eval_at: Place | None = None  # line of the last eval() call on it
    has_modes: bool = False  # it computes something else in eval mode: Dropout, a norm with running statistics
    fresh: bool = False  # its running statistics are those it was made with


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor that was meant to learn: a parameter of a model, or a leaf that an optimizer or the loss's graph holds.

    Counts run over the whole run, recorded step or not, unless said otherwise.
    """

    id: int
    name: str  # qualified; led by the root's name and a dot where the program has several roots
    shape: tuple[int, ...]
    dtype: str  # "float32", without "torch."
    aliases: tuple[str, ...] = ()  # further qualified names of the same tensor (weight tying)
    root: str = ""  # name of the root model; "" where no module holds it
    module: str = ""  # qualified name of the module that holds it, in its root
    module_type: str = ""  # class name of that module
    attribute: str = ""  # its name in that module, or the variable that holds it
    registered: bool = True  # found by `named_parameters()` of a root model
    held_in: str = ""  # where it was found if not registered: "list", "dict", "attribute", "buffer", "optimizer", ...
    stale: bool = False  # an optimizer holds it, no module does any more, and a module once did
    requires_grad: bool = True  # at the end of the run
    made_at: Place | None = None  # user line that made it (or the layer it belongs to)
    written_at: Place | None = None  # user line that last wrote its value in place before its first step
    assigned_at: Place | None = None  # user line that put it, or the container it lies in, on its module
    frozen_at: Place | None = None  # user line that last set requires_grad to False
    order: int | None = None  # forward order of the module that holds it
    optimizers: tuple[int, ...] = ()  # ids of the optimizers that ever held it
    reached: int = 0  # backward passes whose graph reached it (of those whose graph was walked)
    walked: int = 0  # backward passes whose graph was walked since it was first seen
    steps: int = 0  # steps of its optimizers; where none holds it, all steps since it was first seen
    gradient_steps: int = 0  # of those: its gradient was there (not None)
    frozen_steps: int = 0  # of those: requires_grad was False
    first_gradient_step: int | None = None
    last_gradient_step: int | None = None
    uses: int | None = None  # operations of traced steps that took it as input; None: no step was traced
    used_at: Place | None = None  # the last of them
    changed_outside: int = 0  # steps between which its value changed and no optimizer step of its own did it
    compared: int = 0  # pairs of successive steps of an optimizer of its own between which its value was compared
    overwritten: int = 0  # of those: something had written it in between
    restored: int = 0  # of those: it was again what it had been before the step
    undone: float = 0.0  # added over those: the share of the way from its first value that the write took back
    replaced: int = 0  # of those: the write moved it by at least half of its size
    unmoved: float | None = None  # of a half precision weight: share of elements that still stand where they began
    loads: int = 0  # calls of load_state_dict that wrote it since it was first seen
    copy_of: int | None = None  # id of the parameter that it was deep-copied from
    copied_at: Place | None = None  # and where
    copied_step: int | None = None  # steps that were done by then
    evaluations: int = 0  # of copies and copied ones: calls of their model without grad, and of its eval()
    rows: int = 0  # size of dimension 0 of a tensor of two or more dimensions
    silent_rows: int = 0  # of those: gradient exactly zero in every recorded step
    loaded: bool = False  # its value came from load_state_dict
    path: PathEnd | None = None  # None: no backward pass was traced
    ends_at: Place | None = None  # where the path ends, unless it is cut: the last use, or the operation that made it
    ends_with: str = ""  # the operation there

    @property
    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Cut:
    """A place where the path of the gradient to a parameter ends, found in traced steps."""

    id: int
    parameter: int  # id
    kind: CutKind
    operation: str  # "argmax", "detach", "item"
    place: Place | None = None  # of the operation
    within: str = ""  # library function that the line calls and that holds the operation: "Normal.sample"
    reentry: Place | None = None  # where a value that left torch comes back
    mode: str = ""  # what switched grad mode off: "torch.no_grad()", "@torch.no_grad() on encode"
    mode_at: Place | None = None  # and where; of an autograd.Function, where its backward returns
    inferred: bool = False  # linked by value or by the source's text, not by identity
    distance: int = 0  # operations between the parameter and the cut
    as_target: bool = False  # its value is only what a loss compares predictions with
    steps: int = 1  # traced steps it was found in


@dataclass(frozen=True, slots=True)
class Output:
    """One tensor that a module returns: the module and its position in the returned structure."""

    id: int
    name: str  # qualified name of the module, with "[1]" or "['key']" for further tensors of a structure
    module: int  # id of the module
    order: int  # forward order
    shape: tuple[int, ...]  # at its first call
    dtype: str
    calls: int = 0  # times seen in recorded steps
    without_grad: int = 0  # of those: it did not require grad although grad mode was on
    gradient_calls: int = 0  # of those: a gradient arrived
    view_written: bool = False  # a view that was written in place later: a missing gradient then says nothing


@dataclass(frozen=True, slots=True)
class LossCall:
    """A loss function on one line, or a difference of prediction and target written by hand, in traced steps.

    Numbers are bounds over all its calls that a backward pass led back to; NaN where none was read. An activation is
    that of its input if only changes of shape, selections and casts lie between the two.
    """

    id: int
    function: str  # "cross_entropy"; "sub" and the like where it is written by hand
    place: Place | None = None
    reduction: str = ""
    calls: int = 0
    shape: tuple[int, ...] = ()  # of the input, at the first call
    target_shape: tuple[int, ...] = ()
    result_shape: tuple[int, ...] = ()  # that both broadcast to
    target_is_index: bool = False  # integers
    target_from_model: bool = False  # computed from parameters, and by no arithmetic from the program's data
    activation: str = ""  # "softmax", "sigmoid"; "" if none is the last operation on the input
    activation_at: Place | None = None  # line that calls it; where a container calls its module, that made the module
    inner_activation: str = ""  # likewise, of that activation's input
    inner_activation_at: Place | None = None
    softmax_at: Place | None = None  # the nearest softmax that the input was computed from by any operations
    parameters: tuple[int, ...] = ()  # ids of those that the input was computed from
    low: float = math.nan  # of the input
    high: float = math.nan
    sum_low: float = math.nan  # of its sums over the classes
    sum_high: float = math.nan
    exp_sum_low: float = math.nan  # of the sums of exp(input) over the classes
    exp_sum_high: float = math.nan
    target_low: float = math.nan
    target_high: float = math.nan
    target_negative: float = math.nan  # mean share of the target's elements below 0
    target_above_one: float = math.nan
    target_below_minus_one: float = math.nan


@dataclass(frozen=True, slots=True)
class SoftmaxCall:
    """A softmax or log_softmax on one line, in traced steps: along which dimension, and which one is used up later.

    A dimension is used up where the result, or its logarithm, is summed after a product, multiplied as a matrix,
    divided by its own sum, picked from, or compared with targets that are distributions. Dimensions are those of the
    result.
    """

    id: int
    function: str
    place: Place | None = None  # line that calls it; where a container calls its module, that made the module
    calls: int = 0
    shape: tuple[int, ...] = ()  # at the first call
    dim: int = 0
    smallest: int = 0  # size of that dimension over all calls
    largest: int = 0
    batch: int | None = None  # size of dimension 0 of what the losses take
    inner_activation: str = ""  # of its input, as in LossCall
    inner_activation_at: Place | None = None
    is_of_product: bool = False  # its input is a matrix product
    used_dims: tuple[int, ...] = ()
    used_by: tuple[str, ...] = ()  # how: "sum" or "product" ("product, right": it stands on the right), "renormalised",
    # "gather", "getitem", "nll_loss", "target"
    used_at: Place | None = None  # where first
    parameters: tuple[int, ...] = ()  # ids of those that its input was computed from
    nearest: tuple[int, ...] = ()  # of them, those of the last layers before it


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One optimizer object."""

    id: int
    name: str  # variable or attribute that holds it; its class name where none is known
    type: str  # class name
    made_at: Place | None = None
    stepped_at: Place | None = None  # user line of the last `step()`; None: never stepped
    steps: int = 0
    zero_grads: int = 0
    skipped: int = 0  # GradScaler.step calls that did not step it
    parameters: int = 0  # tensors it holds at the end of the run
    learning_rates: tuple[float, ...] = ()  # per group, as constructed
    last_learning_rates: tuple[float, ...] = ()  # per group, at its last step (or at the end, if it never stepped)
    zero_rate_steps: int = 0  # steps at which every group's learning rate was exactly 0
    scheduler: str = ""  # class name of the learning rate scheduler attached to it
    scheduler_made_at: Place | None = None
    scheduler_stepped_at: Place | None = None
    scheduler_steps: int = 0  # not counting the one its constructor makes


@dataclass(frozen=True, slots=True)
class Replica:
    """A model that DistributedDataParallel wraps: one copy on each rank, whose gradients it averages."""

    id: int  # counts from 0, in the order the wrappers were made
    root: str  # name of the root model, as `Parameter.root`
    parameters: tuple[int, ...] = ()  # ids of those it averages: they required grad when it was made
    world_size: int = 1
    find_unused_parameters: bool = False
    static_graph: bool = False
    hook: str = ""  # name of the communication hook that stands in for the average
    made_at: Place | None = None
    called_at: Place | None = None  # user line of its last call with grad enabled
    calls: int = 0  # calls with grad enabled
    local_calls: int = 0  # of those: under no_sync
    no_sync_at: Place | None = None  # user line that last entered no_sync
    outside_calls: int = 0  # calls in recorded steps of its modules, with grad enabled, that did not come through it
    outside_at: Place | None = None  # user line of the first of them
    backwards: int = 0  # backward passes that brought it gradients
    local_backwards: int = 0  # of those: the gradients were not averaged
    steps: int = 0  # optimizer steps on those gradients
    local_steps: int = 0  # of those: the last backward pass before it was not averaged
    first_local_step: int | None = None  # counts as `steps` does
    local_why: str = ""  # "no-sync", "outside" (of forward), "repeated" (backward), "unknown" (the wrapper is compiled)
    local_at: Place | None = None  # user line of the last backward pass before it


@dataclass(frozen=True, slots=True)
class Group:
    """One parameter group of an optimizer: what it holds and how it steps. NaN where a setting is not known."""

    id: int  # over all optimizers
    optimizer: int  # id
    position: int  # in `param_groups`
    parameters: tuple[int, ...] = ()  # ids of what it holds
    learning_rate: float = math.nan  # as constructed
    base_learning_rate: float = math.nan  # that its scheduler works from: `max_lr`, else `initial_lr`
    first_learning_rate: float = math.nan  # at its first step
    last_learning_rate: float = math.nan  # at its last step
    lowest_learning_rate: float = math.nan
    highest_learning_rate: float = math.nan
    steps: int = 0
    zero_rate_steps: int = 0  # of those: the rate was exactly 0
    rises: int = 0  # of those: the rate was above that of the step before
    weight_decay: float = 0.0
    decoupled: bool = False  # weight decay acts on the weight itself, not through the gradient
    momentum: float = math.nan  # of Adam and its kin, the first beta
    eps: float = math.nan
    rate_set_at: Place | None = None  # line that sets `group["lr"]`, where rates changed and no scheduler did it


class Deed(StrEnum):
    """What a line of the training loop does to the gradients that an optimizer is about to use."""

    BACKWARD = "backward"
    CLEAR = "clear"  # zero_grad() of the optimizer, or of a module that it trains
    CLEAR_BY_HAND = "clear-by-hand"  # they were gone, or zero, without one
    CLIP = "clip"  # clip_grad_norm_ or clip_grad_value_
    UNSCALE = "unscale"  # GradScaler.unscale_, which GradScaler.step calls where the program did not
    STEP = "step"
    SKIP = "skip"  # GradScaler.step left the optimizer's step out: some gradient was not finite
    SCHEDULE = "schedule"  # the learning rate scheduler steps


class Mark(StrEnum):
    """What else is known of a happening."""

    SCALED = "scaled"  # of a backward pass: the loss was multiplied by a GradScaler's scale
    ON_THE_WAY = "on-the-way"  # its loss reached what the optimizer holds on the way to what another one holds
    INPUT = "input"  # of a backward pass: it reached a leaf that is no parameter
    USED = "used"  # of a clear: the gradients were read, or the weights written, by hand before it
    EMPTY = "empty"  # of a step: there was no gradient, or only zeros
    REPLACED = "replaced"  # of a step: other gradients were assigned, by hand, in the place of those of backward


@dataclass(frozen=True, slots=True)
class Round:
    """What happened from one step of an optimizer to its next: rounds of equal happenings are counted together."""

    id: int
    optimizer: int  # id
    count: int
    first_step: int  # number of steps done, over all optimizers, when the first of them ended
    last_step: int  # when the last of them ended
    first: bool = False  # the optimizer's first round: there was no step before
    closure: bool = False  # the step ran a closure
    cut_short: bool = False  # only its first happenings are known
    unfinished: bool = False  # the run ended, or was written, before its step


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened in a round; equal ones in a row are one.

    A round holds what changes the gradients of its optimizer, every backward pass, and the steps of the others.
    """

    round: int  # id
    position: int  # counts from 0
    deed: Deed
    place: Place | None = None
    times: int = 1
    optimizers: tuple[int, ...] = ()  # ids of those whose gradients it changed; of a step or schedule, whose it is
    marks: tuple[str, ...] = ()  # values of Mark


@dataclass(frozen=True, slots=True)
class Clip:
    """A line that clips gradients, and how much it took away."""

    id: int
    kind: str  # "norm" or "value"
    place: Place | None = None
    optimizers: tuple[int, ...] = ()  # ids of those whose gradients it changed
    calls: int = 0
    empty_calls: int = 0  # of those: it got no tensor
    used_up: int = 0  # of those: from an iterator, such as a generator that yields each tensor once
    measured: int = 0  # calls whose norm was looked at and was above 0; none of kind "value"
    clipped: int = 0  # of those: above the limit
    factor: float | None = None  # gradient before through gradient after, geometric mean over the measured calls
    limit: float | None = None  # of the last call
    norm: float | None = None  # before clipping, geometric mean over the measured calls
    scale: float | None = None  # the largest loss scale that the gradients still carried


@dataclass(frozen=True, slots=True)
class LossScale:
    """A line that calls backward, and the constant that the loss was multiplied by last, as far as its graph shows."""

    id: int
    place: Place | None = None
    passes: int = 0  # of those whose graph was walked
    factor: float = 1.0  # product of the constants; a GradScaler's scale is left out
    mean: bool = False  # behind them stands a mean over the batch
    divided_by: int = 0  # by a framework, on the way from the program's loss; 0: none did


@dataclass(frozen=True, slots=True)
class Step:
    """One optimizer step; one backward where no optimizer holds what it reaches."""

    id: int  # counts from 0, over all optimizers
    optimizer: int | None  # id of the optimizer; None for a manual step
    time_s: float  # since the run began
    backwards: int = 0  # backward passes since the previous step of the same optimizer
    loss: float | None = None  # the (first) value of the last loss that backward ran on
    learning_rates: tuple[float, ...] = ()
    recorded: bool = False  # full statistics were taken
    gradient_l2: float | None = None  # norm over all gradients of the step; None where it was not recorded
    weight_l2: float | None = None  # norm over all weights before the step
    update_l2: float | None = None  # norm over all updates (of large tensors, a sample)
    backward_l2: float | None = None  # norm over all gradients of the optimizer after its last backward, unscaled
    position: int | None = None  # steps of the same optimizer before it: a long run's file lacks some; None: not known
    recorded_before: int | None = None  # recorded steps before it, likewise


@dataclass(frozen=True, slots=True)
class Feed:
    """Data: a tensor without a gradient that enters a model, a layer that is to learn, or a regression loss.

    A sample is an entry of dimension 0, a column one of dimension 1. Looks are taken in recorded steps.
    """

    id: int
    name: str  # what takes it, and which argument: "features.0[0]", "model['image']"; of a target: the operation
    kind: str  # "model": argument of a root model; "layer": of a module whose own parameters learn; "target"
    module: int | None  # id of the module that takes it
    shape: tuple[int, ...]  # at its first look
    dtype: str
    looks: int = 0  # at two samples or more
    constant_looks: int = 0  # of those: all samples were equal
    expanded: bool = False  # one sample, repeated without a copy: the program says that all are equal
    mean: float = math.nan  # over all looks
    std: float = math.nan
    low: float = math.nan
    high: float = math.nan
    smallest_std: float = math.nan  # of a column, at the first look at 8 samples or more; columns that do not vary
    largest_std: float = math.nan  # are left out
    taken_at: Place | None = None  # line that passed it on
    made_at: Place | None = None  # line that made it; of samples that are equal, the one that made them equal


@dataclass(frozen=True, slots=True)
class Symmetry:
    """Units of a parameter that started equal: same weights, same gradient, at every look so far."""

    id: int  # of the parameter
    dimension: int  # whose entries are the units
    units: int = 0  # compared
    looks: int = 0
    first_step: int = 0
    last_step: int = 0
    difference: float = 0.0  # largest between twins, against the size of the weights
    gradient_difference: float = 0.0  # likewise, of the gradients


@dataclass(frozen=True, slots=True)
class Activation:
    """How flat a squashing function is where a module's output lies, look by look; a bounded sample of the looks."""

    id: int
    output: int  # id of the output that it made, or that it was applied to
    function: str  # "sigmoid", "tanh", "softmax"
    place: Place | None = None  # line that applied it, or made its module
    steps: tuple[int, ...] = ()
    flat: tuple[float, ...] = ()  # share of the values whose slope is below a hundredth of the steepest one
    slopes: tuple[float, ...] = ()  # mean slope, against the steepest one


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, once or often, at one place: equal (kind, subject, place) are counted together."""

    kind: str
    first_step: int  # number of steps done when it first happened
    last_step: int
    count: int = 1
    subject: str = ""  # what it happened to: a tensor's or an optimizer's name, ""
    place: Place | None = None
    detail: dict[str, Any] = field(default_factory=dict)  # of its first time; JSON values only


@dataclass(frozen=True, slots=True)
class Raised:
    """The exception that ended the program."""

    type: str  # class name
    message: str
    place: Place | None = None  # innermost user line of its traceback
    reason: str = ""  # which of autograd's errors it is, a slug of `probe.postmortem`; "" for any other error
    tensor: str = ""  # name of the tensor it is about, where one is known
    operation: str = ""  # the operation that made that tensor, or wrote it, as the reason says
    made_at: Place | None = None  # where the tensor was made
    changed_at: Place | None = None  # where it was written in place, or its graph was first used up


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What was run, where, and how it ended."""

    script: str
    argv: tuple[str, ...] = ()
    cwd: str = ""
    python: str = ""
    torch: str = ""
    whygrad: str = ""
    rank: int = 0
    world_size: int = 1
    pid: int = 0
    started_utc: str = ""  # ISO 8601
    duration_s: float = 0.0
    own_s: float = 0.0  # time spent inside whygrad
    steps: int = 0
    recorded_steps: int = 0
    traced_steps: int = 0
    forwards: int = 0  # calls of root models with grad enabled (in watched windows)
    backwards: int = 0
    grad_calls: int = 0  # torch.autograd.grad
    ended: bool = False  # False: killed, or still running
    raised: Raised | None = None
    notes: tuple[str, ...] = ()  # what was not observed, and what of whygrad was switched off


@dataclass(frozen=True, slots=True)
class Total:
    """The statistics of one tensor in one role, added over all recorded steps."""

    role: Role
    id: int  # of the parameter or output
    steps: int = 0  # recorded steps it was seen in
    zero_steps: int = 0  # of those: every element was exactly zero
    nonfinite_steps: int = 0  # of those: some element was NaN or Inf
    first_nonfinite_step: int | None = None
    statistics: Statistics = field(default_factory=Statistics)


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule's claim about the program."""

    rule: str
    severity: Severity
    tensors: tuple[str, ...]
    message: str  # one sentence: the tensor, the number, what is wrong
    fix: str  # one sentence
    place: Place | None = None
    evidence: dict[str, Any] = field(default_factory=dict)  # JSON values only, never empty
    also: tuple[Place, ...] = ()  # further places
    consequences: tuple[Finding, ...] = ()  # findings that this one explains

    def _repr_html_(self) -> str:
        """Return what a notebook shows: names and code of somebody's program, so escaped."""
        from html import escape

        place = ""
        if self.place is not None:
            where = escape(f"{self.place.file}:{self.place.line}")
            place = f"<br>{where} <code>{escape(self.place.code)}</code>"
        return (
            f"<div><b>{self.severity} {escape(self.rule)}</b>: {escape(self.message)}{place}"
            f"<br><b>fix</b>: {escape(self.fix)}</div>"
        )
