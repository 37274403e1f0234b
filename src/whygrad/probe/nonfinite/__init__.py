"""Where the first NaN or Inf arose: the operation and the user's line, in forward or in backward."""
