"""The tables of a run file: what is stored where, for us and for everyone who opens one with a tool of their own.

    $ sqlite3 .whygrad/train-20261130T071200-4242/rank0.whygrad
    sqlite> SELECT name, gradient_steps, steps FROM parameter WHERE gradient_steps < steps;
    head.weight|0|200
    head.bias|0|200

A run file is a SQLite database, one per rank, with one writer. The columns of the tables in `TABLES` are the fields of
the dataclasses in `whygrad.model`, in the same order and with the same names; `whygrad.runfile.rows` maps one to the
other. A new fact about a run is a line in `whygrad.model` and a line in `DDL`, and a line in the history below. Older
files stay readable: a column that they lack has its field's default.
"""

from __future__ import annotations

from dataclasses import dataclass

from whygrad.model import (
    Activation,
    Clip,
    Cut,
    Event,
    Feed,
    Group,
    Happening,
    LossCall,
    LossScale,
    Module,
    Optimizer,
    Output,
    Parameter,
    Replica,
    Round,
    SoftmaxCall,
    Step,
    Symmetry,
    Total,
)

APPLICATION_ID = 0x57485947  # "WHYG": tells a run file from other SQLite databases

# History of the schema:
#   1  The first.
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Table:
    """Where facts of one type are stored, and which of them are the same fact, seen later."""

    name: str
    key: tuple[str, ...] = ("id",)  # fields that tell two facts apart
    conflict: str = "id"  # the same as SQL
    order: str = "id"  # SQL; how a reader sorts them


TABLES: dict[type, Table] = {
    Module: Table("module"),
    Parameter: Table("parameter"),
    Cut: Table("cut"),
    Output: Table("output"),
    Optimizer: Table("optimizer"),
    Group: Table("parameter_group"),
    Replica: Table("replica"),
    Round: Table("round"),
    Happening: Table("happening", key=("round", "position"), conflict="round, position", order="round, position"),
    Clip: Table("clip"),
    LossScale: Table("loss_scale"),
    LossCall: Table("loss_call"),
    SoftmaxCall: Table("softmax_call"),
    Step: Table("step"),
    Feed: Table("feed"),
    Symmetry: Table("symmetry", key=("id", "dimension"), conflict="id, dimension", order="id, dimension"),
    Activation: Table("activation"),
    Event: Table(
        "event",
        key=("kind", "subject", "place"),
        conflict="kind, subject, coalesce(place, 0)",
        order="first_step, rowid",
    ),
    Total: Table("total", key=("role", "id"), conflict="role, id", order="role, id"),
}
"""Table of each dataclass whose instances are rows."""

