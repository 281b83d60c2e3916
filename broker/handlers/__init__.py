"""One function for each API, in the module that has the name of its messages' family.

A handler answers at once, or returns an awaitable where it must wait."""
