"""How a joint PMF is found: one loop, one objective, and a file per method."""