DDL = """
-- Values: a truth value is 0 or 1. "JSON" is text as Python's json module writes it, so it may hold NaN and Infinity.
-- NaN in a REAL column, which SQLite would turn into NULL, is the text 'NaN'. Blobs are little-endian.
-- Columns called *_at and `place` hold the number of a row of table `place`, or NULL where no line is known.
-- A step's number counts from 0, over all optimizers of the run.

-- What was run, where, and how it ended: the fields of RunInfo.
CREATE TABLE meta (
    key    TEXT PRIMARY KEY,  -- name of the field
    value  TEXT NOT NULL      -- JSON
);

-- Lines of the user's program, each stored once.
CREATE TABLE place (
    id        INTEGER PRIMARY KEY,
    file      TEXT NOT NULL,
    line      INTEGER NOT NULL,  -- counts from 1
    function  TEXT NOT NULL,     -- name of the function the line belongs to
    code      TEXT NOT NULL,     -- the source line, stripped
    excerpt   TEXT NOT NULL      -- JSON: [line number, text] of the line and its neighbours
);

-- Modules of root models that ran or hold parameters.
CREATE TABLE module (
    id        INTEGER PRIMARY KEY,
    name      TEXT NOT NULL,  -- qualified name in its root model; '' for the root itself
    root      TEXT NOT NULL,  -- variable or attribute that holds the root model, or the root's class name
    type      TEXT NOT NULL,  -- class name
    made_at   INTEGER,        -- innermost user line that constructed it
    "order"   INTEGER,        -- position of its first call in forward order; NULL: never called
    calls     INTEGER,        -- calls with grad enabled in recorded steps
    training  INTEGER,        -- `module.training` at the last such call
    taught    INTEGER,        -- watched steps before whose last backward pass it was called as a root model
    taught_in_eval  INTEGER,  -- of those: it was in eval mode at that call
    eval_at   INTEGER,        -- line of the last eval() call on it
    has_modes INTEGER,        -- it computes something else in eval mode: Dropout, a norm with running statistics
    fresh     INTEGER         -- its running statistics are those it was made with
);

-- Tensors that were meant to learn. Counts run over the whole run, recorded step or not, unless said otherwise.
CREATE TABLE parameter (
    id                   INTEGER PRIMARY KEY,
    name                 TEXT NOT NULL,  -- qualified; led by the root's name where the program has several roots
    shape                TEXT NOT NULL,  -- JSON
    dtype                TEXT NOT NULL,  -- such as float32
    aliases              TEXT,     -- JSON: further qualified names of the same tensor
    root                 TEXT,     -- name of the root model; '' where no module holds it
    module               TEXT,     -- qualified name of the module that holds it
    module_type          TEXT,     -- class name of that module
    attribute            TEXT,     -- its name in that module, or the variable that holds it
    registered           INTEGER,  -- found by named_parameters() of a root model
    held_in              TEXT,     -- where it was found if not registered: list, dict, buffer, optimizer, ...
    stale                INTEGER,  -- an optimizer holds it, no module does any more, and a module once did
    requires_grad        INTEGER,  -- at the end of the run
    made_at              INTEGER,  -- user line that made it, or the layer it belongs to
    written_at           INTEGER,  -- user line that last wrote its value in place before its first step
    assigned_at          INTEGER,  -- user line that put it, or the container it lies in, on its module
    frozen_at            INTEGER,  -- user line that last set requires_grad to False
    "order"              INTEGER,  -- forward order of the module that holds it
    optimizers           TEXT,     -- JSON: ids of the optimizers that ever held it
    reached              INTEGER,  -- backward passes whose graph reached it, of those whose graph was walked
    walked               INTEGER,  -- backward passes whose graph was walked since it was first seen
    steps                INTEGER,  -- steps of its optimizers; where none holds it, all since it was first seen
    gradient_steps       INTEGER,  -- of those: its gradient was there
    frozen_steps         INTEGER,  -- of those: requires_grad was False
    first_gradient_step  INTEGER,
    last_gradient_step   INTEGER,
    uses                 INTEGER,  -- operations of traced steps that took it as input; NULL: no step was traced
    used_at              INTEGER,  -- the last of them
    changed_outside      INTEGER,  -- steps between which its value changed without an optimizer step of its own
    compared             INTEGER,  -- pairs of successive steps of its optimizer between which it was compared
    overwritten          INTEGER,  -- of those: something had written it in between
    restored             INTEGER,  -- of those: it was again what it had been before the step
    undone               REAL,     -- added over those: the share of the way from its first value that was taken back
    replaced             INTEGER,  -- of those: the write moved it by at least half of its size
    unmoved              REAL,     -- of a half precision weight: share of elements that still stand where they began
    loads                INTEGER,  -- calls of load_state_dict that wrote it since it was first seen
    copy_of              INTEGER,  -- id of the parameter that it was deep-copied from
    copied_at            INTEGER,  -- and where
    copied_step          INTEGER,  -- steps that were done by then
    evaluations          INTEGER,  -- of copies and copied ones: calls of their model without grad, and of its eval()
    rows                 INTEGER,  -- size of dimension 0 of a tensor of two or more dimensions
    silent_rows          INTEGER,  -- of those: gradient exactly zero in every recorded step
    loaded               INTEGER,  -- its value came from load_state_dict
    path                 TEXT,     -- what became of its path to the loss in traced steps; NULL: none was traced
    ends_at              INTEGER,  -- where the path ends, unless it is cut
    ends_with            TEXT      -- the operation there
);

-- Places where the path of the gradient to a parameter ends, found in traced steps.
CREATE TABLE cut (
    id         INTEGER PRIMARY KEY,
    parameter  INTEGER NOT NULL,  -- id
    kind       TEXT NOT NULL,     -- detach, data, value, copy, no-grad, nondifferentiable, custom, overwritten
    operation  TEXT NOT NULL,
    place      INTEGER,           -- of the operation
    within     TEXT,              -- library function that the line calls and that holds the operation
    reentry    INTEGER,           -- where a value that left torch comes back
    mode       TEXT,              -- what switched grad mode off
    mode_at    INTEGER,           -- and where; of an autograd.Function, where its backward returns
    inferred   INTEGER,           -- linked by value or by the source's text, not by identity
    distance   INTEGER,           -- operations between the parameter and the cut
    as_target  INTEGER,           -- its value is only what a loss compares predictions with
    steps      INTEGER            -- traced steps it was found in
);

-- Tensors that modules return.
CREATE TABLE output (
    id              INTEGER PRIMARY KEY,
    name            TEXT NOT NULL,     -- qualified name of the module, with [1] or ['key'] for further tensors
    module          INTEGER NOT NULL,  -- id of the module
    "order"         INTEGER NOT NULL,  -- forward order
    shape           TEXT NOT NULL,     -- JSON; at its first call
    dtype           TEXT NOT NULL,
    calls           INTEGER,           -- times seen in recorded steps
    without_grad    INTEGER,           -- of those: it did not require grad although grad mode was on
    gradient_calls  INTEGER,           -- of those: a gradient arrived
    view_written    INTEGER            -- a view that was written in place later: a missing gradient says nothing
);

-- Optimizer objects.
CREATE TABLE optimizer (
    id                    INTEGER PRIMARY KEY,
    name                  TEXT NOT NULL,  -- variable or attribute that holds it, or its class name
    type                  TEXT NOT NULL,  -- class name
    made_at               INTEGER,
    stepped_at            INTEGER,        -- user line of the last step(); NULL: never stepped
    steps                 INTEGER,
    zero_grads            INTEGER,        -- calls of zero_grad()
    skipped               INTEGER,        -- GradScaler.step calls that did not step it
    parameters            INTEGER,        -- tensors it holds at the end of the run
    learning_rates        TEXT,           -- JSON: per group, as constructed
    last_learning_rates   TEXT,           -- JSON: per group, at its last step
    zero_rate_steps       INTEGER,        -- steps at which every group's learning rate was exactly 0
    scheduler             TEXT,           -- class name of its learning rate scheduler
    scheduler_made_at     INTEGER,
    scheduler_stepped_at  INTEGER,
    scheduler_steps       INTEGER         -- not counting the one its constructor makes
);

-- Models that DistributedDataParallel wraps: one copy on each rank, whose gradients it averages.
CREATE TABLE replica (
    id                      INTEGER PRIMARY KEY,
    root                    TEXT NOT NULL,  -- name of the root model
    parameters              TEXT,           -- JSON: ids of those it averages
    world_size              INTEGER,
    find_unused_parameters  INTEGER,
    static_graph            INTEGER,
    hook                    TEXT,           -- name of the communication hook that stands in for the average
    made_at                 INTEGER,
    called_at               INTEGER,        -- user line of its last call with grad enabled
    calls                   INTEGER,        -- calls with grad enabled
    local_calls             INTEGER,        -- of those: under no_sync
    no_sync_at              INTEGER,        -- user line that last entered no_sync
    outside_calls           INTEGER,        -- calls of its modules that did not come through it, in recorded steps
    outside_at              INTEGER,        -- user line of the first of them
    backwards               INTEGER,        -- backward passes that brought it gradients
    local_backwards         INTEGER,        -- of those: the gradients were not averaged
    steps                   INTEGER,        -- optimizer steps on those gradients
    local_steps             INTEGER,        -- of those: the last backward pass before it was not averaged
    first_local_step        INTEGER,        -- counts as steps does
    local_why               TEXT,           -- of that step: no-sync, outside, repeated, unknown
    local_at                INTEGER         -- user line of the last backward pass before it
);

-- Parameter groups of optimizers. NaN where a setting is not known.
CREATE TABLE parameter_group (
    id                     INTEGER PRIMARY KEY,
    optimizer              INTEGER NOT NULL,  -- id
    position               INTEGER NOT NULL,  -- in param_groups
    parameters             TEXT,     -- JSON: ids of what it holds
    learning_rate          REAL,     -- as constructed
    base_learning_rate     REAL,     -- that its scheduler works from: max_lr, else initial_lr
    first_learning_rate    REAL,     -- at its first step
    last_learning_rate     REAL,     -- at its last step
    lowest_learning_rate   REAL,
    highest_learning_rate  REAL,
    steps                  INTEGER,
    zero_rate_steps        INTEGER,  -- of those: the rate was exactly 0
    rises                  INTEGER,  -- of those: the rate was above that of the step before
    weight_decay           REAL,
    decoupled              INTEGER,  -- weight decay acts on the weight itself, not through the gradient
    momentum               REAL,     -- of Adam and its kin, the first beta
    eps                    REAL,
    rate_set_at            INTEGER   -- line that sets group["lr"], where rates changed and no scheduler did it
);

-- What happened from one step of an optimizer to its next; rounds of equal happenings are counted together.
CREATE TABLE round (
    id          INTEGER PRIMARY KEY,
    optimizer   INTEGER NOT NULL,  -- id
    count       INTEGER NOT NULL,
    first_step  INTEGER NOT NULL,  -- number of steps done, over all optimizers, when the first of them ended
    last_step   INTEGER NOT NULL,  -- when the last of them ended
    first       INTEGER,           -- the optimizer's first round: there was no step before
    closure     INTEGER,           -- the step ran a closure
    cut_short   INTEGER,           -- only its first happenings are known
    unfinished  INTEGER            -- the run ended, or was written, before its step
);

-- The happenings of each round, in order; equal ones in a row are one.
CREATE TABLE happening (
    round       INTEGER NOT NULL,  -- id
    position    INTEGER NOT NULL,  -- counts from 0
    deed        TEXT NOT NULL,     -- backward, clear, clear-by-hand, clip, unscale, step, skip, schedule
    place       INTEGER,
    times       INTEGER,
    optimizers  TEXT,              -- JSON: ids of those whose gradients it changed; of a step or schedule, whose it is
    marks       TEXT,              -- JSON: scaled, on-the-way, input, used, empty
    PRIMARY KEY (round, position)
) WITHOUT ROWID;

-- Lines that clip gradients, and how much each took away.
CREATE TABLE clip (
    id           INTEGER PRIMARY KEY,
    kind         TEXT NOT NULL,  -- norm, value
    place        INTEGER,
    optimizers   TEXT,           -- JSON: ids of those whose gradients it changed
    calls        INTEGER,
    empty_calls  INTEGER,        -- of those: it got no tensor
    used_up      INTEGER,        -- of those: from an iterator, such as a generator that yields each tensor once
    measured     INTEGER,        -- calls whose norm was looked at and was above 0; none of kind value
    clipped      INTEGER,        -- of those: above the limit
    factor       REAL,           -- gradient before through gradient after, geometric mean over the measured calls
    "limit"      REAL,           -- of the last call
    norm         REAL,           -- before clipping, geometric mean over the measured calls
    scale        REAL            -- the largest loss scale that the gradients still carried
);

-- Lines that call backward, and the constant that the loss was multiplied by, as far as its graph shows.
CREATE TABLE loss_scale (
    id          INTEGER PRIMARY KEY,
    place       INTEGER,
    passes      INTEGER,  -- whose graph was walked
    factor      REAL,     -- product of the constants; a GradScaler's scale is left out
    mean        INTEGER,  -- behind them stands a mean over the batch
    divided_by  INTEGER   -- by a framework, on the way from the program's loss; 0: none did
);

-- Loss functions, and differences of prediction and target, by line, in traced steps. Numbers are bounds over calls.
CREATE TABLE loss_call (
    id                      INTEGER PRIMARY KEY,
    function                TEXT NOT NULL,  -- sub and the like where the loss is written by hand
    place                   INTEGER,
    reduction               TEXT,
    calls                   INTEGER,        -- that a backward pass led back to
    shape                   TEXT,           -- JSON: of the input, at the first call
    target_shape            TEXT,           -- JSON
    result_shape            TEXT,           -- JSON: that both broadcast to
    target_is_index         INTEGER,        -- integers
    target_from_model       INTEGER,        -- computed from parameters, and by no arithmetic from the program's data
    activation              TEXT,           -- last operation on the input, changes of shape aside; '' if it is none
    activation_at           INTEGER,        -- line that calls it, or that made its module where a container calls that
    inner_activation        TEXT,           -- likewise, of that activation's input
    inner_activation_at     INTEGER,
    softmax_at              INTEGER,        -- the nearest softmax that the input was computed from
    parameters              TEXT,           -- JSON: ids of those that the input was computed from
    low                     REAL,           -- of the input
    high                    REAL,
    sum_low                 REAL,           -- of its sums over the classes
    sum_high                REAL,
    exp_sum_low             REAL,           -- of the sums of exp(input) over the classes
    exp_sum_high            REAL,
    target_low              REAL,
    target_high             REAL,
    target_negative         REAL,           -- mean share of the target's elements below 0
    target_above_one        REAL,
    target_below_minus_one  REAL
);

-- softmax and log_softmax, by line, in traced steps. Dimensions are those of the result.
CREATE TABLE softmax_call (
    id                   INTEGER PRIMARY KEY,
    function             TEXT NOT NULL,
    place                INTEGER,  -- line that calls it, or that made its module where a container calls that
    calls                INTEGER,  -- that a backward pass led back to
    shape                TEXT,     -- JSON; at the first call
    dim                  INTEGER,
    smallest             INTEGER,  -- size of that dimension over all calls
    largest              INTEGER,
    batch                INTEGER,  -- size of dimension 0 of what the losses take
    inner_activation     TEXT,     -- of its input
    inner_activation_at  INTEGER,
    is_of_product        INTEGER,  -- its input is a matrix product
    used_dims            TEXT,     -- JSON: dimensions that are summed after a product, picked from or compared later
    used_by              TEXT,     -- JSON: sum, product, 'product, right', renormalised, gather, getitem, nll_loss,
                                   -- target
    used_at              INTEGER,  -- where first
    parameters           TEXT,     -- JSON: ids of those that its input was computed from
    nearest              TEXT      -- JSON: of them, those of the last layers before it
);

-- Optimizer steps; backward passes where no optimizer holds what they reach. Of a long run, the fewer the longer ago:
-- what is not here was taken out again, with its matrices and histograms.
CREATE TABLE step (
    id              INTEGER PRIMARY KEY,
    optimizer       INTEGER,        -- id of the optimizer; NULL for a manual step
    time_s          REAL NOT NULL,  -- since the run began
    backwards       INTEGER,        -- backward passes since the previous step of the same optimizer
    loss            REAL,           -- the last loss that backward ran on
    learning_rates  TEXT,           -- JSON: per group
    recorded        INTEGER,        -- full statistics were taken
    gradient_l2     REAL,           -- norm over all gradients of the step; NULL where it was not recorded
    weight_l2       REAL,           -- norm over all weights before the step
    update_l2       REAL,           -- norm over all updates (of large tensors, a sample)
    backward_l2     REAL,           -- norm over all gradients of the optimizer after its last backward, unscaled
    position        INTEGER,        -- steps of the same optimizer before it
    recorded_before INTEGER         -- recorded steps before it
);

-- Data: tensors without a gradient that enter a model, a layer that is to learn, or a regression loss.
CREATE TABLE feed (
    id              INTEGER PRIMARY KEY,
    name            TEXT NOT NULL,  -- what takes it, and which argument; of a target: the operation
    kind            TEXT NOT NULL,  -- model, layer, target
    module          INTEGER,        -- id of the module that takes it
    shape           TEXT NOT NULL,  -- JSON; at its first look
    dtype           TEXT NOT NULL,
    looks           INTEGER,        -- at two samples (entries of dimension 0) or more
    constant_looks  INTEGER,        -- of those: all samples were equal
    expanded        INTEGER,        -- one sample, repeated without a copy
    mean            REAL,           -- over all looks
    std             REAL,
    low             REAL,
    high            REAL,
    smallest_std    REAL,           -- of a column (dimension 1) that varies, at the first look at 8 samples or more
    largest_std     REAL,
    taken_at        INTEGER,        -- line that passed it on
    made_at         INTEGER         -- line that made it; of samples that are equal, the one that made them equal
);

-- Units of parameters that started equal: same weights, same gradient, at every look so far.
CREATE TABLE symmetry (
    id                   INTEGER NOT NULL,  -- of the parameter
    dimension            INTEGER NOT NULL,  -- whose entries are the units
    units                INTEGER,           -- compared
    looks                INTEGER,
    first_step           INTEGER,
    last_step            INTEGER,
    difference           REAL,              -- largest between twins, against the size of the weights
    gradient_difference  REAL,              -- likewise, of the gradients
    PRIMARY KEY (id, dimension)
) WITHOUT ROWID;

-- How flat a squashing function is where a module's output lies, look by look.
CREATE TABLE activation (
    id        INTEGER PRIMARY KEY,
    output    INTEGER NOT NULL,  -- id of the output that it made, or that it was applied to
    function  TEXT NOT NULL,     -- sigmoid, tanh, softmax
    place     INTEGER,           -- line that applied it, or made its module
    steps     TEXT,              -- JSON: of the looks
    flat      TEXT,              -- JSON: share of the values whose slope is below a hundredth of the steepest one
    slopes    TEXT               -- JSON: mean slope, against the steepest one
);

-- What happened, once or often: equal kind, subject and place are counted together.
CREATE TABLE event (
    kind        TEXT NOT NULL,
    first_step  INTEGER NOT NULL,  -- number of steps done when it first happened
    last_step   INTEGER NOT NULL,
    count       INTEGER NOT NULL,
    subject     TEXT NOT NULL,     -- what it happened to: a tensor's or an optimizer's name, or ''
    place       INTEGER,
    detail      TEXT NOT NULL      -- JSON; of its first time
);
CREATE UNIQUE INDEX event_key ON event (kind, subject, coalesce(place, 0));

-- Which tensor each row of a matrix belongs to; stored again only when the tensors change.
CREATE TABLE layout (
    id    INTEGER PRIMARY KEY,
    role  TEXT NOT NULL,  -- gradient, backward, weight, update: ids of parameters; the others: ids of outputs
    ids   BLOB NOT NULL   -- uint32 [n]
);

-- Statistics of all tensors of one role at one recorded step.
CREATE TABLE matrix (
    step        INTEGER NOT NULL,
    role        TEXT NOT NULL,
    layout      INTEGER NOT NULL,  -- id of its layout, which names the rows
    statistics  BLOB NOT NULL,     -- float64 [n, 8], row by row: count, sum, sum_squares, sum_abs, max_abs, zeros,
                                   -- nans, infs; sums and the maximum run over the finite elements only
    UNIQUE (role, step)
);

-- Histograms of the sizes of all tensors' elements, of one role at one recorded step.
CREATE TABLE histogram (
    step    INTEGER NOT NULL,
    role    TEXT NOT NULL,
    layout  INTEGER NOT NULL,
    counts  BLOB NOT NULL,  -- uint32 [n, 32], row by row: bin k counts finite, nonzero elements with
                            -- floor((floor(log2|x|) + 48) / 2) == k, clamped to 0..31
    UNIQUE (role, step)
);

-- Statistics of each tensor in each role, added over all recorded steps.
CREATE TABLE total (
    role                  TEXT NOT NULL,
    id                    INTEGER NOT NULL,  -- of the parameter or output
    steps                 INTEGER,  -- recorded steps it was seen in
    zero_steps            INTEGER,  -- of those: every element was exactly zero
    nonfinite_steps       INTEGER,  -- of those: some element was NaN or Inf
    first_nonfinite_step  INTEGER,
    count                 REAL,     -- elements
    sum                   REAL,     -- of the finite elements, as are the next three
    sum_squares           REAL,
    sum_abs               REAL,
    max_abs               REAL,
    zeros                 REAL,     -- elements that are exactly zero
    nans                  REAL,
    infs                  REAL,
    PRIMARY KEY (role, id)
) WITHOUT ROWID;
"""
"""Every table and column of a run file, explained where it is declared."""
