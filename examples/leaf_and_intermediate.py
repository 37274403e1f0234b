"""Leaf and intermediate tensors: whose `.grad` backward fills, and why not every one's.

Run it: python examples/leaf_and_intermediate.py
"""

import torch

from whygrad import explain, tap

print("--- backward fills the leaf")
a = torch.tensor(2.0, requires_grad=True)  # a leaf: no operation made it
b = a * 3  # an intermediate
c = b + 1
c.backward()
print("a.grad =", a.grad.item())  # dc/da = 3
print(explain(a))
print(explain(b))

print("--- retain_grad() makes the intermediate keep its own")
a = torch.tensor(2.0, requires_grad=True)
b = a * 3
b.retain_grad()
c = b + 1
c.backward()
print("b.grad =", b.grad.item())  # dc/db = 1
print(explain(b))

print("--- a tap reads it as it passes, and keeps nothing")
a = torch.tensor(2.0, requires_grad=True)
b = a * 3
with tap(b, "b") as passing:
    c = b + 1
    c.backward()
print("mean of the gradient that passed =", passing.statistics.mean)
print("b retains its gradient:", b.retains_grad)
