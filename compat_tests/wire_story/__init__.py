"""A story told to two brokers at the wire: the same requests, and what each answers."""
