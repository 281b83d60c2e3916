"""Mutated input for everything that reads bytes: `make fuzz`, and a part of it in `make test`."""
