"""Tests that need nothing but Python: one file for each module, a table for cases."""
