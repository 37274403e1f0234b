"""Which functions of torch are losses, activations, changes of shape and the like, by name."""

from __future__ import annotations

CLASS_LOSSES = frozenset(("cross_entropy", "nll_loss"))  # class dimension: 1
BINARY_LOSSES = frozenset(("binary_cross_entropy", "binary_cross_entropy_with_logits"))
REGRESSION_LOSSES = frozenset(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
SIGN_LOSSES = frozenset(("soft_margin_loss", "hinge_embedding_loss"))  # targets 1 and -1
PAIR_LOSSES = frozenset(("margin_ranking_loss", "cosine_embedding_loss"))  # two inputs, then targets 1 and -1
OTHER_LOSSES = frozenset(
    (
        "kl_div",
        "poisson_nll_loss",
        "gaussian_nll_loss",
        "triplet_margin_loss",
        "multilabel_soft_margin_loss",
        "ctc_loss",
    )
)
LOSSES = CLASS_LOSSES | BINARY_LOSSES | REGRESSION_LOSSES | SIGN_LOSSES | PAIR_LOSSES | OTHER_LOSSES
DIFFERENCES = frozenset(("sub", "rsub", "subtract", "dist", "pairwise_distance"))

FACTORS = frozenset(("mul", "mul_", "multiply"))

SOFTMAXES = frozenset(("softmax", "log_softmax", "softmin"))
SQUASHING = frozenset(
    (
        "relu",
        "relu_",
        "sigmoid",
        "sigmoid_",
        "tanh",
        "tanh_",
        "softplus",
        "hardtanh",
        "hardsigmoid",
        "relu6",
        "clamp_relu",
    )
)
ACTIVATIONS = SOFTMAXES | SQUASHING | frozenset(("gumbel_softmax",))

RESHAPES = frozenset(("view", "reshape", "flatten", "unflatten", "view_as", "reshape_as"))
MOVES = frozenset(
    (
        *("squeeze", "unsqueeze", "transpose", "swapaxes", "permute", "movedim", "t", "T", "mT", "expand", "expand_as"),
        *("contiguous", "clone", "detach", "data", "float", "double", "half", "bfloat16", "to", "type", "type_as"),
        *("cpu", "cuda", "alias", "view_as_real", "requires_grad"),
    )
)
PICKS = frozenset(
    ("getitem", "select", "narrow", "index_select", "gather", "masked_select", "chunk", "split", "unbind")
)
PASSING = RESHAPES | MOVES | PICKS | frozenset(("dropout", "nan_to_num", "clamp", "clip", "clamp_min", "clamp_max"))
"""What leaves the kind of a value alone: probabilities are probabilities behind it."""

BINARY = frozenset(
    (
        *("add", "sub", "rsub", "mul", "div", "rdiv", "truediv", "rtruediv", "radd", "rmul", "pow", "rpow"),
        *("subtract", "multiply", "divide", "true_divide", "add_", "sub_", "mul_", "div_", "iadd", "isub", "imul"),
        *("maximum", "minimum", "where", "masked_fill", "lerp", "addcmul", "xlogy"),
    )
)
UNARY = frozenset(
    (
        *("neg", "square", "abs", "absolute", "sqrt", "rsqrt", "log", "log2", "log1p", "exp", "expm1", "cosh", "tanh"),
        *("clamp", "clip", "clamp_min", "clamp_max", "relu", "softplus", "logsigmoid", "nan_to_num", "sigmoid", "elu"),
        *("dropout", "reciprocal", "positive", "lgamma", "digamma", "negative", "sign"),
    )
)
ELEMENTWISE = BINARY | UNARY
REDUCTIONS = frozenset(
    ("mean", "sum", "nanmean", "nansum", "norm", "vector_norm", "median", "amax", "amin", "max", "min")
)
GATHERING = frozenset(("stack", "cat", "concat", "hstack", "vstack"))
LOSS_REGION = ELEMENTWISE | REDUCTIONS | GATHERING | RESHAPES | MOVES | PICKS
"""What a program computes between a loss function, or a difference, and the number that backward is called on."""

PRODUCTS = frozenset(("matmul", "bmm", "mm", "mv", "baddbmm", "einsum", "dot", "rmatmul"))
