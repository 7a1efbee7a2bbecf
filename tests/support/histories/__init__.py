"""Random histories of a release: the real operator and client, in time that passes only when nobody has work."""
