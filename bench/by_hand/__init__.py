"""Codecs written by hand, each for one version of one message: the yardstick for the compiled ones.

The files are called as those of ottla.protocol.messages are."""
