"""Lower bounds on the loss of every eligible partition, and the certificates that state them."""
