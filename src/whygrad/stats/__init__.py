"""From tensors to additive statistics, cheaply, inside the user's process."""
