"""What no partition can beat: bounds on the loss, and the certificates that carry them."""
