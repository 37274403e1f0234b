"""What a person calls inside a program or notebook: `explain`, `tap`, `watch`."""
