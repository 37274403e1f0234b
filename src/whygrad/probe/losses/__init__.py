"""What is fed into the loss: which functions make it, and what came in, in shape, in size and by which operations.

watch = LossWatch(session)      listens to the tracer; after each backward pass: watch.after_backward(roots)
watch.facts()                   LossCall and SoftmaxCall, of calls that a backward pass led back to
"""

from whygrad.probe.losses.watch import LossWatch as LossWatch
