"""Ottla as a process, judged at the wire and by stock clients; needs nothing but Python."""
