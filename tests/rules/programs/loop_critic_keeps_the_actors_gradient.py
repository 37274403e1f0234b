# The critic is cleared at the top of the loop only; by its own backward the actor's loss has passed through it.
# truth: missing-zero-grad error critic.0.weight critic.2.weight
import torch
from torch import nn

torch.manual_seed(5)
actor = nn.Sequential(nn.Linear(3, 8), nn.ELU(), nn.Linear(8, 2))
critic = nn.Sequential(nn.Linear(5, 8), nn.ELU(), nn.Linear(8, 1))
optimizers = {
    "actor": torch.optim.Adam(actor.parameters(), lr=1e-3),
    "critic": torch.optim.Adam(critic.parameters(), lr=1e-3),
}
for _ in range(20):
    for optimizer in optimizers.values():
        optimizer.zero_grad(set_to_none=True)
    state = torch.randn(32, 3)
    action = actor(state)
    value = critic(torch.cat([state, action], 1))
    value.mean().neg().backward()
    optimizers["actor"].step()
    estimate = critic(torch.cat([state, action.detach()], 1))
    nn.functional.mse_loss(estimate, -state.pow(2).sum(1, keepdim=True)).backward()  # missing-zero-grad
    optimizers["critic"].step()
