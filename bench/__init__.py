"""Ottla measured beside what else could do the same work, in one run.

`python -m bench` prints the tables; `python -m bench --check` fails where a goal is missed."""
