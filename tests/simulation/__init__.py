"""The storage on a disk that crashes everywhere and fails everywhere, beside a model of it."""
