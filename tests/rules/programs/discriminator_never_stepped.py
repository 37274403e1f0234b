# A domain critic is trained by a helper that clears and computes its gradients; its step was forgotten.
# truth: no-step error critic.weight critic.bias
import torch
from torch import nn

torch.manual_seed(11)
encoder, critic = nn.Linear(5, 4), nn.Linear(4, 1)
encoder_optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.01)  # no-step


def train_critic(source, target):
    critic_optimizer.zero_grad()
    (critic(encoder(target).detach()) - critic(encoder(source).detach())).tanh().mean().backward()


for _ in range(20):
    source, target = torch.randn(16, 5), torch.randn(16, 5) + 1
    train_critic(source, target)
    encoder_optimizer.zero_grad()
    loss = critic(encoder(source)).tanh().mean() - critic(encoder(target)).tanh().mean() + encoder(source).pow(2).mean()
    loss.backward()
    encoder_optimizer.step()
