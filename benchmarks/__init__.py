"""What watching costs: whygrad and today's habits beside the plain loop. `make bench` runs it."""
