"""What an exception of autograd's is about: `errors.explain_error` tells it from what the program left behind."""
