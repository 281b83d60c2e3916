"""The pure machines alone, each driven by a seed: equal seeds, equal traces."""
